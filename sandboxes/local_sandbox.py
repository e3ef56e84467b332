"""What the backends share whose runner is a process of this machine, at the other end of a socket pair."""

import contextlib
import os
import socket
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Literal

from sandboxes.base import SandboxUnavailable
from sandboxes.runner import linux
from sandboxes.zygote_sandbox import ZygoteSandbox

Capability = Literal["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP", "SYS_ADMIN"]
_NUMBERS: dict[Capability, int] = {
    "CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8, "SYS_ADMIN": 21,
}  # fmt: skip


def is_root_with(capabilities: Iterable[Capability]) -> bool:
    """Whether this process is root and has these of root's powers; in a container it may lack some."""
    if os.geteuid() != 0:
        return False
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (effective,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return all(effective >> _NUMBERS[name] & 1 for name in capabilities)


class LocalSandbox(ZygoteSandbox):
    """A process that starts the runner, or is it, and ends with this object."""

    def __init__(self, command: Callable[[int], list[str]], environment: Mapping[str, str]) -> None:
        """Start the process.

        Args:
            command: returns the command line, given the runner's end of the channel.
            environment: all of its environment.

        Raises:
            SandboxUnavailable: it could not be started.
        """
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._host, inner = socket.socketpair()
        try:
            with inner:
                words = command(inner.fileno())
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    pass_fds=[inner.fileno()],
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
        except (OSError, SandboxUnavailable) as error:
            self._host.close()
            self._errors.close()
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"the sandbox could not be started: {error}") from None
            raise
        super().__init__(self._host.recv, self._host.sendall)

    @staticmethod
    @abstractmethod
    def advise(written: str) -> str:
        """Turn what was written to standard error at a failed start into a message that says what to change."""

    def set_timeout(self, seconds: float) -> None:
        """See `ZygoteSandbox.set_timeout`."""
        self._host.settimeout(seconds)

    def explain(self, failure: str) -> str:
        """See `ZygoteSandbox.explain`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._errors.seek(0)
        written = self._errors.read(4000).decode(errors="replace").strip()
        return self.advise(written or failure)

    def own_memory_bytes(self) -> int:
        """See `ZygoteSandbox.own_memory_bytes`."""
        pids = [self._process.pid, *linux.descendants(self._process.pid)]
        return sum(map(linux.resident_bytes, pids))

    def close(self) -> None:
        """See `sandboxes.base.Sandbox.close`."""
        self._host.close()
        self._process.kill()
        self._process.wait()
        self._errors.close()
