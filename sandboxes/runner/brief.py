"""What a case's process needs to know, in a file in memory that only this process reads."""

import fcntl
import json
import os
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


def memory_file(*parts: bytes) -> int:
    """Return the descriptor of a file in memory with these contents, which nobody can change any more."""
    file = os.memfd_create("given", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    for part in parts:
        view = memoryview(part)
        while view:
            view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    return file


def write_brief(argument: bytes, files: dict[str, bytes]) -> int:
    """Return the descriptor of a brief.

    Args:
        argument: of the process's function, as JSON.
        files: to be placed in the work folder, by relative path.
    """
    table = [len(argument), [[path, len(content)] for path, content in files.items()]]
    head = json.dumps(table, separators=(",", ":")).encode()
    return memory_file(_LENGTH.pack(len(head)), head, argument, *files.values())


class Brief:
    """A brief that is being read, in the process that it was written for; others may be reading the same."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = 0
        (length,) = _LENGTH.unpack(self._take(_LENGTH.size))
        argument_bytes, self._files = json.loads(self._take(length))
        self._files_at = self._at + argument_bytes

    def argument(self) -> Any:
        """Return the argument; called once at most."""
        return json.loads(self._take(self._files_at - self._at).decode("utf-8", "surrogatepass"))

    def place_files(self) -> None:
        """Write the files into the current folder, as this process's own."""
        at = self._files_at
        for path, size in self._files:
            folder, _, _ = path.rpartition("/")
            if folder:
                os.makedirs(folder, exist_ok=True)
            self._place(path, at, size)
            at += size

    def _place(self, path: str, at: int, size: int) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        end = at + size
        while at < end:
            at += os.sendfile(file, self._descriptor, at, end - at)  # by the kernel: no file counts as memory
        os.close(file)

    def _take(self, size: int) -> bytes:
        taken = os.pread(self._descriptor, size, self._at)
        if len(taken) != size:
            raise OSError("a brief was cut short")
        self._at += size
        return taken
