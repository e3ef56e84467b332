"""Stand-ins, in the driver, for objects that live in the completion's process.

Runs inside the sandbox, in the driver. What a stand-in may tell depends on what is asked. Reading an attribute,
calling, iterating, taking a length or an item gives values, which the completion could as well have returned. But an
operator between an opaque object and plain data of the tests would hand the expected value to the completion and let it
answer, so it is refused (`==` is then false): `solve(3) == 9` holds only when `solve` returned the number. Objects that
the tests by their own text use as objects are `live` (see `tests_code`); they answer operators themselves, and the
verdict says `shared_process`.
"""

import builtins
import sys
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from verifiers.code.channel import FORWARDED
from verifiers.code.plain import PLAIN_NAMES, Json, MalformedError

if TYPE_CHECKING:
    from verifiers.code.session import Session

_BINARY = frozenset(
    """
    lt le gt ge eq ne add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor
    radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor
    iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor
    """.split()  # noqa: SIM905 - a list would take a page
)
_PRETENDED: dict[str, type] = {
    "generator": types.GeneratorType,
    "function": types.FunctionType,
    "method": types.MethodType,
    "class": type,
}
_STEPS = frozenset({"__next__", "send", "throw"})
"""Methods by which an iterator says that there are no more."""
_MAX_LINEAGE = 20


