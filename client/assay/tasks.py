"""Tasks: a completion with what it is graded against, one model per verifier."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, FailFast, Field, model_validator

from assay._base import WireModel
from assay.reward import RewardSpec

TagName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]


class FormatSpec(WireModel):
    """The form a completion must have: reasoning in one tag, then the answer in another, and nothing else."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"think_prefilled": True}]})

    think_tag: TagName = "think"
    """Name of the reasoning tag."""
    answer_tag: TagName | None = "answer"
    """Name of the answer tag; null asks only for the reasoning tag followed by a non-empty answer in free text."""
    think_prefilled: bool = False
    """The prompt already ended with the opening reasoning tag, so the completion starts inside it."""
    strict: bool = True
    """Refuse text between and around the two parts. Off: text is allowed there, but no further tag of either name."""
    ignore_case: bool = False
    """Accept `<Think>` for `<think>`."""
    allow_empty_think: bool = False
    """Accept reasoning that is empty or only white space."""

    @model_validator(mode="after")
    def _refuse_one_name_for_both(self) -> Self:
        if self.answer_tag is not None and self.answer_tag.lower() == self.think_tag.lower():
            raise ValueError("think_tag and answer_tag need different names")
        return self


class TaskBase(WireModel):
    """What every task carries."""

    id: str | None = Field(default=None, min_length=1, max_length=256)
    """The caller's name for this task, unique in the request; the task's position in the request when left out."""
    completion: str
    """What the model wrote."""
    reward: RewardSpec | None = None
    """How this task's scores become its reward; the request's `reward` when left out."""


class ScoredTask(TaskBase):
    """A task with an accuracy score, and a format score when its form is asked for."""

    format: FormatSpec | None = None
    """The form to score beside the accuracy; the request's `format` when left out; not scored when neither is given."""


class FormatTask(TaskBase):
    """Only the form of the completion is scored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"verifier": "format", "completion": "<think>2+2 is 4</think>\n<answer>4</answer>"}]
        }
    )

    verifier: Literal["format"]
    options: FormatSpec = FormatSpec()


MathSource = Literal["boxed", "answer_tag", "marker", "phrase", "last_number"]


class MathOptions(WireModel):
    """How the answer is found in a completion and compared with the reference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"extract": ["answer_tag", "boxed"]}]})

    extract: Annotated[tuple[MathSource, ...], FailFast()] = Field(
        default=("boxed", "answer_tag", "marker", "phrase"), min_length=1, max_length=5
    )
    """Where to look for the answer, in this order; the first place that holds one wins. `boxed`: `\\boxed{…}`;
    `answer_tag`: `<answer>…</answer>`; `marker`: a line `#### 18` or `A: 18`; `phrase`: "the final answer is …";
    `last_number`: the last number of the text."""
    boxes: Literal["last", "first", "unanimous"] = "last"
    """Which of several answers counts; `unanimous` refuses a completion whose answers differ in text."""
    relative_tolerance: float | None = Field(default=None, gt=0, lt=1)
    """Accept a number that differs from the reference by at most this fraction of it; exact when left out."""
    ignore_units: bool = True
    """Leave out units, currency and percent signs of either side, so that `$18` and `18 dollars` equal `18`."""


class MathTask(ScoredTask):
    """The answer must be mathematically equal to the reference."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"verifier": "math", "completion": "So \\boxed{\\frac{1}{2}}.", "reference": "0.5"}]
        }
    )

    verifier: Literal["math"]
    reference: str | Annotated[list[str], Field(max_length=64)]
    """The right answer, as text or LaTeX (a `\\boxed{…}` around it is taken off); a list accepts any of its answers."""
    options: MathOptions = MathOptions()


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


Task = Annotated[FormatTask | MathTask | CodeTask, Field(discriminator="verifier")]
"""Any task; `verifier` tells which."""
