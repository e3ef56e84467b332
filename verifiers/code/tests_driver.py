"""Runs assertion-style tests against a completion that lives in another process.

Runs inside the sandbox, as the driver: the completion's process cannot reach it, except to answer its questions. The
tests, and with them the expected values, exist only here.
"""

import ast
import builtins
import random
import re
import signal
import socket
import sys
import time
import traceback
import types
from typing import Any

from verifiers.code.assertions import Assertions, Rewriter
from verifiers.code.channel import ChannelClosed, Violation
from verifiers.code.rehearsal import Nothing, rehearse
from verifiers.code.remote import Remote
from verifiers.code.session import Session, UnreadableResult, UnsendableError
from verifiers.code.tests_code import (
    CHECK_FUNCTION,
    TESTS_FILE,
    AssertCode,
    BrokenTestsError,
    loads,
    own_modules,
    read_tests,
    unfinished_names,
)

PROMPT_FILE = "prompt.py"
_SHARE_OF_TIME = 0.9
_CLOCK_TOLERANCE = 0.9  # the timers count in ticks, the clocks do not
_KEPT_SIGNALS = {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGALRM, signal.SIGPROF),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGSYS),
}
_SHOWN = 500
_NEVER_USED = "the tests never use the completion"
_RECURSION_LIMIT = 6000  # deep values and callbacks cross by recursion, beside what the tests themselves need


class TimeUp(BaseException):
    """The time of this process is nearly used up."""


