"""Loads a completion and answers for what it defines. Runs inside the sandbox, in the completion's own process.

The other end of the channel is `verifiers.code.tests_driver`, which runs the tests. It asks (`{"do": …}`), this side
answers with a value or an exception. Everything that the completion can do here, it could do by returning another
value: the driver takes nothing from this process but values.
"""

import builtins
import copy
import linecache
import operator
import socket
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from verifiers.code.channel import FORWARDED, ChannelClosed, TooLargeError, receive, send
from verifiers.code.interpreter import PROGRAM_FILE, start_program
from verifiers.code.plain import MUTABLE, Decoder, Encoder, Json, NotPlainError
from verifiers.code.program import assemble

MODULE_NAME = "solution"
_OWN_FRAMES = 12
_KINDS: tuple[tuple[type, str], ...] = (
    (types.GeneratorType, "generator"),
    (types.FunctionType, "function"),
    (types.MethodType, "method"),
    (types.BuiltinFunctionType, "function"),
    (types.ModuleType, "module"),
    (type, "class"),
)


def serve_completion(argument: dict[str, Any], channel: socket.socket) -> None:
    """Run the program's top level, then answer the driver until it has no more questions.

    Args:
        argument: `prompt`, `code` and `entry_point`, see `verifiers.code.program.assemble`.
        channel: to the driver.

    Raises:
        BaseException: what the program's top level ended with.
    """
    source = assemble(argument["prompt"], argument["code"], argument["entry_point"])
    linecache.cache[PROGRAM_FILE] = (len(source), None, source.splitlines(keepends=True), PROGRAM_FILE)
    module = start_program(MODULE_NAME)
    code = compile(source, PROGRAM_FILE, "exec", dont_inherit=True)
    exec(code, module.__dict__)  # noqa: S102 - in the sandbox
    Server(channel, module).serve()


