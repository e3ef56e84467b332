"""Tasks: a completion with what it is graded against, one module per verifier."""

from typing import Annotated

from pydantic import Field

from assay.tasks.base import FormatSpec, ScoredTask, TagName, TaskBase
from assay.tasks.choice import ChoiceOptions, ChoiceTask
from assay.tasks.code import AssertTests, CodeOptions, CodeTask, StdinTest, StdinTests
from assay.tasks.format import FormatTask
from assay.tasks.function_call import ExpectedCall, FunctionCallOptions, FunctionCallTask
from assay.tasks.json_schema import JsonSchemaOptions, JsonSchemaTask, JsonSource
from assay.tasks.math import MathOptions, MathSource, MathTask
from assay.tasks.qa import QaOptions, QaTask, TextSource

Task = Annotated[
    FormatTask | MathTask | CodeTask | JsonSchemaTask | FunctionCallTask | QaTask | ChoiceTask,
    Field(discriminator="verifier"),
]
"""Any task; `verifier` tells which."""

__all__ = [
    "AssertTests",
    "ChoiceOptions",
    "ChoiceTask",
    "CodeOptions",
    "CodeTask",
    "ExpectedCall",
    "FormatSpec",
    "FormatTask",
    "FunctionCallOptions",
    "FunctionCallTask",
    "JsonSchemaOptions",
    "JsonSchemaTask",
    "JsonSource",
    "MathOptions",
    "MathSource",
    "MathTask",
    "QaOptions",
    "QaTask",
    "ScoredTask",
    "StdinTest",
    "StdinTests",
    "TagName",
    "Task",
    "TaskBase",
    "TextSource",
]