class Remote:
    """An object of the completion's process."""

    __slots__ = ("__weakref__", "_assay_live", "_assay_number", "_assay_session")
    _assay_kind = "instance"

    _assay_live: bool
    _assay_number: int
    _assay_session: "Session"

    def __init__(self, session: "Session", number: int, *, live: bool) -> None:
        object.__setattr__(self, "_assay_session", session)
        object.__setattr__(self, "_assay_number", number)
        object.__setattr__(self, "_assay_live", live)

    def __del__(self) -> None:
        self._assay_session.release(self._assay_number)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return _PRETENDED.get(self._assay_kind, type(self))

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._assay_session.ask("get", self, "__doc__")

    @property
    def __module__(self) -> Any:  # type: ignore[override]
        return self._assay_session.ask("get", self, "__module__")

    def __getattr__(self, name: str) -> Any:
        if name in PLAIN_NAMES and not self._assay_live:
            # A plain value would have it here, with the tests' arguments out of the completion's reach.
            raise AttributeError(f"an opaque {type(self).__name__} is not asked for its '{name}'")
        value = self._assay_session.ask("get", self, name)
        if not issubclass(type(value), Remote):
            return value
        if name in _STEPS:
            return _stepping(value)
        return _confided(value) if name in PLAIN_NAMES else value

    def __setattr__(self, name: str, value: Any) -> None:
        self._assay_session.ask("set", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._assay_session.ask("delete", self, name)

    def __dir__(self) -> list[str]:
        return list(self._assay_session.ask("dir", self))

    def __str__(self) -> str:
        return text_of(self._assay_session.ask("str", self))

    def __repr__(self) -> str:
        return text_of(self._assay_session.ask("repr", self))

    def __copy__(self) -> Any:
        return self._assay_session.ask("copy", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._assay_session.ask("deepcopy", self)

    def __instancecheck__(self, instance: Any) -> bool:
        if not issubclass(type(instance), Remote):
            return type(instance).__name__ == type(self).__name__ and hasattr(instance, "_fields")
        return truth_of(self._assay_session.ask_for_truth("isinstance", instance, self))

    def __subclasscheck__(self, kind: Any) -> bool:
        if not issubclass(type(kind), Remote):
            return False
        return truth_of(self._assay_session.ask_for_truth("issubclass", kind, self))


def _binary(name: str) -> Callable[..., Any]:
    def operate(self: Remote, *operands: Any) -> Any:
        if not self._assay_live and not any(issubclass(type(operand), Remote) for operand in operands):
            return NotImplemented
        return self._assay_session.ask_for_truth("special", f"__{name}__", self, *operands)

    return operate


def _unary(name: str) -> Callable[..., Any]:
    def operate(self: Remote, *arguments: Any) -> Any:
        return self._assay_session.ask("special", f"__{name}__", self, *arguments)

    return operate


def _stepping(method: Remote) -> Callable[..., Any]:
    """Return the method of an iterator as a function that may end the tests' loop, as the tests expect by its name."""

    def step(*arguments: Any) -> Any:
        return method._assay_session.step("call", method, *arguments)

    return step


def _confided(method: Remote) -> Callable[..., Any]:
    """Return a method that plain values have too: what the tests hand it may be what they expect."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        if arguments or keywords:
            method._assay_session.shared = True
        return method._assay_session.ask("call", method, *arguments, **keywords)

    return call


def _next(self: Remote) -> Any:
    return self._assay_session.step("special", "__next__", self)


def _call(self: Remote, /, *arguments: Any, **keywords: Any) -> Any:
    return self._assay_session.ask("call", self, *arguments, **keywords)


def _contains(self: Remote, item: Any) -> bool:
    """Compare here, item by item, unless the object is live: the item may be what the tests expect."""
    if self._assay_live or issubclass(type(item), Remote):
        return truth_of(self._assay_session.ask_for_truth("contains", self, item))
    if not hasattr(type(self), "__iter__"):
        raise TypeError(f"an opaque {type(self).__name__} is not asked whether it contains plain data")
    items: Iterator[Any] = iter(self)
    return any(held is item or held == item for held in items)


def _bool(self: Remote) -> bool:
    return truth_of(self._assay_session.ask_for_truth("special", "__bool__", self))


def _exit(self: Remote, kind: type[BaseException] | None, raised: Any, trace: Any) -> bool:
    del trace
    name = None
    if kind is not None:
        name = next(str(base.__name__) for base in kind.__mro__ if vars(builtins).get(base.__name__) is base)
    return truth_of(self._assay_session.ask("exit", self, name, "" if raised is None else str(raised)))


def _hash(self: Remote) -> int:
    value = self._assay_session.ask("special", "__hash__", self)
    return value if type(value) is int else 0


_METHODS: dict[str, Callable[..., Any]] = {
    **{name: _binary(name) if name in _BINARY else _unary(name) for name in FORWARDED},
    "call": _call,
    "next": _next,
    "contains": _contains,
    "bool": _bool,
    "exit": _exit,
    "hash": _hash,
}
_classes: dict[tuple[str, str, frozenset[str]], type[Remote]] = {}


def remote_class(name: str, kind: str, special: list[Any]) -> type[Remote]:
    """Return the stand-ins' class for objects that have these special methods.

    Raises:
        MalformedError: the completion's process described nothing sensible.
    """
    if not all(type(method) is str for method in special) or not name.isidentifier() or len(name) > 200:
        raise MalformedError("not an object")
    present = frozenset(special) & FORWARDED
    key = (name, kind, present)
    if key not in _classes:
        body: dict[str, Any] = {f"__{method}__": _METHODS[method] for method in present}
        if "hash" not in present:
            body["__hash__"] = None
        # A type's own `__module__` and `__doc__` would hide the properties that ask for the object's.
        body |= {"__slots__": (), "_assay_kind": kind, "__module__": Remote.__dict__["__module__"]}
        body["__doc__"] = Remote.__dict__["__doc__"]
        _classes[key] = type(name, (Remote,), body)
    return _classes[key]


def local_exception(lineage: Json, known: dict[int, type[BaseException]]) -> type[BaseException]:
    """Return the class that stands for an exception class of the completion's.

    Args:
        lineage: `[origin, name, number]` of the class and its bases, up to the first builtin one.
        known: stand-ins by number, added to.

    Raises:
        MalformedError: it is not such a lineage.
    """
    if type(lineage) is not list or not 0 < len(lineage) <= _MAX_LINEAGE:
        raise MalformedError("not an exception's class")
    kind: type[BaseException] | None = None
    for entry in reversed(lineage):
        if type(entry) is not list or len(entry) != 3 or type(entry[0]) is not str or type(entry[1]) is not str:
            raise MalformedError("not an exception's class")
        origin, name, number = entry
        if kind is None:
            kind = vars(builtins).get(name)
            if origin != "builtin" or type(kind) is not type or not issubclass(kind, BaseException):
                raise MalformedError("not an exception's class")
        elif origin != "completion":
            kind = _loaded_exception(origin, name) or kind
        elif type(number) is not int or not name.isidentifier():
            raise MalformedError("not an exception's class")
        else:
            if number not in known:
                known[number] = type(name, (kind,), {**_EXCEPTION_BODY, "assay_number": number})
            kind = known[number]
    assert kind is not None
    return kind


def stand_in_exception(kind: type[BaseException], arguments: Any, text: str, remote: Remote | None) -> BaseException:
    """Return an exception like the one that the completion's code raised."""
    try:
        exception = kind(*arguments) if type(arguments) is tuple else kind(text)
    except Exception:
        exception = kind.__new__(kind)
        exception.args = (text,)
    vars(exception).update(assay_origin="completion", assay_text=text, assay_object=remote)
    return exception


def _exception_text(self: BaseException) -> str:
    return str(vars(self).get("assay_text", "")) if "assay_text" in vars(self) else Exception.__str__(self)


def _exception_attribute(self: BaseException, name: str) -> Any:
    remote = vars(self).get("assay_object")
    if remote is None:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
    return getattr(remote, name)


_EXCEPTION_BODY = {"__str__": _exception_text, "__getattr__": _exception_attribute}


def _loaded_exception(module: str, name: str) -> type[BaseException] | None:
    """Return an exception class of the standard library, if its module is loaded here; nothing is imported for it."""
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def text_of(answer: Any) -> str:
    """Return an answer that must be text.

    Raises:
        TypeError: it is not, as Python says of a `__str__` that returns something else.
    """
    if type(answer) is not str:
        raise TypeError("text was expected")
    return answer


def truth_of(answer: Any) -> bool:
    """Return an answer that must be a truth value.

    Raises:
        TypeError: it is not.
    """
    if type(answer) is not bool:
        raise TypeError("a truth value was expected")
    return answer
