"""The output of `assay grade`: verdicts as JSON Lines, in the order of the tasks."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from assay import Verdict

from service.cli.errors import InputError, UnavailableError


class VerdictFile:
    """Writes verdicts in the order of their tasks, however they come, and keeps none of them in memory.

    A regular file appears under its name only when `commit` is called, complete; without it, nothing is left behind.
    """

    def __init__(self, name: str) -> None:
        """Open the output: a path, or `-` for standard output.

        Raises:
            InputError: the output cannot be written.
        """
        self._name = name
        self._stack = ExitStack()
        self._target: Path | None = None
        self._next = 0
        self._waiting: dict[int, tuple[int, int]] = {}
        try:
            self._out = self._open(name)
            # Verdicts that came before their turn lie on disk: one slow task must not fill the memory.
            self._early: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        except OSError as error:
            self._stack.close()
            raise InputError(f"{name} cannot be written: {error.strerror}") from None

    def _open(self, name: str) -> IO[bytes]:
        if name == "-":
            return sys.stdout.buffer
        path = Path(name).resolve()
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            return self._stack.enter_context(path.open("wb"))  # a device or a pipe is written to, never replaced
        self._target = path
        self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._stack.callback(self._temporary.unlink, missing_ok=True)
        return self._stack.enter_context(self._temporary.open("xb"))

    def __enter__(self) -> Self:
        """Return the open file."""
        return self

    def add(self, index: int, verdict: Verdict) -> None:
        """Take the verdict of the task at that position, counted from 0; each exactly once.

        Raises:
            UnavailableError: there is no room for it.
        """
        with self._telling():
            self._add(index, verdict)

    def _add(self, index: int, verdict: Verdict) -> None:
        line = verdict.model_dump_json().encode() + b"\n"
        if index != self._next:
            self._waiting[index] = (self._early.seek(0, os.SEEK_END), len(line))
            self._early.write(line)
            return
        self._out.write(line)
        self._next += 1
        while (place := self._waiting.pop(self._next, None)) is not None:
            self._early.seek(place[0])
            self._out.write(self._early.read(place[1]))
            self._next += 1

    def commit(self, expected: int) -> None:
        """Put the complete file in its place.

        Raises:
            UnavailableError: fewer verdicts than `expected` came, or there is no room for them.
        """
        if self._next != expected:
            raise UnavailableError(f"only {self._next} of {expected} tasks were answered in order; nothing was written")
        with self._telling():
            self._out.flush()
            if self._target is not None:
                self._temporary.replace(self._target)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise  # whoever read the output has enough of it
        except OSError as error:
            raise UnavailableError(f"{self._name} cannot be written: {error.strerror}") from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, and remove what was not committed."""
        with suppress(OSError):  # what could not be written has been told already, and cannot be written now either
            self._stack.close()
