"""A task whose completion is a program."""

import base64
import binascii
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, ConfigDict, FailFast, Field, model_validator

from assay._base import Json, WireModel
from assay.tasks.base import ScoredTask

_RESERVED_FILES = frozenset({"main.py"})


class Base64File(WireModel):
    """The content of a file that is no text."""

    base64: str
    """The bytes, in base64."""

    @model_validator(mode="after")
    def _refuse_other_text(self) -> Self:
        try:
            base64.b64decode(self.base64, validate=True)
        except (ValueError, binascii.Error) as error:
            raise ValueError(f"not base64: {error}") from None
        return self

    def content(self) -> bytes:
        """Return the bytes."""
        return base64.b64decode(self.base64)


def _own_place(path: str) -> str:
    if path in _RESERVED_FILES or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("a path must be relative, without '..', and not the program's own (main.py)")
    return path


FilePath = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_./-]{0,199}$"), AfterValidator(_own_place)]
"""Relative path of a file in the work folder."""
Files = Annotated[dict[FilePath, str | Base64File], Field(max_length=256)]
"""Files that stand in the program's work folder in every test, by path."""
Weight = Annotated[float, Field(gt=0)]


class Checker(WireModel):
    """A program that judges what was printed, for tests with more than one right answer."""

    code: str
    """A Python script. Its arguments are the paths of three files: the test's input, what the completion printed, and
    the expected output. It accepts with exit code 0 and rejects with 1. With any other end it rejects too,
    unless it ends so on the expected output as well: then the task is broken."""


class StdinTest(WireModel):
    """One run of the program: what it reads and what it must print."""

    input: str = ""
    """Text on standard input."""
    output: str
    """Expected standard output; with a checker, the text that it is given as the expected one."""
    weight: Weight = 1.0
    """Share in the score with `scoring: "weighted"`."""
    hidden: bool = False
    """Never show this test's content in a verdict."""


class StdinTests(WireModel):
    """Tests that feed standard input and compare standard output (APPS, CodeContests, LiveCodeBench)."""

    style: Literal["stdin"]
    tests: Annotated[list[StdinTest], FailFast()] = Field(max_length=10_000)
    checker: Checker | None = None
    """Judges the output in place of `options.compare`, in a sandbox of its own."""
    files: Files = Field(default_factory=dict)


class FunctionTest(WireModel):
    """One call of the function: what it is given and what it must return."""

    args: list[Json] = Field(default_factory=list, max_length=64)
    """Arguments by position. JSON, in which an object with one key of `$tuple`, `$set`, `$dict`, `$float`, `$bytes`
    stands for what JSON lacks: `{"$tuple": [1, 2]}`, `{"$set": []}`, `{"$dict": [[1, "a"]]}`, `{"$float": "nan"}`
    (also `inf`, `-inf`), `{"$bytes": "00ff"}`."""
    kwargs: dict[str, Json] = Field(default_factory=dict)
    """Arguments by name."""
    expected: Json
    """The value that must be returned, written like the arguments."""
    weight: Weight = 1.0
    """Share in the score with `scoring: "weighted"`."""
    hidden: bool = False
    """Never show this test's content in a verdict."""


class FunctionTests(WireModel):
    """Tests that call a function and compare what it returns (LeetCode, LiveCodeBench's functional tests)."""

    style: Literal["function"]
    entry_point: str = Field(pattern=r"^([A-Za-z_][A-Za-z0-9_]*\(\)\.)?[A-Za-z_][A-Za-z0-9_]*$")
    """The function, `twoSum`, or the method of a class without constructor arguments, `Solution().twoSum`. A function
    that is not defined is looked for in a class `Solution`."""
    tests: Annotated[list[FunctionTest], FailFast()] = Field(max_length=10_000)
    prompt: str = ""
    """Code that runs before the completion's or that it continues: imports, helpers, the head of the function."""
    compare_argument: int | None = Field(default=None, ge=0, le=63)
    """Compare what this argument, by position, holds after the call, in place of the returned value."""
    files: Files = Field(default_factory=dict)


