"""Verdicts: what was decided about one completion, and how well that decision was protected."""

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from assay._base import WireModel

ErrorKind = Literal["bad_reference", "worker_lost", "sandbox_lost", "deadline", "cancelled", "internal"]
"""Why a task could not be graded. Only `bad_reference` is the task's own fault; none is the completion's."""

Integrity = Literal["isolated", "shared_process"]
"""`isolated`: what the completion is compared with, and the comparison, stayed out of its reach. `shared_process`: a
comparison was computed in a process that the completion's code controls."""


class VerdictError(WireModel):
    """Why there is no score."""

    kind: ErrorKind
    message: str
    """For people; programs branch on `kind`."""
    retryable: bool
    """Sending the same task again may give a score."""


class Extracted(WireModel):
    """What was taken as the answer."""

    text: str
    """The answer, cut to a few kilobytes."""
    source: str
    """Where it was found: the name of an extraction rule."""


class Timing(WireModel):
    """Where the time of one task went, in milliseconds; the only part of a verdict that differs between runs."""

    queue_ms: float = 0.0
    """From the task's arrival until a worker took it."""
    grade_ms: float = 0.0
    """Wall time in the worker since the verdict before; of tasks graded together the first bears the common part."""
    cpu_ms: float = 0.0
    """CPU time of the completion's own code in the sandbox."""
    peak_memory_kb: int = 0
    """Largest resident memory of the completion's own code, in KiB."""


class Verdict(WireModel):
    """The result for one completion: a score, or an error that says why there is none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "0",
                    "verifier": "math",
                    "version": "1",
                    "status": "graded",
                    "accuracy": 1.0,
                    "format": None,
                    "reward": 1.0,
                    "reason": "equal",
                    "error": None,
                    "extracted": {"text": "\\frac{1}{2}", "source": "boxed"},
                    "details": {},
                    "integrity": "isolated",
                    "timing": {"queue_ms": 0.4, "grade_ms": 2.1, "cpu_ms": 1.7, "peak_memory_kb": 61000},
                }
            ]
        }
    )

    id: str
    """The task's id."""
    verifier: str
    version: str
    """Version of the verifier; it changes whenever a verdict could."""
    status: Literal["graded", "error"]
    accuracy: float | None = Field(default=None, ge=0, le=1)
    """Whether the answer is right; null when not scored or not graded."""
    format: float | None = Field(default=None, ge=0, le=1)
    """Whether the form is right; null when not asked for or not graded."""
    reward: float | None = None
    """The composed reward; null when nothing was scored. Never 0 for a failure of the service."""
    reason: str | None = None
    """Short code of why the score is what it is: `equal`, `different`, `no_answer`, `passed`, `tests_failed`, …"""
    error: VerdictError | None = None
    extracted: Extracted | None = None
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """The verifier's own findings: per-test results, the mismatch shown small."""
    integrity: Integrity | None = None
    timing: Timing = Timing()
