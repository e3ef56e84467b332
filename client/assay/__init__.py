"""Assay's trainer side: the wire models of the grading service and the arithmetic of its rewards.

This package is the only part of Assay that goes into a trainer's environment; it needs pydantic and httpx, no more.
"""

from assay.contracts import contract_fingerprint
from assay.reward import RewardSpec, compose_reward
from assay.tasks import (
    AssertTests,
    ChoiceOptions,
    ChoiceTask,
    CodeOptions,
    CodeTask,
    ExpectedCall,
    FormatSpec,
    FormatTask,
    FunctionCallOptions,
    FunctionCallTask,
    JsonSchemaOptions,
    JsonSchemaTask,
    MathOptions,
    MathTask,
    QaOptions,
    QaTask,
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
    "ChoiceOptions",
    "ChoiceTask",
    "CodeOptions",
    "CodeTask",
    "ErrorKind",
    "ExpectedCall",
    "Extracted",
    "FormatSpec",
    "FormatTask",
    "FunctionCallOptions",
    "FunctionCallTask",
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
    "QaOptions",
    "QaTask",
    "RewardSpec",
    "StdinTest",
    "StdinTests",
    "Task",
    "Timing",
    "Verdict",
    "VerdictError",
    "VerifierInfo",
    "compose_reward",
    "contract_fingerprint",
]
