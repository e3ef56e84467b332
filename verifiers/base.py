"""What a verifier is: tasks in, judgements out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from assay.tasks import FormatTask, ScoredTask
from assay.verdict import ErrorKind, Extracted, Integrity
from pydantic import JsonValue

from sandboxes.base import Profile, Sandboxes

TaskT = TypeVar("TaskT", bound=FormatTask | ScoredTask)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a verifier decided about one completion; the service adds id, reward and timing to make it a verdict."""

    reason: str
    """Short code: `equal`, `different`, `no_answer`, `passed`, …"""
    accuracy: float | None = None
    format: float | None = None
    extracted: Extracted | None = None
    details: dict[str, JsonValue] = field(default_factory=dict)
    integrity: Integrity = "isolated"
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """A task that could not be judged: never the completion's fault, never a score."""

    kind: ErrorKind
    message: str

    @property
    def retryable(self) -> bool:
        """Whether sending the task again may help: not when the task itself is at fault."""
        return self.kind != "bad_reference"


class Verifier(ABC, Generic[TaskT]):
    """Decides about tasks of one kind. Stateless: the same task and version give the same judgement."""

    name: ClassVar[str]
    version: ClassVar[str]
    """Changes whenever any judgement could."""
    description: ClassVar[str]
    profile: ClassVar[Profile | None] = None
    """The sandbox it needs warm; None when it runs nothing and parses nothing unbounded."""
    more_profiles: ClassVar[tuple[Profile, ...]] = ()
    """Sandboxes that only some tasks need; started when the first such task comes."""
    batch_size: ClassVar[int] = 1
    """How many tasks are worth grading in one call."""
    example: ClassVar[dict[str, Any]]
    """A task, as JSON, that is graded 1."""
    task_type: type[TaskT]

    @abstractmethod
    def grade(self, tasks: Sequence[TaskT], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order, each as soon as it is known.

        Raises:
            SandboxLost: the sandbox died; the tasks not yet answered have no judgement.
        """
