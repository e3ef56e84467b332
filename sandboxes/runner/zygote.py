"""The zygote: forks a case's processes, in their namespaces, and collects them when they end.

It knows of a job no more than the names of its functions and its limits, and hands on the rest unread: whatever it
knew, the processes of later jobs would inherit.
"""

import os
import select
import signal
import socket
import types
from typing import Any, NamedTuple, NoReturn

from sandboxes.runner.child import Given, function_named, run_child
from sandboxes.runner.foreman import ForemansGiven, run_foreman
from sandboxes.runner.line import Line
from sandboxes.runner.place import Forked, Place, Role
from sandboxes.runner.seccomp import SystemCallFilters


class _Living(NamedTuple):
    role: Role
    forked: Forked
    pidfd: int


class _Ahead(NamedTuple):
    """A process that waits to hear what it is to be."""

    forked: Forked
    line: socket.socket


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
        self._ahead: _Ahead | None = None

    def serve(self) -> int:
        """Fork what the warden asks for, until it goes, and return this process's exit code."""
        try:
            self._place.become_zygote()
            self._poll.register(self._line.fileno(), 0)  # only its end is of interest while a case runs
            self._fork_ahead()
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
            forked = self._hand_to_ahead(part, asked["limits"], given) or self._fork(part, asked["limits"], given)
            living.append(_Living(part["role"], forked, os.pidfd_open(forked.pid)))
        self._tell_of(living, descriptors)
        self._fork_ahead()
        return living

    def _fork(self, part: dict[str, Any], limits: dict[str, float], given: Given) -> Forked:
        forked = self._place.fork(part["role"])
        if forked.pid == 0:
            self._place.part()
            self._be(part, limits, given)
        return forked

    def _be(self, part: dict[str, Any], limits: dict[str, float], given: Given) -> NoReturn:
        """Become a case's process."""
        run_child(
            part["function"],
            given,
            limits,
            place=self._place,
            role=part["role"],
            has_channel=part["has_channel"],
            system_calls=self._system_calls,
            loaded=self._loaded,
        )

    def _fork_ahead(self) -> None:
        """Fork the next case's guest while there is time, up to where it must know the case."""
        if not self._place.has_namespaces or self._ahead is not None:
            return
        own_end, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        forked = self._place.fork("guest")
        if forked.pid == 0:
            try:
                self._place.part()
                own_end.close()
                os.close(self._line.fileno())  # so that the zygote's end is noticed by the warden
                heard = Line(its_end).hear()
                if heard is not None:
                    self._be(heard[0]["part"], heard[0]["limits"], Given(*heard[1]))
            finally:
                os._exit(1)
        its_end.close()
        self._ahead = _Ahead(forked, own_end)

    def _hand_to_ahead(self, part: dict[str, Any], limits: dict[str, float], given: Given) -> Forked | None:
        """Let the process that was forked ahead be this part; None when there is none, or it is gone."""
        if self._ahead is None or part["role"] != "guest":
            return None
        ahead, self._ahead = self._ahead, None
        try:
            Line(ahead.line).tell({"part": part, "limits": limits}, list(given))
        except OSError:
            os.kill(ahead.forked.pid, signal.SIGKILL)
            os.waitpid(ahead.forked.pid, 0)
            self._place.end(ahead.forked, None)
            return None
        finally:
            ahead.line.close()
        return ahead.forked

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
