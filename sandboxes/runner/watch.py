"""Watching a case's processes: output is bounded as it comes, CPU time decides a timeout, wall time is the backstop."""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

from sandboxes.runner import linux
from sandboxes.runner.frames import from_bytes
from sandboxes.runner.line import Line
from sandboxes.runner.place import Place, Role

_FIRST_LOOK_SECONDS = 0.03  # a case shorter than this is judged by what wait4 says at its end
_LOOK_EVERY_SECONDS = 0.02
_LOOKS_OVER_MEMORY = 2  # a fork that is about to exec counts twice for a moment
WALL_STRETCH = 3.0
"""How many times its wall time a case may take when the machine kept it waiting for a CPU."""
_NOTE_LINES = 64
_NOTE_BYTES_BESIDE_DRIVER = 1 << 16
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")
_CLAIMED_LIMITS = frozenset({"memory", "processes", "open_files", "file_size"})
"""Bounds that only the process itself notices: the kernel refuses it something, and an exception comes of it."""
_SIGNAL_LIMITS: dict[int, str] = {signal.SIGXCPU: "cpu_timeout", signal.SIGXFSZ: "file_size"}


class HostGone(Exception):
    """The host closed its end in the middle of a job: whatever is still running, nobody waits for it."""


class SandboxBroken(Exception):
    """The zygote or a foreman failed, or could not set up what was asked for: never the completion's fault."""


class Around(Protocol):
    """What is around a case."""

    @property
    def host(self) -> int:
        """Descriptor of the channel to the host."""

    @property
    def zygote(self) -> int:
        """The zygote's process id."""

    @property
    def place(self) -> Place:
        """Where the case runs."""


class Watched:
    """A process of the case, what it wrote so far and how it ended."""

    def __init__(self, pid: int | None, outputs: tuple[int, int, int], kill: Callable[[], None]) -> None:
        self.pid = pid
        """Its process id where that must be known, as a driver's must."""
        self.kill = kill
        """Ends the process, unless it has ended."""
        self.stdout, self.stderr, self.result = outputs
        self.output = {descriptor: bytearray() for descriptor in outputs}
        self.own_pid = -1
        self.limit: str | None = None
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.peak_memory_bytes = 0

    def note(self) -> dict[str, Any]:
        """Return what the process said of its function's end; empty when it did not, or not in a readable way.

        A guest's untrusted code may write here whatever it likes: nothing that comes out of it can be to its good.
        """
        if self.limit is not None:
            return {}
        for line in bytes(self.output[self.result]).split(b"\n", _NOTE_LINES)[:_NOTE_LINES]:
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(said, dict) and said.get("pid") == self.own_pid:
                return {name: text for name, text in said.items() if isinstance(text, str)}
        return {}


