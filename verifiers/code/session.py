"""The driver's end of the channel: questions to the completion's process, and what to make of its answers.

Runs inside the sandbox, in the driver. The other process is hostile: every answer is checked, and the first one that
makes no sense ends the run for good, whatever the test code catches.
"""

import builtins
import inspect
import socket
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from verifiers.code.channel import ChannelClosed, TooLargeError, Violation, receive, send
from verifiers.code.plain import (
    MUTABLE,
    Decoder,
    Encoder,
    Json,
    MalformedError,
    NotPlainError,
    OversizeError,
    replace_content,
)
from verifiers.code.remote import Remote, local_exception, remote_class, stand_in_exception

_MAX_CALLBACK_DEPTH = 300
_SCALARS = (type(None), bool, int, float, str, bytes, complex)


class UnsendableError(BaseException):
    """The tests use a value that cannot cross to the completion. Not an `Exception`: test code may not catch it."""


class UnreadableResult(BaseException):
    """The completion answered with a value that cannot cross, such as one that contains itself."""


class Session:
    """Asks the completion's process, and remembers what the verdict needs to know."""

    def __init__(self, channel: socket.socket, own_module: str) -> None:
        """Wait for nothing yet.

        Args:
            channel: to the completion's process.
            own_module: `__module__` of the classes that the tests and the prompt define.
        """
        self.asked = 0
        """Questions that came from test code."""
        self.answered = 0
        """Those of them that were answered; from then on, what test code does may be the completion's doing."""
        self.shared = False
        """What decides was computed in the completion's process, or the tests hold what it changed."""
        self.failure: BaseException | None = None
        """What ended the run for good."""
        self.fresh: set[int] = set()
        """The ids of arguments that exist only for the call being made."""
        self._in_assertion = False
        self._outer: list[tuple[bool, int]] = []
        self._first_deferred = 0
        self._channel = channel
        self._own_module = own_module
        self._remotes: weakref.WeakValueDictionary[int, Remote] = weakref.WeakValueDictionary()
        self._released: list[int] = []
        self._functions: list[Callable[..., Any]] = []
        self._function_numbers: dict[int, int] = {}
        self._coroutines: weakref.WeakKeyDictionary[Any, Remote] = weakref.WeakKeyDictionary()
        self._exceptions: dict[int, type[BaseException]] = {}
        self._callback_depth = 0
        self._deferred: list[tuple[list[Any], Json]] = []

    def wait_until_loaded(self) -> None:
        """Wait until the completion's top level has run.

        Raises:
            ChannelClosed: it ended instead.
            Violation: it spoke out of turn.
        """
        if self._guarded(lambda: receive(self._channel)) != {"ready": True}:
            self._end(Violation("a message before the first question"))

    def announce(self, attributes: list[str]) -> None:
        """Tell which attributes make an instance of a plain type's subclass more than plain data for the tests."""
        self._question("attributes", (attributes,), {}, live=False)

    def lookup(self, name: str, *, live: bool) -> tuple[bool, Any]:
        """Return whether the completion defines the name, and its value or a stand-in for it."""
        answer = self._question("name", (name,), {}, live=live)
        if type(answer) is not tuple or len(answer) != 2 or type(answer[0]) is not bool:
            self._end(Violation("an answer that is none"))
        defined, value = answer
        return defined, value

    def ask(self, do: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Have the completion's process do something with an object of its own; the result lives as the object does.

        Raises:
            BaseException: what the completion's code raised, as the nearest class known here.
        """
        try:
            return self.step(do, *arguments, **keywords)
        except (StopIteration, StopAsyncIteration, GeneratorExit) as raised:
            # It would end a loop of the tests early, and with it their assertions.
            text = f"the completion raised {type(raised).__name__}"
            raise stand_in_exception(RuntimeError, (text,), text, None) from None

    def step(self, do: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Like `ask`, for a step of an iterator, which may say that there are no more."""
        self.asked += 1
        target = arguments[1 if do == "special" else 0]
        return self._question(do, arguments, keywords, live=target._assay_live)

    def ask_for_truth(self, do: str, /, *arguments: Any) -> Any:
        """Like `ask`, for what decides a comparison: the verdict will say so."""
        self.shared = True
        return self.ask(do, *arguments)

    def release(self, number: int) -> None:
        """Let the completion's process forget an object, with the next question."""
        self._released.append(number)

    def enter(self, *, assertion: bool) -> None:
        """Begin an assertion, or a statement that is none though an assertion runs it."""
        self._outer.append((self._in_assertion, self._first_deferred))
        self._in_assertion, self._first_deferred = assertion, len(self._deferred)

    def leave(self) -> None:
        """End what `enter` began."""
        try:
            self.settle()
        finally:
            self._in_assertion, self._first_deferred = self._outer.pop()

    def settle(self) -> None:
        """Let the tests see what calls within the innermost assertion changed in place."""
        while len(self._deferred) > self._first_deferred:
            containers, changed = self._deferred.pop(self._first_deferred)
            self._apply(containers, changed)

    def _question(self, do: str, arguments: tuple[Any, ...], keywords: dict[str, Any], *, live: bool) -> Any:
        if self.failure is not None:
            raise self.failure
        self.settle()
        held = any(not isinstance(a, (Remote, *_SCALARS)) and id(a) not in self.fresh for a in arguments)
        self.fresh.clear()
        encoder = Encoder(self._describe, track=True)
        try:
            message = {
                "do": do,
                "args": [encoder.encode(argument) for argument in arguments],
                "kwargs": [[name, encoder.encode(value)] for name, value in keywords.items()],
                "release": self._take_released(),
            }
            self._guarded(lambda: send(self._channel, message))
        except (OversizeError, TooLargeError, RecursionError) as refused:
            # What grew too large has grown on the completion's answers, unless there was none.
            self._end(UnreadableResult(str(refused)) if self.answered else UnsendableError(str(refused)))
        except NotPlainError as refused:
            self._end(UnsendableError(str(refused)))
        reply = self._guarded(self._reply)
        self.answered = self.asked
        return self._guarded(lambda: self._take(reply, encoder.containers, live=live, held=held or bool(keywords)))

    def _take_released(self) -> list[int]:
        released, self._released = self._released, []
        return [number for number in released if number not in self._remotes]

    def _reply(self) -> dict[str, Any]:
        while True:
            message = receive(self._channel)
            if "callback" not in message:
                return message
            self._answer_callback(message)

    def _take(self, reply: dict[str, Any], containers: list[Any], *, live: bool, held: bool) -> Any:
        """Return the value of a reply or raise its exception; apply or keep what it changed in place."""
        changed = reply.get("changed")
        if len(reply) != 2 or type(changed) is not list:
            raise Violation("an answer that is none")
        if "unsendable" in reply:
            raise UnreadableResult(str(reply["unsendable"])[:200])
        self.shared = self.shared or (held and bool(changed))
        if "raised" in reply:
            self._apply(containers, changed)
            raise self._exception(reply["raised"])
        if "value" not in reply:
            raise Violation("an answer that is none")
        if not (changed and self._in_assertion):
            self._apply(containers, changed)
            return self._decoder(containers, live=live).decode(reply["value"])
        copies = _copies(containers)
        self._apply(copies, changed)
        self._deferred.append((containers, changed))
        return self._decoder(copies, live=live).decode(reply["value"])

    def _apply(self, containers: list[Any], changed: Json) -> None:
        for entry in changed:
            if type(entry) is not list or len(entry) != 2 or type(entry[0]) is not int:
                raise Violation("a change that is none")
            number, form = entry
            if not 0 <= number < len(containers):
                raise Violation("a change of nothing")
            replace_content(containers[number], self._decoder(containers, live=False).decode(form))

    def _answer_callback(self, message: dict[str, Any]) -> None:
        number = message["callback"]
        if message.keys() != {"callback", "args", "kwargs"} or type(number) is not int:
            raise Violation("a callback that is none")
        if not 0 <= number < len(self._functions):
            raise Violation("a callback that is not allowed")
        if self._callback_depth >= _MAX_CALLBACK_DEPTH:
            send(self._channel, {"raised": ["RecursionError", "the tests' functions are called too deep"]})
            return
        decoder = self._decoder([], live=False)
        arguments = decoder.decode(message["args"])
        keywords = message["kwargs"]
        if type(arguments) is not list or type(keywords) is not list:
            raise Violation("a callback that is none")
        named = {str(name): decoder.decode(form) for name, form in map(_pair, keywords)}
        self._callback_depth += 1
        self.enter(assertion=False)
        try:
            value = self._functions[number](*arguments, **named)
            reply = {"value": Encoder(self._describe).encode(value)}
        except NotPlainError as refused:
            reply = {"raised": ["TypeError", f"the tests' function returned what cannot cross: {refused}"]}
        except AssertionError as failed:
            if failed.__dict__.get("assay_origin") is None:
                self.failure = failed  # an assertion of the tests, which the completion must not swallow
                raise
            reply = {"raised": _nearest_builtin(failed)}
        except (Exception, SystemExit) as raised:
            reply = {"raised": _nearest_builtin(raised)}
        finally:
            self._callback_depth -= 1
            self.leave()
        try:
            send(self._channel, reply)
        except TooLargeError:
            send(self._channel, {"raised": ["TypeError", "the tests' function returned too much"]})

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """Run a step of the exchange; what breaks the exchange is remembered and ends the run."""
        try:
            return step()
        except MalformedError as malformed:
            return self._end(Violation(str(malformed)))
        except (ChannelClosed, Violation, UnreadableResult, MemoryError) as broken:
            if not isinstance(broken, MemoryError) or broken.__dict__.get("assay_origin") is None:
                self.failure = self.failure or broken
            raise

    def _end(self, failure: BaseException) -> Any:
        self.failure = self.failure or failure
        raise failure

    # Values that are not plain.

    def _decoder(self, known: list[Any], *, live: bool) -> Decoder:
        hooks: Mapping[str, Callable[[Json], Any]] = {
            "object": lambda body: self._remote(body, live=live),
            "exception": self._exception_class,
            "coroutine": self._coroutine,
            "callback": self._own_function,
        }
        return Decoder(hooks, known)

    def _describe(self, value: Any) -> Json:  # noqa: PLR0911 - one line a kind
        kind = type(value)
        if issubclass(kind, Remote):
            return {"object": value._assay_number}
        if kind is type and "assay_number" in vars(value):
            return {"object": value.assay_number}
        if kind is types.CoroutineType and value in self._coroutines:
            return {"object": self._coroutines[value]._assay_number}
        standard = _standard_name(value)
        if standard is not None:
            return {"stdlib": standard}
        if callable(value):
            if inspect.iscoroutinefunction(value):
                raise NotPlainError("a coroutine function")
            return {"callback": self._register(value)}
        if hasattr(kind, "__next__"):
            return {"iterator": self._register(value.__next__)}
        if kind.__module__ == self._own_module and hasattr(value, "__dict__"):
            return {"instance": self._instance(value)}
        raise NotPlainError(f"a {kind.__name__}")

    def _register(self, function: Callable[..., Any]) -> Json:
        key = id(function)
        if key not in self._function_numbers:
            self._function_numbers[key] = len(self._functions)
            self._functions.append(function)
        return [self._function_numbers[key], getattr(function, "__name__", "function"), _parameters(function)]

    def _instance(self, value: Any) -> Json:
        encoder = Encoder(self._describe)
        kind = type(value)
        attributes = [[name, encoder.encode(held)] for name, held in vars(value).items()]
        methods = [
            [name, self._describe(getattr(value, name))]
            for name in sorted(dir(kind))
            if not name.startswith("_") and isinstance(inspect.getattr_static(kind, name), types.FunctionType)
        ]
        return [kind.__name__, attributes, methods]

    def _remote(self, body: Json, *, live: bool) -> Remote:
        if type(body) is not list or len(body) != 4:
            raise MalformedError("not an object")
        number, kind, name, special = body
        if type(number) is not int or type(kind) is not str or type(name) is not str or type(special) is not list:
            raise MalformedError("not an object")
        remote = self._remotes.get(number)
        if remote is None:
            remote = remote_class(name, kind, special)(self, number, live=live)
            self._remotes[number] = remote
        elif live:
            object.__setattr__(remote, "_assay_live", True)
        return remote

    def _own_function(self, body: Json) -> Callable[..., Any]:
        if type(body) is not int or not 0 <= body < len(self._functions):
            raise MalformedError("not a function of the tests")
        return self._functions[body]

    def _coroutine(self, body: Json) -> Any:
        waited_for = self._remote([body, "coroutine", "coroutine", []], live=False)

        async def wait() -> Any:
            return self.ask("await", waited_for)

        coroutine = wait()
        self._coroutines[coroutine] = waited_for
        return coroutine

    def _exception_class(self, lineage: Json) -> type[BaseException]:
        return local_exception(lineage, self._exceptions)

    def _exception(self, body: Json) -> BaseException:
        if type(body) is not dict or body.keys() != {"lineage", "args", "text", "object"}:
            raise MalformedError("not an exception")
        decoder = self._decoder([], live=False)
        kind = self._exception_class(body["lineage"])
        arguments, text, number = decoder.decode(body["args"]), decoder.decode(body["text"]), body["object"]
        remote = None if number is None else self._remote([number, "instance", kind.__name__, []], live=False)
        return stand_in_exception(kind, arguments, str(text), remote)


def _pair(entry: Json) -> tuple[Json, Json]:
    if type(entry) is not list or len(entry) != 2:
        raise MalformedError("not a pair")
    return entry[0], entry[1]


def _copies(containers: list[Any]) -> list[Any]:
    """Return copies of the containers that refer to each other as the containers do."""
    copies = [container.copy() for container in containers]
    of = {id(container): copied for container, copied in zip(containers, copies, strict=True)}
    for copied in copies:
        if isinstance(copied, dict):
            replace_content(copied, {key: of.get(id(value), value) for key, value in copied.items()})
        elif isinstance(copied, list):
            copied[:] = [of.get(id(value), value) for value in copied]
    return copies


assert all(hasattr(kind, "copy") for kind in MUTABLE)


def _nearest_builtin(raised: BaseException) -> Json:
    try:
        text = str(raised)[:2000]
    except BaseException:  # it may be made of the completion's values
        text = ""
    kinds = (kind.__name__ for kind in type(raised).__mro__ if vars(builtins).get(kind.__name__) is kind)
    return [next(kinds, "RuntimeError"), text]


def _standard_name(value: Any) -> str | None:
    """Return `module:name` of a function or class of the standard library, which the completion's process has too."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if type(module) is not str or type(name) is not str or module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    if module == "__main__" or "." in name or getattr(sys.modules.get(module), name, None) is not value:
        return None
    return f"{module}:{name}"


def _parameters(function: Callable[..., Any]) -> list[str] | None:
    """Return the parameters' names when all are plain positional ones, else None."""
    if type(function) is not types.FunctionType:
        return None
    parameters = inspect.signature(function).parameters.values()
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    if any(p.kind is not plain or p.default is not inspect.Parameter.empty for p in parameters):
        return None
    return [parameter.name for parameter in parameters]
