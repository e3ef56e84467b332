"""A task with a mathematical answer."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, FailFast, Field, model_validator

from assay._base import WireModel
from assay.tasks.base import ScoredTask

MathSource = Literal["boxed", "answer_tag", "marker", "phrase", "pattern", "last_expression", "last_number"]


class MathOptions(WireModel):
    """How the answer is found in a completion and compared with the reference."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"extract": ["answer_tag", "boxed"]}]})

    extract: Annotated[tuple[MathSource, ...], FailFast()] = Field(
        default=("boxed", "answer_tag", "marker", "phrase"), min_length=1, max_length=7
    )
    """Where to look for the answer, in this order; the first place that holds one wins. `boxed`: `\\boxed{…}`;
    `answer_tag`: `<answer>…</answer>`; `marker`: a line `#### 18` or `A: 18`; `phrase`: "the final answer is …", in
    English, Chinese or Korean; `pattern`: what `pattern` matches; `last_expression`: the last formula between signs of
    mathematics, or number, whichever is later; `last_number`: the last number of the text."""
    pattern: str | None = Field(default=None, min_length=1, max_length=1000)
    """A regular expression, in the syntax of RE2. Its group named `answer`, else its first group, else all that it
    matches is an answer. It is looked for before the places of `extract`, unless those name `pattern`."""
    boxes: Literal["last", "first", "unanimous", "all"] = "last"
    """Which of several answers of one place counts. `unanimous` refuses a completion whose answers differ; `all` takes
    them together as a list."""
    relative_tolerance: float | None = Field(default=None, gt=0, lt=1)
    """Accept a number that differs from the reference by at most this fraction of it; exact when left out."""
    absolute_tolerance: float | None = Field(default=None, gt=0)
    """Accept a number that differs from the reference by at most this; exact when left out."""
    ignore_units: bool = True
    """Leave out units, currency and percent signs of either side, so that `$18` and `18 dollars` equal `18`."""
    decimal_comma: bool = False
    """Read `3,14` as 3.14 and `1.234,5` as 1234.5, on both sides; items of a list are then apart by `;` or a space."""
    form: Literal["any", "value"] = "any"
    """`value` refuses an equal answer that is not worked out: `12 \\cdot 3` for 36, `\\sqrt{16}` for 4."""
    choices: list[str] | None = Field(default=None, min_length=2, max_length=26)
    """The texts of the choices A, B, C, … of a question. The reference, a letter or a text of them, is then matched by
    its letter, by its text, and by both together."""

    @model_validator(mode="after")
    def _patterns_go_together(self) -> Self:
        if "pattern" in self.extract and self.pattern is None:
            raise ValueError("`extract` names `pattern`, but `pattern` is not given")
        return self

    @property
    def sources(self) -> tuple[MathSource, ...]:
        """The places to look at, in order."""
        is_first = self.pattern is not None and "pattern" not in self.extract
        return ("pattern", *self.extract) if is_first else self.extract


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
