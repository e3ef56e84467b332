"""Tasks: a completion with what it is graded against, one module per verifier."""

from typing import Annotated

from pydantic import Field

from assay.tasks.base import FormatSpec, ScoredTask, TagName, TaskBase
from assay.tasks.choice import ChoiceOptions, ChoiceTask
from assay.tasks.code import (
    AssertTests,
    Base64File,
    Checker,
    CodeOptions,
    CodeReference,
    CodeTask,
    FunctionTest,
    FunctionTests,
    PytestTests,
    StdinTest,
    StdinTests,
)
from assay.tasks.format import FormatTask
from assay.tasks.function_call import ExpectedCall, FunctionCallOptions, FunctionCallTask
from assay.tasks.json_schema import JsonSchemaOptions, JsonSchemaTask, JsonSource
from assay.tasks.math import MathOptions, MathSource, MathTask
from assay.tasks.parses import (
    CsvLanguage,
    JsonLanguage,
    LarkLanguage,
    ParsesOptions,
    ParsesTask,
    PythonLanguage,
    SqlLanguage,
    TomlLanguage,
    XmlLanguage,
    YamlLanguage,
)
from assay.tasks.qa import QaOptions, QaTask, TextSource
from assay.tasks.regex import RegexOptions, RegexTask

Task = Annotated[
    FormatTask | MathTask | CodeTask | JsonSchemaTask | FunctionCallTask | QaTask | ChoiceTask | RegexTask | ParsesTask,
    Field(discriminator="verifier"),
]
"""Any task; `verifier` tells which."""

__all__ = [
    "AssertTests",
    "Base64File",
    "Checker",
    "ChoiceOptions",
    "ChoiceTask",
    "CodeOptions",
    "CodeReference",
    "CodeTask",
    "CsvLanguage",
    "ExpectedCall",
    "FormatSpec",
    "FormatTask",
    "FunctionCallOptions",
    "FunctionCallTask",
    "FunctionTest",
    "FunctionTests",
    "JsonLanguage",
    "JsonSchemaOptions",
    "JsonSchemaTask",
    "JsonSource",
    "LarkLanguage",
    "MathOptions",
    "MathSource",
    "MathTask",
    "ParsesOptions",
    "ParsesTask",
    "PytestTests",
    "PythonLanguage",
    "QaOptions",
    "QaTask",
    "RegexOptions",
    "RegexTask",
    "ScoredTask",
    "SqlLanguage",
    "StdinTest",
    "StdinTests",
    "TagName",
    "Task",
    "TaskBase",
    "TextSource",
    "TomlLanguage",
    "XmlLanguage",
    "YamlLanguage",
]
