"""Runs a test file with pytest against a completion that lives in another process.

Runs inside the sandbox, as the driver. The test file, and with it the expected values, exist only here; what it imports
of the completion is stood in for (see `verifiers.code.remote`).
"""

import ast
import random
import socket
import types
from collections.abc import Callable
from typing import Any

from verifiers.code.pytest_session import Watcher, run_pytest
from verifiers.code.rehearsal import Nothing
from verifiers.code.remote import Remote
from verifiers.code.solution_imports import SolutionNames, take_out_imports
from verifiers.code.tests_code import AssertCode, BrokenTestsError, loads, own_modules, read_tests
from verifiers.code.tests_driver import Run, compile_tests, drive, last_line, line_of, new_namespace


def run_test_file(argument: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Run the test file and return what it found, like `verifiers.code.tests_driver.run_tests`.

    Args:
        argument: as there, with `module`, the name by which the test file imports the completion.
        channel: to the completion's process.

    Returns:
        As there, and beside it `tests`: for each test its `name`, `status` and what else is told of a run.
    """
    return drive(PytestRun(argument, channel), argument)


class PytestRun(Run):
    """One run of a test file."""

    module_name = "tests"

    def __init__(self, argument: dict[str, Any], channel: socket.socket) -> None:
        super().__init__(argument, channel)
        self._solution: str = argument["module"]
        self._names = SolutionNames("")
        self._expected: list[str] | None = None
        self._watcher: Watcher | None = None

    def run(self) -> None:
        """Run everything."""
        self._names = take_out_imports(self._code, self._solution)
        tests = read_tests(self._names.code, None)
        modules = own_modules(tests)
        free = {name for name in tests.free if name not in modules}
        wanted = free if self._names.has_star else free & self._names.names.keys()
        if not wanted:
            raise BrokenTestsError(f"the test file takes nothing from the module {self._solution}")
        # A class may reach the tests by a fixture, where reading does not tell that its instances are used as objects.
        classes = {name for name in wanted if name[:1].isupper()}
        code = compile_tests(tests)
        self._rehearse(tests, code, wanted)
        self._session.wait_until_loaded()
        self._loaded = True
        self._session.announce(sorted(tests.attributes))
        for name in sorted(wanted):
            self._bind_name(name, self._names.names.get(name, name), live=name in tests.objects | classes)
        names = {**modules, **self._namespace, **self._assertions.names()}
        self._watcher = self._run_file(code, names, lambda: self._session.asked)
        self._session.settle()
        if self._session.failure is not None:
            raise self._session.failure

    def _rehearse(self, tests: AssertCode, code: types.CodeType, wanted: set[str]) -> None:
        """Run the file with nothing in the completion's place, to see which tests there are and whether they are sound.

        Raises:
            BrokenTestsError: one of them fails before it uses the completion, or none does use it.
        """
        nothing = Nothing()
        reached: list[str] = object.__getattribute__(nothing, "reached")
        names = {
            **new_namespace(self.module_name),
            **own_modules(tests),
            **self._assertions.names(),
            **dict.fromkeys(wanted, nothing),
        }
        state = random.getstate()
        try:
            watcher = self._run_file(code, names, lambda: len(reached))
        except BaseException as error:
            if self._limit is None and not reached and not self._loads(tests, error, wanted):
                raise BrokenTestsError(f"the test file fails before it asks for anything: {last_line(error)}") from None
            watcher = None
        finally:
            random.setstate(state)
            self._assertions.finished = 0
        if self._limit is not None:
            self._session.failure = None
            raise BrokenTestsError(f"the test file fails before it asks for anything: {self._limit}")
        if watcher is None:
            return  # the file itself uses the completion, and which tests there are may depend on it
        for name, ending in watcher.endings.items():
            if name not in watcher.users and not self._loads(tests, ending, wanted):
                raise BrokenTestsError(f"{name} fails before it uses the completion: {last_line(ending)}")
        if not watcher.names:
            raise BrokenTestsError("the test file has no tests that count")
        if not reached:
            raise BrokenTestsError("the tests never use the completion")
        self._expected = watcher.names

    @staticmethod
    def _loads(tests: AssertCode, ending: BaseException, wanted: set[str]) -> bool:
        """Whether a run ended where something of the completion's is named, and not for want of another name."""
        if isinstance(ending, NameError) and ending.name not in wanted:
            return False
        line = line_of(ending)
        return line is not None and bool(loads(tests, line) & wanted)

    def _run_file(self, code: types.CodeType, names: dict[str, Any], used: Callable[[], int]) -> Watcher:
        """Run the file's top level, then its tests."""
        namespace = dict(names)
        exec(code, namespace)  # noqa: S102 - the task's own code, in the sandbox
        # What stands for something of the completion's would be asked whether it is a test or a fixture.
        own = {name: value for name, value in namespace.items() if value is not names.get(name, code)}
        module = types.ModuleType(self.module_name)
        vars(module).update((n, v) for n, v in own.items() if not issubclass(type(v), (Remote, Nothing)))
        watcher = Watcher(module, lambda: self._assertions.finished, used)
        run_pytest(watcher)
        return watcher

    def report(self, ending: BaseException | None) -> dict[str, Any]:
        """Return the run's findings, each test's among them."""
        found = super().report(ending)
        if found["status"] == "broken_tests":
            return found
        tests = [self._test(name, found["status"]) for name in self._test_names()]
        found["tests"] = tests
        broken = next((test for test in tests if test["status"] == "broken_tests"), None)
        first = next((test for test in tests if test["status"] != "passed"), None)
        if not tests and found["status"] == "passed":
            return found | {"status": "failed", "message": "no test was run"}
        if broken is not None or (first is not None and found["status"] == "passed"):
            return found | (broken or first or {})
        return found

    def _test_names(self) -> list[str]:
        """Return the tests that must pass: those of the rehearsal, else those that ran and those that should have."""
        if self._expected is not None:
            return self._expected
        names = self._watcher.names if self._watcher is not None else []
        ran = {name.partition("[")[0] for name in names}
        return [*names, *(name for name in _static_names(self._code) if name not in ran)]

    def _test(self, name: str, status: str) -> dict[str, Any]:
        watcher = self._watcher
        if watcher is not None and name in watcher.endings:
            return {"name": name, **self.describe(watcher.endings[name])}
        if watcher is not None and name in watcher.finished:
            return {"name": name, "status": "passed", "message": ""}
        return {"name": name, "status": "failed" if status == "passed" else status, "message": "not run to its end"}

    def _judge(self, ending: BaseException | None) -> tuple[str, str]:
        status, message = super()._judge(ending)
        return status, self._names.names.get(message, message) if status == "missing_name" else message


def _static_names(code: str) -> list[str]:
    """Return the tests that the file defines at its top level and in its classes, those marked to be left out aside."""
    found = []
    for statement in ast.parse(code).body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_test(statement):
            found.append(statement.name)
        elif isinstance(statement, ast.ClassDef) and _is_test_class(statement):
            inner = (s for s in statement.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)))
            found += [f"{statement.name}::{method.name}" for method in inner if _is_test(method)]
    return found


def _is_test(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return function.name.startswith("test") and not _is_left_out(function.decorator_list)


def _is_test_class(definition: ast.ClassDef) -> bool:
    named = definition.name.startswith("Test") or any("TestCase" in ast.unparse(base) for base in definition.bases)
    return named and not _is_left_out(definition.decorator_list)


def _is_left_out(decorators: list[ast.expr]) -> bool:
    return any(word in ast.unparse(decorator) for decorator in decorators for word in ("skip", "xfail"))
