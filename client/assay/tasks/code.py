"""A task whose completion is a program."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field

from assay._base import WireModel
from assay.tasks.base import ScoredTask


class StdinTest(WireModel):
    """One run of the program: what it reads and what it must print."""

    input: str = ""
    """Text on standard input."""
    output: str
    """Expected standard output."""


class StdinTests(WireModel):
    """Tests that feed standard input and compare standard output (APPS, CodeContests, LiveCodeBench)."""

    style: Literal["stdin"]
    tests: Annotated[list[StdinTest], FailFast()] = Field(max_length=10_000)


class AssertTests(WireModel):
    """Test code with assertions about what the completion defines (HumanEval, MBPP)."""

    style: Literal["assert"]
    code: str
    """Python test code. It runs in a process of its own; the completion's functions are called across a channel."""
    entry_point: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Function under test; when given, and `code` defines `check`, `check(<entry_point>)` is called as in HumanEval."""
    prompt: str = ""
    """Code that the completion continues (HumanEval's prompt): imports, helpers and the head of the function."""


class CodeOptions(WireModel):
    """How the program is found, run and scored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"compare": "tokens", "scoring": "fraction"}]})

    language: Literal["python"] = "python"
    extract: Literal["auto", "last_fence", "first_fence", "raw"] = "auto"
    """`auto`: the last fenced Python block after the reasoning, else the only kind of block there is, else the text."""
    compare: Literal["lines", "exact", "tokens"] = "lines"
    """`lines`: trailing white space of each line and of the whole is ignored; `tokens`: all white space is equal."""
    scoring: Literal["all", "fraction"] = "all"
    """`all`: 1 when every test passes, else 0; `fraction`: the share of tests passed."""
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
    reference: Annotated[StdinTests | AssertTests, Field(discriminator="style")]
    options: CodeOptions = CodeOptions()
