"""Runs the tests of a module that is already there with pytest, and says what each did.

Runs inside the sandbox, in the driver, where nothing of the completion's is: no configuration, no `conftest.py` and no
plugin but pytest's own are read.
"""

import os
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from verifiers.code.assertions import CHECK
from verifiers.code.tests_code import TESTS_FILE

_LEFT_OUT = (
    *("cacheprovider", "doctest", "faulthandler", "junitxml", "logging", "pastebin", "stepwise"),
    *("threadexception", "unraisableexception", "nose", "warnings"),
)
_ARGUMENTS = [
    *("--assert=plain", "--noconftest", "--capture=no", "--rootdir=/", "-c", os.devnull, "-qq"),
    *(word for name in _LEFT_OUT for word in ("-p", f"no:{name}")),
]
_NOT_COUNTED = ("skip", "xfail")
"""Marks by which the author says that a test's result does not count."""


class _OwnModule(pytest.Module):
    """A module of tests that need not be imported."""

    own: types.ModuleType

    def _getobj(self) -> types.ModuleType:
        return self.own


class Watcher:
    """A plugin: collects the tests of a module, and hears how each ended."""

    def __init__(self, module: types.ModuleType, checked: Callable[[], int], used: Callable[[], int]) -> None:
        """Prepare.

        Args:
            module: with the tests.
            checked: how many assertions have been evaluated.
            used: how often the completion has been used.
        """
        self.names: list[str] = []
        """The tests that count, in order."""
        self.endings: dict[str, BaseException] = {}
        """How tests failed, by name: the first exception of set-up, call and tear-down."""
        self.finished: set[str] = set()
        """Tests whose last step has been taken."""
        self.users: set[str] = set()
        """Tests that used the completion."""
        self._module = module
        self._checked = checked
        self._used = used

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collect the module's tests instead of files."""
        node = _OwnModule.from_parent(session, path=Path("/") / TESTS_FILE)
        node.own = self._module
        items = [item for item in session.genitems(node) if isinstance(item, pytest.Function) and _counts(item)]
        session.items = list(items)
        session.testscollected = len(items)
        self.names = [_name(item) for item in items]
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note whether a test uses the completion."""
        before = self._used()
        result = yield
        if self._used() > before:
            self.users.add(_name(item))
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """See to it that a test which has assertions comes to evaluate one."""
        before = self._checked()
        result = yield
        if CHECK in pyfuncitem.function.__code__.co_names and self._checked() == before:
            raise AssertionError("no assertion was reached")
        return result

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Note how a step ended, without the long text that pytest would make of it.

        After the hook by which pytest takes over what unittest has caught, before the one that makes reports.
        """
        name = _name(item)
        if call.excinfo is not None:
            self.endings.setdefault(name, call.excinfo.value)
        if call.when == "teardown":
            self.finished.add(name)
        return pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="passed" if call.excinfo is None else "failed",
            longrepr=None,
            when=call.when,  # type: ignore[arg-type]  # never "collect" here
        )


def run_pytest(watcher: Watcher) -> None:
    """Run the watcher's module.

    Raises:
        CollectionError: pytest did not come to run tests.
    """
    with _quiet():
        code = pytest.main(list(_ARGUMENTS), plugins=[watcher])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise CollectionError(f"pytest ended with {pytest.ExitCode(code).name}")


class CollectionError(Exception):
    """The tests could not be collected."""


@contextmanager
def _quiet() -> Iterator[None]:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _counts(item: pytest.Function) -> bool:
    """Whether a test's result counts: it is the test file's own, and not marked as one to leave out."""
    code = getattr(item.function, "__code__", None)
    own = isinstance(code, types.CodeType) and code.co_filename == TESTS_FILE
    return own and not any(item.get_closest_marker(mark) for mark in _NOT_COUNTED)


def _name(item: pytest.Item) -> str:
    return item.nodeid.rpartition(f"{TESTS_FILE}::")[2]
