"""A task with a mathematical answer."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field

from assay._base import WireModel
from assay.tasks.base import ScoredTask

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