def run_tests(argument: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Run the tests and return what they found.

    Args:
        argument: `code`, `prompt` and `entry_point` of the task, and the limits `cpu_seconds` and `wall_seconds`.
        channel: to the completion's process.

    Returns:
        `status`: `passed`, `failed` (an assertion was false, or the tests could not work with an answer), `raised` (the
        completion's code raised), `ended` (its process is gone), `missing_name`, `violation`, `unreadable`,
        `cpu_timeout`, `wall_timeout`, `memory`, or `broken_tests` (no completion can be judged by them). Beside it
        `message`, where it happened (`line`, `source`, `left`, `right`), `loaded`, `calls`, `shared`.
    """
    return drive(Run(argument, channel), argument)


def drive(run: "Run", argument: dict[str, Any]) -> dict[str, Any]:
    """Run a run within its limits and return its report."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    _ignore_signals()
    ending = None
    try:
        try:
            run.limit_time(argument["cpu_seconds"], argument["wall_seconds"])
            run.run()
        finally:
            run.lift_limits()
    except BaseException as raised:
        ending = raised
    try:
        return run.report(ending)
    except BaseException as raised:  # what the run ended with cannot even be told
        message = type(raised).__name__
        return {"status": "failed", "message": message, "loaded": True, "calls": 0, "shared": True}


def _ignore_signals() -> None:
    """Ignore what the completion's process might send; faults of this process itself still end it."""
    for number in signal.valid_signals() - _KEPT_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Run:
    """One run of a task's tests."""

    module_name = "__main__"
    """`__name__` of the test code."""

    def __init__(self, argument: dict[str, Any], channel: socket.socket) -> None:
        self._code: str = argument["code"]
        self._prompt: str = argument["prompt"]
        self._entry_point: str | None = argument["entry_point"]
        self._session = Session(channel, self.module_name)
        self._assertions = Assertions(self._session)
        self._namespace = new_namespace(self.module_name)
        self._missing: set[str] = set()
        self._values = 0
        self._loaded = False
        self._means_builtins = False
        self._limit: str | None = None

    def limit_time(self, cpu_seconds: float, wall_seconds: float) -> None:
        """Stop a little before the sandbox would, while there is time to say where."""
        timers = {
            signal.SIGPROF: (signal.ITIMER_PROF, time.process_time, cpu_seconds * _SHARE_OF_TIME),
            signal.SIGALRM: (signal.ITIMER_REAL, time.monotonic, wall_seconds * _SHARE_OF_TIME),
        }
        begun = {number: clock() for number, (_, clock, _) in timers.items()}

        def stop(number: int, _frame: types.FrameType | None) -> None:
            timer, clock, allowed = timers[signal.Signals(number)]
            used = clock() - begun[signal.Signals(number)]
            if used < allowed * _CLOCK_TOLERANCE:  # the completion may send such a signal, it cannot advance the clock
                signal.setitimer(timer, max(allowed - used, 0.01))
                return
            self._limit = "cpu_timeout" if number == signal.SIGPROF else "wall_timeout"
            self._session.failure = self._session.failure or TimeUp()
            raise TimeUp

        for number, (timer, _, allowed) in timers.items():
            signal.signal(number, stop)
            signal.setitimer(timer, allowed)

    @staticmethod
    def lift_limits() -> None:
        """Take the limits back; from here on nothing interrupts."""
        for timer, number in ((signal.ITIMER_PROF, signal.SIGPROF), (signal.ITIMER_REAL, signal.SIGALRM)):
            signal.setitimer(timer, 0)
            signal.signal(number, signal.SIG_IGN)

    def run(self) -> None:
        """Run everything; returns only when all test code has run to its end."""
        tests = read_tests(self._code, self._entry_point)
        unfinished = self._run_prompt(self._namespace)
        self._namespace = {**own_modules(tests), **self._namespace, **self._assertions.names()}
        wanted = self._wanted(tests, unfinished)
        code = compile_tests(tests)
        self._rehearse(tests, code, wanted)
        self._session.wait_until_loaded()
        self._loaded = True
        self._session.announce(sorted(tests.attributes))
        candidate = self._bind(tests, wanted)
        self._run_code(tests, code, self._namespace, candidate)
        self._session.settle()
        if self._session.failure is not None:
            raise self._session.failure
        if not self._session.asked + self._values:
            raise BrokenTestsError(_NEVER_USED) if self._means_builtins else AssertionError("nothing could be asked")
        if tests.checks and not self._assertions.finished:
            raise AssertionError("no assertion was reached")

    def _run_prompt(self, namespace: dict[str, Any]) -> set[str]:
        """Run the prompt's code here as well, for helpers that the completion must not replace.

        Returns:
            The names that it leaves for the completion to define.
        """
        for source in (self._prompt, f"{self._prompt}\n    pass\n"):
            try:
                tree = ast.parse(source, PROMPT_FILE)
                code = compile(tree, PROMPT_FILE, "exec", dont_inherit=True, optimize=0)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
            try:
                exec(code, namespace)  # noqa: S102 - the task's own code, in the sandbox
            except Exception as error:
                raise BrokenTestsError(f"the prompt's code fails: {last_line(error)}") from None
            return unfinished_names(tree)
        return set()

    def _wanted(self, tests: AssertCode, unfinished: set[str]) -> set[str]:
        """Return the names that the tests take from the completion."""
        entry = {self._entry_point} if self._entry_point is not None else set()
        wanted = {name for name in tests.free if name not in self._namespace or name in unfinished} | entry
        # Without any, the tests may mean a function of the completion that is called like a builtin one.
        self._means_builtins = not wanted
        return wanted or set(tests.builtin)

    def _rehearse(self, tests: AssertCode, code: types.CodeType, wanted: set[str]) -> None:
        """Run the tests with nothing in the completion's place; they must come to use it.

        Raises:
            BrokenTestsError: they end before, so that no completion can be judged.
        """
        nothing = Nothing()
        namespace = new_namespace(self.module_name)
        self._run_prompt(namespace)
        namespace |= {**own_modules(tests), **self._assertions.names(), **dict.fromkeys(wanted, nothing)}
        state = random.getstate()
        reached, ending = rehearse(nothing, lambda: self._run_code(tests, code, namespace, nothing))
        random.setstate(state)
        self._assertions.finished = 0
        if self._limit is not None:
            self._session.failure = None
            raise BrokenTestsError(f"the test code fails before it asks for anything: {self._limit}")
        line = line_of(ending)
        if reached or (line is not None and loads(tests, line) & wanted):
            return
        what = (
            _NEVER_USED if ending is None else f"the test code fails before it asks for anything: {last_line(ending)}"
        )
        raise BrokenTestsError(what)

    def _bind(self, tests: AssertCode, wanted: set[str]) -> Any:
        """Let the wanted names stand for what the completion defines, and return the entry point."""
        for name in sorted(wanted):
            self._bind_name(name, name, live=name in tests.objects)
        if self._entry_point in self._missing:
            raise NameError(f"name '{self._entry_point}' is not defined", name=self._entry_point)
        return self._namespace.get(self._entry_point or "")

    def _bind_name(self, name: str, defined_as: str, *, live: bool) -> None:
        defined, value = self._session.lookup(defined_as, live=live)
        if not defined:
            self._missing.add(name)
            self._namespace.pop(name, None)
            return
        self._namespace[name] = value
        self._values += not issubclass(type(value), Remote)

    def _run_code(self, tests: AssertCode, code: types.CodeType, namespace: dict[str, Any], candidate: Any) -> None:
        exec(code, namespace)  # noqa: S102 - the task's own code, in the sandbox
        check = namespace.get(CHECK_FUNCTION)
        if tests.defines_check and not tests.calls_check and self._entry_point is not None and callable(check):
            check(candidate)

    def report(self, ending: BaseException | None) -> dict[str, Any]:
        """Return the run's findings. Nothing is asked any more: no limit would end an answer that never comes."""
        ending = self._session.failure or ending
        self._session.failure = ending or ChannelClosed()
        found = self.describe(ending) | {"loaded": self._loaded}
        found |= {"calls": self._session.asked, "shared": self._session.shared}
        if found["status"] == "failed" and self._assertions.sides is not None:
            left, right = self._assertions.sides
            found |= {"left": _stable(left)[:_SHOWN], "right": _stable(right)[:_SHOWN]}
        return found

    def describe(self, ending: BaseException | None) -> dict[str, Any]:
        """Return what an ending is called, its message, and where in the tests it happened."""
        status, message = self._judge(ending)
        found: dict[str, Any] = {"status": status, "message": _stable(message)[:_SHOWN]}
        line = line_of(ending)
        if line is not None:
            lines = self._code.splitlines()
            found |= {"line": line, "source": lines[line - 1].strip()[:_SHOWN] if line <= len(lines) else ""}
        return found

    def _judge(self, ending: BaseException | None) -> tuple[str, str]:  # noqa: PLR0911 - one line an ending
        match ending:
            case None:
                return "passed", ""
            case BrokenTestsError():
                return "broken_tests", str(ending)
            case UnsendableError():
                status = "failed" if self._session.answered or self._values else "broken_tests"
                return status, f"the tests give the completion what cannot cross to its process: {ending}"
            case ChannelClosed():
                return "ended", ""
            case Violation():
                return "violation", str(ending)
            case UnreadableResult():
                return "unreadable", str(ending)
        if vars(ending).get("assay_origin") is not None:
            return "raised", last_line(ending)
        if isinstance(ending, NameError) and ending.name in self._missing:
            return "missing_name", str(ending.name)
        if isinstance(ending, (SystemExit, ImportError)) and not self._session.answered + self._values:
            return "broken_tests", f"the test code ends in {last_line(ending)}"
        return self._judge_own(ending)

    def _judge_own(self, ending: BaseException) -> tuple[str, str]:
        """Judge an ending that came from test code, which by then had come to use the completion."""
        if self._means_builtins and not self._session.asked + self._values:
            return "missing_name", ", ".join(sorted(self._missing))
        if self._limit is not None:
            return self._limit, ""
        if isinstance(ending, MemoryError):
            return "memory", ""
        return "failed", _message(ending) if isinstance(ending, AssertionError) else last_line(ending)


def new_namespace(module_name: str) -> dict[str, Any]:
    """Return what test code finds before anything of its own."""
    return {"__name__": module_name, "__builtins__": builtins}


def compile_tests(tests: AssertCode) -> types.CodeType:
    """Return test code that tells of its assertions."""
    tree = ast.fix_missing_locations(Rewriter().visit(tests.tree))
    code: types.CodeType = compile(tree, TESTS_FILE, "exec", dont_inherit=True, optimize=0)  # assertions stay under -O
    return code


def line_of(ending: BaseException | None) -> int | None:
    """Return the line of the test code where the run ended."""
    line = None
    step = ending.__traceback__ if ending is not None else None
    while step is not None:
        if step.tb_frame.f_code.co_filename == TESTS_FILE:
            line = step.tb_lineno
        step = step.tb_next
    return line


def last_line(error: BaseException) -> str:
    """Return the last line of a traceback."""
    try:
        return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    except BaseException:  # its text may be the completion's, and be none
        return type(error).__name__


def _message(failed: AssertionError) -> str:
    """Return an assertion's message, which may be a value of the completion's that has no text."""
    try:
        return str(failed)
    except BaseException:
        return f"an assertion about a {type(failed.args[0]).__name__}"


def _stable(text: str) -> str:
    """Take out what differs between runs: memory addresses. Lone surrogates become question marks."""
    return re.sub(r"0x[0-9a-fA-F]{6,}", "0x…", text).encode("utf-8", "replace").decode()