class Server:
    """Answers requests, with the objects that it handed out by number."""

    def __init__(self, channel: socket.socket, module: types.ModuleType) -> None:
        self._channel = channel
        self._module = module
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._next_number = 0
        self._callbacks: dict[int, Callable[..., Any]] = {}
        self._callback_numbers: dict[int, int] = {}
        self._hooks: dict[str, Callable[[Any], Any]] = {
            "object": lambda number: self._objects[number],
            "callback": self._callback,
            "iterator": self._iterator,
            "instance": self._instance,
            "stdlib": _from_standard_library,
        }
        self._decoders: list[Decoder] = []
        self._attributes: frozenset[str] = frozenset()

    def serve(self) -> None:
        """Answer until the driver closes the channel."""
        send(self._channel, {"ready": True})
        try:
            self._wait()
        except ChannelClosed:
            return

    def _wait(self) -> dict[str, Any]:
        """Answer requests until something else comes, the reply to a callback, and return it."""
        while True:
            message = receive(self._channel)
            if "do" not in message:
                return message
            for number in message.get("release", ()):
                self._numbers.pop(id(self._objects.pop(number, None)), None)
            self._answer(message)

    def _answer(self, message: dict[str, Any]) -> None:
        decoder = Decoder(self._hooks, track=True)
        self._decoders.append(decoder)
        arguments = [decoder.decode(form) for form in message["args"]]
        keywords = {name: decoder.decode(form) for name, form in message.get("kwargs", ())}
        before = [_shallow_copy(container) for container in decoder.containers]
        try:
            value = getattr(self, f"_do_{message['do']}")(*arguments, **keywords)
            reply = {"value": self._encoder(decoder.containers).encode(value)}
        except ChannelClosed:
            raise
        except NotPlainError as refused:
            reply = {"unsendable": str(refused)}
        except BaseException as raised:
            reply = {"raised": self._describe_exception(raised)}
        finally:
            self._decoders.pop()
        try:
            reply["changed"] = self._changes(decoder.containers, before)
            send(self._channel, reply)
        except (NotPlainError, TooLargeError) as refused:
            send(self._channel, {"unsendable": str(refused), "changed": []})

    def _changes(self, containers: list[Any], before: list[Any]) -> list[Json]:
        changed = [n for n, held in enumerate(containers) if not _same_content(held, before[n])]
        encoder = self._encoder(containers) if changed else None
        return [[number, encoder.content(containers[number])] for number in changed] if encoder else []

    # What the driver may ask for, by the name after `_do_`.

    def _do_name(self, name: str) -> tuple[bool, Any]:
        defined = self._module.__dict__
        return name in defined, defined.get(name)

    def _do_attributes(self, names: list[str]) -> None:
        """Note the attributes that the tests use and no plain value has."""
        self._attributes = frozenset(names)

    def _do_call(self, target: Any, *arguments: Any, **keywords: Any) -> Any:
        return target(*arguments, **keywords)

    def _do_special(self, name: str, target: Any, *arguments: Any) -> Any:
        return getattr(type(target), name)(target, *arguments)

    def _do_str(self, target: Any) -> str:
        return str(target)

    def _do_repr(self, target: Any) -> str:
        return repr(target)

    def _do_contains(self, target: Any, item: Any) -> bool:
        return item in target

    def _do_exit(self, target: Any, kind: str | None, text: str) -> bool:
        """Leave a context; the exception crosses as its nearest builtin class and its text."""
        raised = None if kind is None else getattr(builtins, kind)(text)
        return bool(type(target).__exit__(target, kind and type(raised), raised, None))

    def _do_copy(self, target: Any) -> Any:
        return copy.copy(target)

    def _do_deepcopy(self, target: Any) -> Any:
        return copy.deepcopy(target)

    def _do_get(self, target: Any, name: str) -> Any:
        return getattr(target, name)

    def _do_set(self, target: Any, name: str, value: Any) -> None:
        setattr(target, name, value)

    def _do_delete(self, target: Any, name: str) -> None:
        delattr(target, name)

    def _do_dir(self, target: Any) -> list[str]:
        return dir(target)

    def _do_isinstance(self, target: Any, kind: Any) -> bool:
        return isinstance(target, kind)

    def _do_issubclass(self, target: Any, kind: Any) -> bool:
        return issubclass(target, kind)

    def _do_await(self, target: Any) -> Any:
        import asyncio  # noqa: PLC0415 - a module of many, whose pages every other job's fork would pay for

        return asyncio.run(target)

    # Values that are not plain.

    def _encoder(self, containers: Iterable[Any] = ()) -> Encoder:
        return Encoder(self._describe, containers, is_object=self._is_object)

    def _is_object(self, value: Any) -> bool:
        """Whether a value of a class of the program's has what the tests use, which its plain base would not."""
        kind = type(value)
        if kind.__module__ != MODULE_NAME:
            return False
        return any(hasattr(value, name) for name in self._attributes.difference(getattr(kind, "_fields", ())))

    def _describe(self, value: Any) -> Json:
        if id(value) in self._callback_numbers:
            return {"callback": self._callback_numbers[id(value)]}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {"exception": self._lineage(value)}
        number = self._number(value)
        if isinstance(value, types.CoroutineType):
            return {"coroutine": number}
        kind = next((word for of, word in _KINDS if isinstance(value, of)), "instance")
        special = sorted(name for name in FORWARDED if _has_special(type(value), f"__{name}__"))
        return {"object": [number, kind, type(value).__name__, special]}

    def _number(self, value: Any) -> int:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = self._next_number
            self._objects[self._next_number] = value
            self._next_number += 1
        return self._numbers[id(value)]

    def _lineage(self, kind: type[BaseException]) -> list[Json]:
        """Return the class and its bases as far as the first builtin one: `[origin, name, number]` each."""
        lineage: list[Json] = []
        for base in kind.__mro__:
            if getattr(builtins, base.__name__, None) is base:
                return [*lineage, ["builtin", base.__name__, None]]
            if base.__module__.partition(".")[0] in sys.stdlib_module_names:
                lineage.append([base.__module__, base.__name__, None])
            elif issubclass(base, BaseException):
                lineage.append(["completion", base.__name__, self._number(base)])
        return lineage

    def _describe_exception(self, raised: BaseException) -> Json:
        try:
            arguments = Encoder(_refuse).encode(raised.args)
        except NotPlainError:
            arguments = None
        try:
            text = str(raised)[:2000]
        except Exception:
            text = ""
        own = type(raised).__module__ == MODULE_NAME
        return {
            "lineage": self._lineage(type(raised)),
            "args": arguments,
            "text": Encoder(_refuse).encode(text),
            "object": self._number(raised) if own else None,
        }

    def _callback(self, body: Json) -> Callable[..., Any]:
        number, name, parameters = body
        if number not in self._callbacks:

            def call(*arguments: Any, **keywords: Any) -> Any:
                return self._call_back(number, arguments, keywords)

            function = call
            if parameters is not None:  # so that code which looks at the signature finds it
                listed = ", ".join(parameters)
                function = eval(f"lambda {listed}: call({listed})", {"call": call})  # noqa: S307 - the tests' own names
            function.__name__ = function.__qualname__ = name
            self._callbacks[number] = function
            self._callback_numbers[id(function)] = number
        return self._callbacks[number]

    def _iterator(self, body: Json) -> Any:
        step = self._callback(body)
        while True:
            try:
                item = step()
            except StopIteration:
                return
            yield item

    def _call_back(self, number: int, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        encoder = self._encoder()
        forms = [encoder.encode(argument) for argument in arguments]
        named = [[name, encoder.encode(value)] for name, value in keywords.items()]
        send(self._channel, {"callback": number, "args": forms, "kwargs": named})
        # The frames until the program's next one are not the program's.
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + _OWN_FRAMES)
        try:
            reply = self._wait()
        finally:
            sys.setrecursionlimit(before)
        if "raised" in reply:
            kind, text = reply["raised"]
            raise getattr(builtins, kind, RuntimeError)(text)
        return Decoder(self._hooks).decode(reply["value"])

    def _instance(self, body: Json) -> Any:
        """Rebuild an object of a class that the prompt or the tests define."""
        name, attributes, methods = body
        decode = self._decoders[-1].decode if self._decoders else Decoder(self._hooks).decode
        kind = self._module.__dict__.get(name)
        known = isinstance(kind, type)
        rebuilt: Any = object.__new__(kind) if isinstance(kind, type) else types.SimpleNamespace()
        for attribute, form in attributes:
            object.__setattr__(rebuilt, attribute, decode(form))
        for method, form in methods if not known else ():
            object.__setattr__(rebuilt, method, decode(form))
        return rebuilt


def _refuse(value: Any) -> Json:
    raise NotPlainError(type(value).__name__)


def _has_special(kind: type, name: str) -> bool:
    """Whether instances have a special method; looking it up on the class would also find what its metaclass has."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None) is not None


def _from_standard_library(body: str) -> Any:
    module, _, name = body.partition(":")
    return operator.attrgetter(name)(__import__(module, fromlist=["*"]))


def _shallow_copy(container: Any) -> Any:
    return container.copy() if not isinstance(container, dict) else list(container.items())


def _same_content(container: Any, before: Any) -> bool:
    """Whether a container holds what it held, told by identity, so that no `__eq__` of the completion is asked."""
    if isinstance(container, dict):
        pairs = list(container.items())
        return len(pairs) == len(before) and all(
            k is b and v is w for (k, v), (b, w) in zip(pairs, before, strict=True)
        )
    if isinstance(container, (set, bytearray)):
        return bool(container == before)
    return len(container) == len(before) and all(map(operator.is_, container, before))


assert all(hasattr(kind, "copy") for kind in MUTABLE)
