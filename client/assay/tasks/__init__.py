"""Tasks: a completion with what it is graded against, one module per verifier."""

from typing import Annotated

from pydantic import Field

from assay.tasks.base import FormatSpec, ScoredTask, TagName, TaskBase
from assay.tasks.code import AssertTests, CodeOptions, CodeTask, StdinTest, StdinTests
from assay.tasks.format import FormatTask
from assay.tasks.json_schema import JsonSchemaOptions, JsonSchemaTask, JsonSource
from assay.tasks.math import MathOptions, MathSource, MathTask

Task = Annotated[FormatTask | MathTask | CodeTask | JsonSchemaTask, Field(discriminator="verifier")]
"""Any task; `verifier` tells which."""

__all__ = [
    "AssertTests",
    "CodeOptions",
    "CodeTask",
    "FormatSpec",
    "FormatTask",
    "JsonSchemaOptions",
    "JsonSchemaTask",
    "JsonSource",
    "MathOptions",
    "MathSource",
    "MathTask",
    "ScoredTask",
    "StdinTest",
    "StdinTests",
    "TagName",
    "Task",
    "TaskBase",
]
