"""Where a sandbox's jobs run: what parts one job from the next, and all of them from everything else.

There are two kinds: `namespaced`, where the kernel lets us make namespaces, and `bare`, where it does not.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal

from sandboxes.runner.seccomp import Duties

Role = Literal["guest", "driver"]

FILES_PER_CASE = 4096
"""Entries that a case may have in its work folder."""
SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
DEVICES = ("null", "full", "random", "urandom")  # not zero: mapping it is shared memory that nobody bounds
"""What of the system jobs see, beside the interpreter."""


class Place(ABC):
    """A kind of place. One object goes through zygote, warden and child, which are forks of each other."""

    work_folder: str
    """Where a case's work folder is, while there is one."""
    duties: Duties
    """What is left to the system-call filters."""

    @abstractmethod
    def arrive(self) -> None:
        """Called first of all: see to it that `leave` will be called when the host goes."""

    @abstractmethod
    def settle(self) -> None:
        """Take the zygote, with all that it has loaded, to where the wardens will be forked."""

    @abstractmethod
    def leave(self) -> None:
        """Leave nothing behind; called at the zygote's end, however it comes about."""

    @abstractmethod
    def fork(self) -> int:
        """Fork a warden, and return as `os.fork` does."""

    @abstractmethod
    def fork_guest(self, *, beside_driver: bool) -> tuple[int, int]:
        """Fork a guest; return its process id, and the one by which it knows itself. Both are 0 in the guest."""

    @abstractmethod
    def enter(self) -> None:
        """Called in a warden before its job: part it from the other processes."""

    @abstractmethod
    def uid_of(self, role: Role) -> int | None:
        """Return the uid that a case's process changes to; None where it stays what it is."""

    @abstractmethod
    def others_of_uid(self) -> int:
        """Return how many processes to allow a guest's uid beside the guest's own."""

    @abstractmethod
    def make_work_folder(self, limits: dict[str, float]) -> None:
        """Make a case's empty work folder, which belongs to the guest."""

    @abstractmethod
    def remove_work_folder(self) -> None:
        """Remove it with all that is in it."""

    @abstractmethod
    def is_overfull(self, limits: dict[str, float], *, at_end: bool) -> bool:
        """Whether the case wrote more than it may, where nothing hindered it; `at_end`: measure in any case."""

    @abstractmethod
    def fence(self, role: Role) -> None:
        """Called in a case's process before it changes its uid: take from it what it will not need."""

    @abstractmethod
    def processes(self, besides: int | None) -> list[int]:
        """Return the processes of the case but for one (its driver)."""

    @abstractmethod
    def end_heirs(self, driver: int) -> None:
        """Called when a guest has ended before its driver: end what it leaves behind."""

    @abstractmethod
    def end_processes(self) -> float:
        """End every process of the case, wait until they are gone, and return their CPU time in seconds.

        Raises:
            OSError: they would not end.
        """


def place_for(options: Any) -> Place:
    """Return the place that the zygote's arguments ask for."""
    if options.bare is not None:
        from sandboxes.runner.bare import BarePlace  # noqa: PLC0415 - only one of the two is ever loaded

        return BarePlace.from_arguments(options.bare)
    from sandboxes.runner.namespaced import NamespacedPlace  # noqa: PLC0415

    return NamespacedPlace(options.base_uid, in_container=options.in_container)