class AssertTests(WireModel):
    """Test code with assertions about what the completion defines (HumanEval, MBPP)."""

    style: Literal["assert"]
    code: str
    """Python test code. It runs in a process of its own; the completion's functions are called across a channel."""
    entry_point: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Function under test; when given, and `code` defines `check`, `check(<entry_point>)` is called as in HumanEval."""
    prompt: str = ""
    """Code that the completion continues (HumanEval's prompt): imports, helpers and the head of the function."""


class PytestTests(WireModel):
    """A test file for pytest or unittest that imports the completion as a module; each test has its result."""

    style: Literal["pytest"]
    code: str
    """The test file. It runs in a process of its own; the completion's functions are called across a channel."""
    module: str = Field(default="solution", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """The name by which the test file imports the completion."""


CodeReference = StdinTests | FunctionTests | AssertTests | PytestTests
"""What a program is tested with."""


class CodeOptions(WireModel):
    """How the program is found, run and scored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"compare": "tokens", "scoring": "fraction"}]})

    language: Literal["python"] = "python"
    extract: Literal["auto", "last_fence", "first_fence", "raw"] = "auto"
    """`auto`: the last fenced Python block after the reasoning, else the only kind of block there is, else the text."""
    compare: Literal["lines", "exact", "tokens", "numeric", "unordered_lines"] = "lines"
    """Outputs. `lines`: trailing white space of each line and of the whole is ignored; `tokens`: all white space is
    equal; `numeric`: like `tokens`, numbers within the tolerances; `unordered_lines`: like `lines`, in any order."""
    relative_tolerance: float | None = Field(default=None, ge=0, lt=1)
    """Of numbers in `numeric` outputs (1e-6 when left out) and of floats in returned values (1e-9 when left out)."""
    absolute_tolerance: float | None = Field(default=None, ge=0)
    """A number within either tolerance is accepted; 1e-6 for `numeric`, 0 for returned values when left out."""
    tuples_are_lists: bool = True
    """Returned values: accept a tuple where a list is expected, and the other way round."""
    list_order: Literal["strict", "outer", "any"] = "strict"
    """Returned values: `outer`: the order of the outermost list does not count, `any`: that of no list. Then a set is
    accepted where such a list is expected."""
    nan_equal: bool = False
    """Accept NaN where NaN is expected; off, it equals nothing."""
    scoring: Literal["all", "fraction", "weighted"] = "all"
    """`all`: 1 when every test passes, else 0; `fraction`: the share of tests passed; `weighted`: by their weights.
    Test code of style `assert` is one test."""
    stop_at_first_failure: bool | None = None
    """Skip the tests after the first that did not pass. Left out: with `scoring: "all"`, after the first that crashed
    or broke a limit. Refused with the other scorings, in which every test counts."""
    cpu_seconds: float = Field(default=5.0, gt=0)
    """CPU time of one test; decides a timeout."""
    wall_seconds: float | None = Field(default=None, gt=0)
    """Wall time of one test, a backstop for programs that sleep; three times the CPU time plus 5 s when left out."""
    memory_mb: int = Field(default=512, ge=32, le=1 << 20)
    """Memory of the program and all its children, in MiB."""
    output_kb: int = Field(default=1024, ge=1, le=1 << 20)
    """Standard output and standard error of one test, each, in KiB; more than that is a failure."""
    echo_tests: bool = True
    """Show inputs, expected and printed output of failed tests, cut small, in the verdict; off for hidden tests."""

    @model_validator(mode="after")
    def _refuse_to_stop_where_all_count(self) -> Self:
        if self.stop_at_first_failure and self.scoring != "all":
            raise ValueError(f"stop_at_first_failure cannot be used with scoring {self.scoring!r}: every test counts")
        return self


class CodeTask(ScoredTask):
    """The completion is a program that must pass tests."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "code",
                    "completion": "```python\nprint(int(input()) * 2)\n```",
                    "reference": {"style": "stdin", "tests": [{"input": "21\n", "output": "42\n"}]},
                }
            ]
        }
    )

    verifier: Literal["code"]
    reference: Annotated[CodeReference, Field(discriminator="style")]
    options: CodeOptions = CodeOptions()
