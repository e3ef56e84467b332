"""Calls one function of a completion and returns the value as plain data. Runs inside the sandbox, in its process.

Nothing here is protected from the completion, and nothing needs to be: all it could forge is the value that it returns.
"""

import asyncio
import inspect
import linecache
import types
from typing import Any

from verifiers.code.interpreter import PROGRAM_FILE, read_program, start_program
from verifiers.code.plain import Decoder, Encoder, Json, NotPlainError
from verifiers.code.program import assemble

_MODULE_NAME = "solution"
_USUAL_CLASS = "Solution"
_MISSING = object()


def call_function(argument: dict[str, Any]) -> dict[str, Json]:
    """Run the program's top level, call its function once, and return the value.

    Args:
        argument: `prompt`, `entry_point`, `args` and `kwargs` (plain data), and `compare_argument`.

    Returns:
        `value`: what the function returned, or what the argument then held; or `missing`: the name that the program
        does not define; or `unreadable`: why the value is no plain data.

    Raises:
        BaseException: what the program raised.
    """
    class_name, _, name = argument["entry_point"].rpartition("().")
    source = assemble(argument["prompt"], read_program(), class_name or name)
    linecache.cache[PROGRAM_FILE] = (len(source), None, source.splitlines(keepends=True), PROGRAM_FILE)
    module = start_program(_MODULE_NAME)
    code = compile(source, PROGRAM_FILE, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102 - in the sandbox
    function = _find(module, class_name, name)
    if function is _MISSING:
        return {"missing": argument["entry_point"]}
    decoder = Decoder({"object": lambda pairs: decoder.decode({"dict": pairs})})
    args = [decoder.decode(form) for form in argument["args"]]
    kwargs = {name: decoder.decode(form) for name, form in argument["kwargs"].items()}
    value = function(*args, **kwargs)
    if inspect.iscoroutine(value):
        value = asyncio.run(value)
    changed = argument["compare_argument"]
    try:
        return {"value": Encoder(_refuse).encode(value if changed is None else args[changed])}
    except NotPlainError as refused:
        return {"unreadable": str(refused)}


def _find(module: types.ModuleType, class_name: str, name: str) -> Any:
    defined = module.__dict__
    if class_name:
        return getattr(defined[class_name](), name, _MISSING) if class_name in defined else _MISSING
    if name in defined:
        return defined[name]
    usual = defined.get(_USUAL_CLASS)
    return getattr(usual(), name, _MISSING) if isinstance(usual, type) and hasattr(usual, name) else _MISSING


def _refuse(value: Any) -> Json:
    raise NotPlainError(f"a {type(value).__name__} is no plain data")
