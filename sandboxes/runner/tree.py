"""Folders that a hostile process filled: measuring one while it still writes, removing one afterwards."""

import os

_DEPTH = 64  # folders in folders; deeper ones count as too much
_BLOCK = 512


def is_larger(folder: str, max_bytes: int, max_entries: int) -> bool:
    """Whether a folder holds more bytes or entries than that, or is too deep, or closed to be measured."""
    measure = _Measure(max_bytes, max_entries)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return measure.exceeds(descriptor, 0)


class _Measure:
    def __init__(self, max_bytes: int, max_entries: int) -> None:
        self._bytes = max_bytes
        self._entries = max_entries
        self._linked: set[int] = set()

    def exceeds(self, descriptor: int, depth: int) -> bool:
        """Count what is in an open folder, close it, and return whether it is too much by now."""
        try:
            with os.scandir(descriptor) as entries:
                return depth > _DEPTH or any(self._entry_exceeds(entry, descriptor, depth) for entry in entries)
        finally:
            os.close(descriptor)

    def _entry_exceeds(self, entry: os.DirEntry[str], folder: int, depth: int) -> bool:
        self._entries -= 1
        try:
            status = entry.stat(follow_symlinks=False)
            is_folder = entry.is_dir(follow_symlinks=False)
            if status.st_ino not in self._linked:
                self._bytes -= status.st_blocks * _BLOCK
            if status.st_nlink > 1 and not is_folder:
                self._linked.add(status.st_ino)
            if self._bytes < 0 or self._entries < 0:
                return True
            if is_folder:
                # By descriptor and without following links: the process may put a link in its place at any moment.
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                return self.exceeds(os.open(entry.name, flags, dir_fd=folder), depth + 1)
        except PermissionError:
            return True
        except OSError:
            return False  # gone, or something else by now
        return False


def remove(top: str) -> None:
    """Remove a folder whatever its modes and depth. Nobody may write to it meanwhile.

    Raises:
        OSError: it could not be removed.
    """
    empty(top)
    os.rmdir(top)


def empty(top: str) -> None:
    """Remove what is in a folder; conditions and errors are those of `remove`."""
    prefix = f"{top}/{os.urandom(8).hex()}"
    moved = 0
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            inside = list(entries)
        for entry in inside:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
            elif folder == top:
                waiting.append(entry.path)
            else:
                # Up to the top, so that no path grows longer than a path may be; to be moved it must be writable.
                os.chmod(entry.path, 0o700)
                moved += 1
                os.rename(entry.path, f"{prefix}-{moved}")
                waiting.append(f"{prefix}-{moved}")
        if folder != top:
            os.rmdir(folder)


def remove_of(uids: tuple[int, ...], folder: str) -> None:
    """Remove what belongs to some uids from a folder that all may write to."""
    try:
        with os.scandir(folder) as entries:
            theirs = [entry for entry in entries if entry.stat(follow_symlinks=False).st_uid in uids]
    except OSError:
        return
    for entry in theirs:
        if entry.is_dir(follow_symlinks=False):
            remove(entry.path)
        else:
            os.unlink(entry.path)
