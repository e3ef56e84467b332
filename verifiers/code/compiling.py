"""Compiling a program in a sandbox, once for all of its tests, and remembering what came of it."""

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sandboxes.base import Case, Job, Outcome, Profile
from verifiers.base import Failure
from verifiers.code.findings import printable
from verifiers.code.languages import Language

RunIn = Callable[[Profile, Job], list[Outcome]]
_GUEST = "verifiers.code.compile_guest:compile_program"
_CACHE_BYTES = 64 << 20
_MOST_SHOWN = 1500


@dataclass(frozen=True, slots=True)
class Compiled:
    """What came of compiling."""

    files: dict[str, bytes]
    """What must be in the work folder to run it."""
    executables: list[str]
    error: str | None
    """The compiler's first lines, when it refused the program."""


class CompileCache:
    """The latest programs by content, as many as fit into a bound of bytes."""

    def __init__(self, most_bytes: int = _CACHE_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._held: OrderedDict[bytes, Compiled] = OrderedDict()

    def get(self, key: bytes) -> Compiled | None:
        """Return what is held."""
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
        return found

    def put(self, key: bytes, compiled: Compiled) -> None:
        """Hold it, and let go of what was not asked for the longest."""
        self._held[key] = compiled
        self._bytes += _size(compiled)
        while self._bytes > self._most_bytes:
            _, dropped = self._held.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(compiled: Compiled) -> int:
    return 1000 + sum(map(len, compiled.files.values()))


_cache = CompileCache()


def compile_files(
    language: Language, command: tuple[str, ...], files: dict[str, bytes], run: RunIn
) -> Compiled | Failure:
    """Compile files, unless that has been done before.

    Args:
        language: of the program.
        command: the compiler's.
        files: what it reads.
        run: runs a job in a sandbox of a profile.
    """
    missing = language.missing()
    if missing:
        return Failure("internal", f"this machine lacks what {language.name} needs: {', '.join(missing)}")
    key = hashlib.sha256(repr((language.name, command, sorted(files.items()))).encode()).digest()
    found = _cache.get(key)
    if found is None:
        compiled = _compile(language, command, files, run)
        if isinstance(compiled, Failure):
            return compiled
        _cache.put(key, compiled)
        found = compiled
    return found


def _compile(language: Language, command: tuple[str, ...], files: dict[str, bytes], run: RunIn) -> Compiled | Failure:
    argument: dict[str, Any] = {
        "command": list(command),
        "environment": language.environment,
        "artifacts": list(language.artifacts),
    }
    job = Job(guest=_GUEST, cases=[Case(argument=argument)], limits=language.compile_limits, files=files)
    (outcome,) = run(language.profile(), job)
    found = outcome.result if outcome.returned and isinstance(outcome.result, dict) else None
    if outcome.limit is not None:
        return Compiled({}, [], f"compiling it ran into a limit: {outcome.limit}")
    if found is None:
        return Failure("internal", f"the compiler could not be run: {outcome.stderr[-300:].decode('utf-8', 'replace')}")
    if "missing" in found:
        return Failure("internal", f"the sandbox lacks {found['missing']}")
    if found["exit_code"] != 0:
        return Compiled({}, [], printable(str(found["log"]))[:_MOST_SHOWN].strip() or "the compiler refused it")
    made = found["files"]
    assert isinstance(made, dict)
    built = {name: base64.b64decode(str(content)) for name, content in made.items()}
    executables = [name for name in built if f"./{name}" in language.run]
    return Compiled(built if language.artifacts else files, executables, None)
