"""The dispatcher interface: submit tasks, get verdicts as they come.

Implementations: `service.dispatch.local.LocalDispatcher` (worker processes of this machine).
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from assay.tasks import Task
from assay.verdict import Verdict

from sandboxes.pool import PoolState


class DispatchError(Exception):
    """Base of what a dispatcher raises."""


class WorkersUnavailable(DispatchError):
    """No worker can be started; the message says why and what to change."""


class Stopping(DispatchError):
    """The service is stopping and takes no more tasks."""


class QueueFull(DispatchError):
    """The tasks would not fit into the queue."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"the queue is full; try again in {retry_after_seconds:.0f} s")
        self.retry_after_seconds = retry_after_seconds
        """When there will be room, from the rate at which verdicts come now."""


class Submission(Protocol):
    """Tasks on their way. Every task gets exactly one verdict, an error at worst."""

    @property
    def total(self) -> int:
        """Number of tasks."""
        ...

    def __aiter__(self) -> AsyncIterator[tuple[int, Verdict]]:
        """Iterate over (position in the submission, verdict) in order of completion. May be consumed once."""
        ...

    def cancel(self) -> int:
        """Give tasks that have not started an error of kind `cancelled`; what runs finishes.

        Returns:
            The number of tasks cancelled by this call.
        """
        ...


class Dispatcher(Protocol):
    """Brings tasks to workers."""

    @property
    def ready(self) -> bool:
        """Whether a task submitted now would be started by a warm worker."""
        ...

    def pool(self) -> list[PoolState]:
        """Return the state of the workers' sandboxes as far as it is known here, by profile, all workers together."""
        ...

    @property
    def waiting_tasks(self) -> int:
        """Number of tasks that no worker has yet, as far as it is known here."""
        ...

    async def start(self) -> None:
        """Start, and return when workers are warm. Tasks may be submitted before; they wait.

        Raises:
            WorkersUnavailable: workers cannot be started, for instance because this machine cannot isolate.
        """
        ...

    async def stop(self) -> None:
        """Take no more tasks, cancel those that wait, give running ones a grace time, end. Safe to call twice."""
        ...

    def submit(self, tasks: Sequence[Task], *, deadline_seconds: float | None = None) -> Submission:
        """Queue resolved tasks (`service.admission`): each with an id and a reward, nothing left to look up.

        Args:
            tasks: at least one task.
            deadline_seconds: tasks not started this long after now end in an error of kind `deadline`.

        Raises:
            QueueFull: there is no room for all of the tasks; none was queued.
            Stopping: the service is stopping.
        """
        ...
