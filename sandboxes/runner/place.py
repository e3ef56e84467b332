"""Where a sandbox's jobs run: what parts one job from the next, and all of them from everything else.

There are two kinds: `namespaced`, where the kernel lets us make namespaces, and `bare`, where it does not.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

from sandboxes.runner.seccomp import Duties

Role = Literal["guest", "driver"]

FILES_PER_CASE = 4096
"""Entries that a case may have in its work folder."""
SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
DEVICES = ("null", "full", "random", "urandom")  # not zero: mapping it is shared memory that nobody bounds
"""What of the system jobs see, beside the interpreter."""


class Forked(NamedTuple):
    """A case's process, as its zygote knows it; `pid` is 0 in the process itself."""

    pid: int
    own_pid: int
    """Its process id as it sees it itself."""
    first: int | None = None
    """Process 1 of the process's pid namespace, when it has one of its own."""


class Place(ABC):
    """A kind of place. One object goes through warden, zygote and child, which are forks of each other."""

    work_folder: str
    """Where a case's work folder is, while there is one."""
    duties: Duties
    """What is left to the system-call filters."""
    has_namespaces: bool
    """Whether each process is parted from the zygote's others, so that a job's cases can be left to a foreman
    (`fork_foreman`), and a process can be forked before there is a case for it."""

    # Called in the process that becomes the warden and starts the zygote.

    @abstractmethod
    def arrive(self) -> None:
        """Called first of all: see to it that `leave` will be called when the host goes."""

    @abstractmethod
    def settle(self) -> None:
        """Take this process, with all that it has loaded, to where jobs will run."""

    @abstractmethod
    def leave(self) -> None:
        """Leave nothing behind; called at the end, however it comes about."""

    # Called in the warden.

    @abstractmethod
    def make_work_folder(self) -> None:
        """Make a case's empty work folder, which belongs to the guest, unless it makes it itself (`furnish`)."""

    @abstractmethod
    def remove_work_folder(self) -> None:
        """Remove it with all that is in it, when the case's processes have ended."""

    @abstractmethod
    def is_overfull(self, limits: dict[str, float], *, at_end: bool) -> bool:
        """Whether the case wrote more than it may, where nothing hindered it; `at_end`: measure in any case."""

    @abstractmethod
    def processes(self, zygote: int, guest: int | None, driver: int | None) -> list[int]:
        """Return a guest's processes: itself, where the zygote forked it, and all below it.

        A guest without a process id here is a foreman's: it and all below the foreman are meant.
        """

    # Called in the zygote.

    @abstractmethod
    def become_zygote(self) -> None:
        """Called once, before the first `fork`."""

    @abstractmethod
    def fork(self, role: Role) -> Forked:
        """Fork a case's process, apart from every other."""

    @abstractmethod
    def fork_foreman(self) -> Forked:
        """Fork a process in which, and below which, all cases of a job run, apart from every other.

        It ends what each case leaves, and with it ends all that is below it.
        """

    @abstractmethod
    def end(self, ended: Forked, living: Forked | None) -> float:
        """End what a process that was collected has left, wait until it is gone, and return its CPU time in seconds.

        Args:
            ended: the process.
            living: the case's other process, if it is still there; it stays.

        Raises:
            OSError: it would not end.
        """

    @abstractmethod
    def leave_zygote(self) -> None:
        """Called at the zygote's end: end what it has forked."""

    # Called in a case's process.

    @abstractmethod
    def part(self) -> None:
        """Called first of all: part this process from the others."""

    @abstractmethod
    def furnish(self, limits: dict[str, float]) -> None:
        """Called in a guest: make its work folder, unless the warden has (`make_work_folder`)."""

    @abstractmethod
    def uid_of(self, role: Role) -> int | None:
        """Return the uid that a case's process changes to; None where it stays what it is."""

    @abstractmethod
    def others_of_uid(self) -> int:
        """Return how many processes to allow a guest's uid beside the guest's own."""

    @abstractmethod
    def fence(self, role: Role) -> None:
        """Called before the uid is changed: take from this process what it will not need."""


def place_for(options: Any) -> Place:
    """Return the place that the program's arguments ask for."""
    if options.bare is not None:
        from sandboxes.runner.bare import BarePlace  # noqa: PLC0415 - only one of the two is ever loaded

        return BarePlace.from_arguments(options.bare)
    from sandboxes.runner.namespaced import NamespacedPlace  # noqa: PLC0415

    return NamespacedPlace(options.base_uid, in_container=options.in_container)
