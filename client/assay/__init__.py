"""Assay's trainer side: the wire models of the grading service and the arithmetic of its rewards.

This package is the only part of Assay that goes into a trainer's environment; it needs pydantic and httpx, no more.
"""

from assay.reward import RewardSpec, compose_reward
from assay.tasks import (
    AssertTests,
    CodeOptions,
    CodeTask,
    FormatSpec,
    FormatTask,
    JsonSchemaOptions,
    JsonSchemaTask,
    MathOptions,
    MathTask,
    StdinTest,
    StdinTests,
    Task,
)
from assay.verdict import ErrorKind, Extracted, Integrity, Timing, Verdict, VerdictError
from assay.wire import (
    GradeRequest,
    GradeResponse,
    JobAccepted,
    JobState,
    JobStatus,
    Problem,
    ProblemField,
    VerifierInfo,
)

__all__ = [
    "AssertTests",
    "CodeOptions",
    "CodeTask",
    "ErrorKind",
    "Extracted",
    "FormatSpec",
    "FormatTask",
    "GradeRequest",
    "GradeResponse",
    "Integrity",
    "JobAccepted",
    "JobState",
    "JobStatus",
    "JsonSchemaOptions",
    "JsonSchemaTask",
    "MathOptions",
    "MathTask",
    "Problem",
    "ProblemField",
    "RewardSpec",
    "StdinTest",
    "StdinTests",
    "Task",
    "Timing",
    "Verdict",
    "VerdictError",
    "VerifierInfo",
    "compose_reward",
]