class Watch:
    """Runs the event loop of one case."""

    def __init__(self, limits: dict[str, float], started: float, around: Around, line: Line) -> None:
        """Start to watch.

        Args:
            limits: the case's.
            started: by the monotonic clock.
            around: the sandbox.
            line: to whoever collects the case's processes and tells of their ends.
        """
        self._limits = limits
        self._around = around
        self._place = around.place
        self._line = line
        self._started = started
        self.guest: Watched
        self.driver: Watched | None = None
        self.guest_end: socket.socket | None = None
        self._poll = select.poll()
        self._owner: dict[int, Watched] = {}
        self._alive: list[Watched] = []
        self._next_look = started + _FIRST_LOOK_SECONDS
        self._wall_deadline = started + limits["wall_seconds"]
        self._looks_over_memory = 0
        self._is_overfull = False
        self._tree_cpu_seconds = 0.0
        self._heirs_cpu_seconds = 0.0
        self._peak_memory_bytes = 0
        self._inherited = _usage(around.zygote)[1]

    def add(self, role: Role, watched: Watched) -> None:
        """Watch a process, too."""
        if role == "guest":
            self.guest = watched
        else:
            self.driver = watched
        self._alive.append(watched)
        for descriptor in watched.output:
            self._poll.register(descriptor, select.POLLIN)
            self._owner[descriptor] = watched

    def run(self) -> None:
        """Watch until every process of the case has ended, by itself or by a bound.

        Raises:
            HostGone: the host did not wait for it.
            SandboxBroken: nobody tells of the processes' ends any more.
        """
        line = self._line.fileno()
        self._poll.register(self._around.host, 0)  # only its end is of interest
        self._poll.register(line, select.POLLIN)
        while self._alive:
            for descriptor, _ in self._poll.poll(self._timeout_ms()):
                if descriptor == self._around.host:
                    raise HostGone
                if descriptor == line:
                    self._hear_of_end()
                    continue
                watched = self._owner[descriptor]
                if watched.status is None:  # else drained and unregistered earlier in this round
                    self._read(watched, descriptor)
            self._check()

    def outcome(self, *, wants_result: bool) -> dict[str, Any]:
        """Return the case's outcome as the host reads it."""
        guest, driver = self.guest, self.driver
        assert guest.status is not None
        guest.cpu_seconds = max(guest.cpu_seconds + self._heirs_cpu_seconds, self._tree_cpu_seconds)
        note = guest.note()
        claimed = note.get("limit")
        limit = guest.limit or (claimed if claimed in _CLAIMED_LIMITS else None) or self._limit_of_status(guest)
        exit_code = os.waitstatus_to_exitcode(guest.status)
        said = driver.note() if driver else note
        returned = wants_result and "value" in said
        return {
            "exit_code": None if limit or exit_code < 0 else exit_code,
            "signal": -exit_code if exit_code < 0 else None,
            "limit": limit,
            "stdout": from_bytes(bytes(guest.output[guest.stdout])),
            "stderr": from_bytes(bytes(guest.output[guest.stderr])),
            "result": said["value"] if returned else None,
            "returned": returned,
            "driver_failure": self._driver_failure(driver, said),
            "cpu_seconds": guest.cpu_seconds,
            "wall_seconds": time.monotonic() - self._started,
            "peak_memory_bytes": max(self._own_peak(guest), self._peak_memory_bytes),
        }

    def _own_peak(self, guest: Watched) -> int:
        """Return the guest's peak memory without what it shared with the zygote from the start."""
        return max(0, guest.peak_memory_bytes - self._inherited)

    def _driver_failure(self, driver: Watched | None, said: dict[str, Any]) -> str | None:
        if driver is None or "value" in said:
            return None
        status = os.waitstatus_to_exitcode(driver.status or 0)
        return driver.limit or said.get("limit") or said.get("failure") or f"ended with {status}"

    def _limit_of_status(self, guest: Watched) -> str | None:
        """Name the bound that an ended guest turns out to have broken."""
        assert guest.status is not None
        if guest.cpu_seconds > self._limits["cpu_seconds"]:
            return "cpu_timeout"  # also when it ended between two looks, so that the machine's load decides nothing
        if self._own_peak(guest) > self._limits["memory_bytes"]:
            return "memory"
        if self._is_overfull:
            return "file_size"
        return _SIGNAL_LIMITS.get(os.WTERMSIG(guest.status)) if os.WIFSIGNALED(guest.status) else None

    def _timeout_ms(self) -> float:
        """Return how long the loop may sleep, so that no bound is overrun by more than a few milliseconds."""
        now = time.monotonic()
        if self._next_look <= now:
            self._next_look = now + _LOOK_EVERY_SECONDS
        until = min(self._next_look, self._wall_deadline)
        return max(0.0, until - now) * 1000 + 1

    def _read(self, watched: Watched, descriptor: int) -> None:
        try:
            part = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        bound = self._bound(watched, descriptor)
        held = watched.output[descriptor]
        held += part
        if not part:
            self._poll.unregister(descriptor)
        elif len(held) > bound:
            del held[bound:]
            self._poll.unregister(descriptor)
            self._stop(watched, "output")

    def _bound(self, watched: Watched, descriptor: int) -> int:
        """Return how much the process may write there."""
        if descriptor != watched.result:
            return int(self._limits["output_bytes"])
        if self.driver is not None and watched is self.guest:
            return _NOTE_BYTES_BESIDE_DRIVER  # the result is the driver's
        return int(self._limits["result_bytes"])

    def _check(self) -> None:
        now = time.monotonic()
        if now >= self._wall_deadline and not self._kept_waiting(now):
            for watched in self._alive:
                self._stop(watched, "wall_timeout")
        elif now >= self._next_look and self._alive:
            self._look()

    def _kept_waiting(self, now: float) -> bool:
        """Move the deadline by the time that the machine's load kept the case off the CPUs; whether that is later."""
        pids = self._processes() + ([self.driver.pid] if self.driver and self.driver.pid else [])
        waited = max(map(_run_delay_seconds, pids), default=0.0)
        wall = self._limits["wall_seconds"]
        self._wall_deadline = self._started + min(wall + waited, wall * WALL_STRETCH)
        return now < self._wall_deadline

    def _look(self) -> None:
        """Measure the processes that are there now and stop the case when together they are over a bound."""
        if self.driver in self._alive and self.driver is not None:
            assert self.driver.pid is not None
            cpu, memory = _usage(self.driver.pid)
            self._stop_if_over(self.driver, cpu, memory, 1)
        if self.guest in self._alive:
            pids = self._processes()
            usages = [_usage(pid) for pid in pids]
            cpu = sum(u[0] for u in usages)
            memory = self._memory_of(pids, [u[1] for u in usages])
            self._tree_cpu_seconds = max(self._tree_cpu_seconds, cpu)
            self._peak_memory_bytes = max(self._peak_memory_bytes, memory)
            self._looks_over_memory = self._looks_over_memory + 1 if memory > self._limits["memory_bytes"] else 0
            if len(pids) > 1 and self._looks_over_memory < _LOOKS_OVER_MEMORY:
                memory = 0
            self._stop_if_over(self.guest, cpu, memory, len(pids))
            if self._place.is_overfull(self._limits, at_end=False):
                self._stop(self.guest, "file_size")

    def _processes(self) -> list[int]:
        """Return the guest's processes."""
        return self._place.processes(self._around.zygote, self.guest.pid, self.driver.pid if self.driver else None)

    def _memory_of(self, pids: list[int], resident: list[int]) -> int:
        """Return the memory of processes, in bytes, what they share counted once where the kernel tells."""
        memory = sum(max(0, size - self._inherited) for size in resident)
        if len(pids) > 1 and memory > self._limits["memory_bytes"]:
            proportional = [_proportional_bytes(pid) for pid in pids]
            if None not in proportional:
                return max(0, sum(size for size in proportional if size is not None) - self._inherited)
        return memory

    def _stop_if_over(self, watched: Watched, cpu: float, memory: int, processes: int) -> None:
        if cpu >= self._limits["cpu_seconds"]:
            self._stop(watched, "cpu_timeout")
        elif memory > self._limits["memory_bytes"]:
            self._stop(watched, "memory")
        elif processes >= self._limits["processes"]:
            self._stop(watched, "processes")

    def _stop(self, watched: Watched, limit: str) -> None:
        if watched.limit is None and watched.status is None:
            watched.limit = limit
            watched.kill()

    def _hear_of_end(self) -> None:
        """Take in what the zygote says of a process that ended."""
        heard = self._line.hear()
        if heard is None:
            raise SandboxBroken("the zygote or a foreman ended in the middle of a case")
        said, _ = heard
        watched = self.guest if said["ended"] == "guest" else self.driver
        assert watched is not None
        watched.own_pid = said["own_pid"]
        watched.status = said["status"]
        watched.cpu_seconds = said["cpu_seconds"]
        watched.peak_memory_bytes = said["peak_memory_bytes"]
        self._heirs_cpu_seconds += said["heirs_cpu_seconds"]
        self._alive.remove(watched)
        self._end(watched)

    def _end(self, watched: Watched) -> None:
        """Take in the rest of what an ended process wrote, and let its partner know."""
        for descriptor in watched.output:
            self._drain(watched, descriptor)
        if watched is self.guest:
            self._is_overfull = self._place.is_overfull(self._limits, at_end=True)
        if watched is self.guest and self.guest_end is not None:
            # The warden holds this end, too; the driver must see its close all the same.
            shut_down(self.guest_end)
        elif watched is self.driver and self.guest.status is None:
            self.guest.kill()

    def _drain(self, watched: Watched, descriptor: int) -> None:
        """Read what a pipe still holds, without waiting for descendants that keep it open."""
        bound = self._bound(watched, descriptor)
        held = watched.output[descriptor]
        while len(held) <= bound:
            try:
                part = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                break
            if not part:
                break
            held += part
        if len(held) > bound:
            del held[bound:]
            watched.limit = watched.limit or "output"
        try:
            self._poll.unregister(descriptor)
        except KeyError:
            return


def shut_down(end: socket.socket) -> None:
    """Shut a socket down for every process that holds it."""
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _run_delay_seconds(pid: int) -> float:
    """Return how long a process has waited for a CPU while it could have run."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def _proportional_bytes(pid: int) -> int | None:
    """Return a process's memory with each shared page divided among those that share it; None where not told."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        return None
    return None


def _usage(pid: int) -> tuple[float, int]:
    """Return the CPU seconds (children that it collected included) and resident bytes of a process; 0 when gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        children = (int(fields[13]) + int(fields[14])) * _TICK
        return linux.process_cpu_seconds(pid) + children, int(fields[21]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0.0, 0
