"""Looking at process trees from outside."""

import time
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """Return the processes below one that have not ended."""
    children: dict[int, set[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), set()).add(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), set()) - found:
            found.add(child)
            waiting.append(child)
    return found


def wait_until_gone(pids: set[int], seconds: float) -> set[int]:
    """Wait so long for processes to end, and return those that did not."""
    end = time.monotonic() + seconds
    while pids and time.monotonic() < end:
        pids = {pid for pid in pids if _is_alive(pid)}
        time.sleep(0.02)
    return pids


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
