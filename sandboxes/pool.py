"""The warm sandboxes of one worker process: one for each profile, replaced when in doubt or used up."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sandboxes.base import Job, Outcome, Profile, SandboxLost
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """How a worker's sandboxes are made and how long they are used."""

    bwrap: str | None = None
    """Path of the bwrap program; found by itself when not given."""
    recycle_after_jobs: int = 1000
    """Jobs after which a sandbox is replaced by a fresh one."""


class LocalSandboxes:
    """See `sandboxes.base.Sandboxes`. For one thread; runs one job at a time."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._warm: dict[Profile, BubblewrapSandbox] = {}
        self._jobs_run: dict[Profile, int] = {}

    def warm(self, profiles: Iterable[Profile]) -> None:
        """Start the sandboxes of these profiles, unless they are running.

        Raises:
            SandboxUnavailable: this machine cannot isolate.
        """
        for profile in profiles:
            if profile not in self._warm:
                self._warm[profile] = BubblewrapSandbox(profile, BubblewrapConfig(self._config.bwrap))
                self._jobs_run[profile] = 0

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        """See `sandboxes.base.Sandboxes.run`."""
        self.warm([profile])
        sandbox = self._warm[profile]
        try:
            outcomes = sandbox.run(job)
        except SandboxLost:
            self._discard(profile)
            raise
        self._jobs_run[profile] += 1
        if self._jobs_run[profile] >= self._config.recycle_after_jobs:
            self._discard(profile)
        return outcomes

    def _discard(self, profile: Profile) -> None:
        self._warm.pop(profile).close()

    def close(self) -> None:
        """End all sandboxes."""
        with contextlib.ExitStack() as closing:
            for sandbox in self._warm.values():
                closing.callback(sandbox.close)
            self._warm.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
