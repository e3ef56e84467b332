"""Requests and answers of the HTTP interface `/v1`."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from assay._base import WireModel
from assay.reward import RewardSpec
from assay.tasks import FormatSpec, Task
from assay.verdict import Verdict

_MATH_EXAMPLE: dict[str, Any] = {"verifier": "math", "completion": "So \\boxed{4}.", "reference": "4"}


class GradeRequest(WireModel):
    """A batch of tasks; body of `POST /v1/grade` and `POST /v1/jobs`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"tasks": [{"id": "a", **_MATH_EXAMPLE}], "reward": {"format_weight": 0.2}}]}
    )

    tasks: list[Task] = Field(min_length=1)
    """What to grade; answers keep this order."""
    reward: RewardSpec = RewardSpec()
    """How scores become rewards, for tasks that do not say so themselves."""
    format: FormatSpec | None = None
    """The form to score, for tasks that do not say so themselves."""
    deadline_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """Tasks not started this long after the request's arrival end in an error of kind `deadline`."""


class GradeResponse(WireModel):
    """One verdict per task, in the request's order."""

    verdicts: list[Verdict]


JobState = Literal["running", "done", "cancelled"]


class JobAccepted(WireModel):
    """Answer of `POST /v1/jobs`."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "job_5f0c2c9e", "total": 64}]})

    id: str
    total: int
    """Number of tasks."""


class JobStatus(WireModel):
    """Progress of a job, and its verdicts when all are there."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": "job_5f0c2c9e", "state": "running", "total": 64, "done": 10, "errors": 0}]
        }
    )

    id: str
    state: JobState
    total: int
    done: int
    """Tasks with a verdict, errors included."""
    errors: int
    """Tasks whose verdict is an error."""
    verdicts: list[Verdict] | None = None
    """All verdicts in the request's order; null while the job is running."""


class VerifierInfo(WireModel):
    """One entry of the catalogue `GET /v1/verifiers`."""

    name: str
    version: str
    description: str
    task_schema: dict[str, Any]
    """JSON Schema of a task of this verifier."""
    options_schema: dict[str, Any]
    """JSON Schema of the task's `options`."""
    example: dict[str, Any]
    """A task that is graded 1."""


class ProblemField(WireModel):
    """One field that is wrong, and how to put it right."""

    field: str
    """Path in the body, such as `tasks[3].reference`."""
    message: str


class Problem(WireModel):
    """An error of the HTTP interface, as RFC 9457 (`application/problem+json`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "https://assay.invalid/problems/invalid-request",
                    "title": "The request is not valid",
                    "status": 422,
                    "detail": "tasks[0].reference: Field required",
                    "fields": [{"field": "tasks[0].reference", "message": "Field required"}],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    fields: list[ProblemField] = Field(default_factory=list)
    retry_after_seconds: float | None = Field(default=None, ge=0)
    """When to try again, on 429 and 503."""
