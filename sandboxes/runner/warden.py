"""The warden: takes one job after the other from the host, has its cases run, and reports their outcomes.

It alone holds the channel to the host. No case's process descends from it, so that none inherits what it knows; none
can look into it (it is undumpable), nor signal it (they see no process of it, or by their uid or Landlock may not).
"""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

from sandboxes.runner import frames
from sandboxes.runner.cases import AllByForeman, CaseByCase, Hands
from sandboxes.runner.frames import DescriptorEnd
from sandboxes.runner.line import Line
from sandboxes.runner.place import Place
from sandboxes.runner.watch import HostGone, SandboxBroken

_OUTPUTS_PER_JOB = 64


class Warden:
    """Serves one host, by way of one zygote."""

    def __init__(self, host: DescriptorEnd, line: Line, zygote: int, place: Place) -> None:
        self._host = host
        self._hands = Hands(host.incoming, line, zygote, place)

    def serve(self) -> int:
        """Run the host's jobs until it goes or something is in doubt, and return this process's exit code."""
        gc.freeze()
        while (job := frames.receive(self._host.read)) is not None:
            try:
                self._run_job(job)
                frames.send(self._host.write, {"done": True})
            except HostGone:
                return 0
            except (SandboxBroken, OSError) as error:
                with contextlib.suppress(OSError):
                    frames.send(self._host.write, {"fault": f"{type(error).__name__}: {error}"})
                return 1
        return 0

    def _run_job(self, job: dict[str, Any]) -> None:
        secret = None if job["driver"] is None else self._read_secret()
        with contextlib.ExitStack() as open_until_end:
            if secret is None and len(job["cases"]) > 1 and self._hands.place.has_namespaces:
                self._run_cases(job, AllByForeman(self._hands, job, open_until_end).run)
            else:
                self._run_cases(job, CaseByCase(self._hands, job, secret, open_until_end).run)

    def _run_cases(
        self, job: dict[str, Any], run: Callable[[dict[str, Any], dict[str, float]], dict[str, Any]]
    ) -> None:
        output_left = int(job["limits"]["output_bytes"]) * _OUTPUTS_PER_JOB
        for case in job["cases"]:
            limits = {**job["limits"], "output_bytes": max(0, min(job["limits"]["output_bytes"], output_left))}
            outcome = run(case, limits)
            frames.send(self._host.write, {"outcome": outcome})  # one by one, so that little is ever held here
            output_left -= (len(outcome["stdout"]) + len(outcome["stderr"])) * 3 // 4  # it is in base64
            if job["stop_after_failure"] and (outcome["exit_code"] != 0 or outcome["limit"]):
                break

    def _read_secret(self) -> bytes:
        """Return the driver's argument, which comes in a frame of its own."""
        secret = frames.receive_unread(self._host.read)
        if secret is None:
            raise HostGone
        return secret
