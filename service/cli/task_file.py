"""The input of `assay grade`: tasks as JSON Lines, plain or gzip, from a file or standard input."""

import gzip
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from assay import Task
from pydantic import TypeAdapter, ValidationError

from service.admission import excesses
from service.cli.errors import InputError
from service.errors import InvalidRequest
from service.settings import Settings
from service.validation import request_parser

MAX_LINE_BYTES = 64 << 20
SHOWN_PROBLEMS = 20

_TASK: TypeAdapter[Task] = TypeAdapter(Task)
_AS_REQUEST = request_parser(max_tasks=1)
_GZIP_MAGIC = b"\x1f\x8b"


class TaskFile:
    """Reads tasks one line at a time, as often as wanted; blank lines are left out.

    Only the ids of the tasks are kept in memory: two tasks with one id could not be told apart in the output.
    """

    def __init__(self, name: str) -> None:
        """Open the input: a path, or `-` for standard input.

        Raises:
            InputError: it cannot be read.
        """
        self.label = "<stdin>" if name == "-" else name
        self.count = 0
        """Number of tasks; known after `check`."""
        self._stack = ExitStack()
        try:
            self._source = self._open(name)
        except OSError as error:
            self._stack.close()
            raise InputError(f"{self.label} cannot be read: {error.strerror}") from None

    def _open(self, name: str) -> IO[bytes]:
        source = sys.stdin.buffer if name == "-" else self._stack.enter_context(open(name, "rb"))  # noqa: PTH123, SIM115
        if name != "-" and stat.S_ISREG(Path(name).stat().st_mode):
            return source
        # The input is read twice, to be checked and to be graded; a pipe must be kept for that.
        kept: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(source, kept)
        return kept

    def __enter__(self) -> Self:
        """Return the open file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._stack.close()

    def check(self, settings: Settings | None) -> None:
        """Read every line, so that nothing is graded of a file that has a mistake.

        Args:
            settings: bounds that the tasks must keep; None leaves them to the service that will grade.

        Raises:
            InputError: lists what is wrong, by line, up to 20 of them; or there is no task at all.
        """
        problems: list[str] = []
        lines_of_ids: dict[str, int] = {}
        self.count = 0
        for number, line in self._lines():
            where = f"{self.label}:{number}"
            try:
                task = _parse(line, self.count)
            except _BadLineError as bad:
                problems += [f"{where}: {problem}" for problem in bad.problems]
            else:
                assert task.id is not None
                if settings is not None:
                    problems += [
                        f"{where}: {beyond.field[1:]}: {beyond.message}" for beyond in excesses(task, "", settings)
                    ]
                first = lines_of_ids.setdefault(task.id, number)
                if first != number:
                    problems.append(f"{where}: id: {task.id!r} is already the id of line {first}")
            self.count += 1
        if problems:
            hidden = len(problems) - SHOWN_PROBLEMS
            more = [f"… and {hidden} more"] if hidden > 0 else []
            raise InputError("\n".join(["nothing was graded:", *problems[:SHOWN_PROBLEMS], *more]))
        if not self.count:
            raise InputError(f"{self.label} holds no task")

    def __iter__(self) -> Iterator[Task]:
        """Yield the tasks, each with an id: its own, or its position counted from 0.

        Raises:
            InputError: a line is wrong, which after `check` means that the file was changed.
        """
        for index, (number, line) in enumerate(self._lines()):
            try:
                yield _parse(line, index)
            except _BadLineError as bad:
                raise InputError(f"{self.label}:{number}: {bad.problems[0]} (the file changed)") from None

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (number counted from 1, content) of the lines that are not blank."""
        self._source.seek(0)
        packed = self._source.read(2) == _GZIP_MAGIC
        self._source.seek(0)
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=self._source)) if packed else self._source
        number = 0
        while True:
            number += 1
            try:
                line = stream.readline(MAX_LINE_BYTES + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"{self.label}:{number}: cannot be read: {error}") from None
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                raise InputError(f"{self.label}:{number}: the line is longer than {MAX_LINE_BYTES >> 20} MiB")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield number, line


class _BadLineError(Exception):
    """A line that is not a task."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems)
        self.problems = problems


def _parse(line: bytes, index: int) -> Task:
    try:
        task = _TASK.validate_json(line)
    except ValidationError as error:
        raise _BadLineError(_problems(error, line)) from None
    return task if task.id is not None else task.model_copy(update={"id": str(index)})


def _problems(error: ValidationError, line: bytes) -> list[str]:
    """Return what is wrong with a line, as `field: message`, in the words of the HTTP interface."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        try:
            line.decode()
        except UnicodeDecodeError as bad:
            return [f"not UTF-8: byte {bad.start} cannot be decoded ({bad.reason})"]
        return [f"not JSON: {first.get('ctx', {}).get('error', first['msg'])}"]
    try:
        _AS_REQUEST(b'{"tasks":[' + line + b"]}")
    except InvalidRequest as invalid:
        found = [(wrong.field.removeprefix("tasks[0]").removeprefix("."), wrong.message) for wrong in invalid.fields]
        return [f"{field}: {message}" if field else message for field, message in found]
    return [first["msg"]]
