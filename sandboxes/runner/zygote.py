"""The zygote: forks a case's processes, in their namespaces, and collects them when they end.

It knows of a job no more than the names of its functions and its limits, and hands on the rest unread: whatever it
knew, the processes of later jobs would inherit.
"""

import os
import select
import types
from typing import Any, NamedTuple

from sandboxes.runner.child import Given, function_named, run_child
from sandboxes.runner.foreman import ForemansGiven, run_foreman
from sandboxes.runner.line import Line
from sandboxes.runner.place import Forked, Place, Role
from sandboxes.runner.seccomp import SystemCallFilters


class _Living(NamedTuple):
    role: Role
    forked: Forked
    pidfd: int


class Zygote:
    """Serves one warden."""

    def __init__(
        self, line: Line, system_calls: SystemCallFilters, place: Place, loaded: dict[str, types.ModuleType]
    ) -> None:
        self._line = line
        self._system_calls = system_calls
        self._place = place
        self._loaded = loaded
        self._poll = select.poll()

    def serve(self) -> int:
        """Fork what the warden asks for, until it goes, and return this process's exit code."""
        try:
            self._place.become_zygote()
            self._poll.register(self._line.fileno(), 0)  # only its end is of interest while a case runs
            while (asked := self._line.hear()) is not None:
                try:
                    living = self._fork_foreman(*asked) if "foreman" in asked[0] else self._fork_all(*asked)
                except OSError as error:
                    self._line.tell({"fault": f"{type(error).__name__}: {error}"})
                    return 1
                if not self._await_ends(living):
                    return 0
            return 0
        finally:
            self._place.leave_zygote()

    def _fork_all(self, asked: dict[str, Any], descriptors: list[int]) -> list[_Living]:
        """Fork the processes of a case and tell the warden of them."""
        living = []
        at = 0
        for part in asked["parts"]:
            given = Given(*descriptors[at : at + len(Given._fields)])
            at += len(Given._fields)
            forked = self._place.fork(part["role"])
            if forked.pid == 0:
                run_child(
                    part["function"],
                    given,
                    asked["limits"],
                    place=self._place,
                    role=part["role"],
                    has_channel=part["has_channel"],
                    system_calls=self._system_calls,
                    loaded=self._loaded,
                )
            living.append(_Living(part["role"], forked, os.pidfd_open(forked.pid)))
        self._tell_of(living, descriptors)
        return living

    def _fork_foreman(self, asked: dict[str, Any], descriptors: list[int]) -> list[_Living]:
        """Fork a foreman and tell the warden of it."""
        forked = self._place.fork_foreman()
        if forked.pid == 0:
            function = function_named(asked["foreman"], self._loaded)
            run_foreman(function, ForemansGiven(*descriptors), asked["limits"], self._place, self._system_calls)
        living = [_Living("guest", forked, os.pidfd_open(forked.pid))]
        self._tell_of(living, descriptors)
        return living

    def _tell_of(self, living: list[_Living], handed_on: list[int]) -> None:
        for descriptor in handed_on:
            os.close(descriptor)
        self._line.tell([process.forked for process in living], [process.pidfd for process in living])

    def _await_ends(self, living: list[_Living]) -> bool:
        """Collect a case's processes as they end, and end what each leaves; whether the warden is still there."""
        by_descriptor = {process.pidfd: process for process in living}
        for descriptor in by_descriptor:
            self._poll.register(descriptor, select.POLLIN)
        while by_descriptor:
            for descriptor, _ in self._poll.poll():
                process = by_descriptor.pop(descriptor, None)
                if process is None:
                    return False
                self._poll.unregister(descriptor)
                os.close(descriptor)
                self._collect(process, next(iter(by_descriptor.values()), None))
        return True

    def _collect(self, ended: _Living, other: _Living | None) -> None:
        _, status, usage = os.wait4(ended.forked.pid, 0)
        heirs_cpu_seconds = self._place.end(ended.forked, other.forked if other else None)
        self._line.tell(
            {
                "ended": ended.role,
                "own_pid": ended.forked.own_pid,
                "status": status,
                "cpu_seconds": usage.ru_utime + usage.ru_stime,
                "heirs_cpu_seconds": heirs_cpu_seconds,
                "peak_memory_bytes": usage.ru_maxrss * 1024,
            }
        )
