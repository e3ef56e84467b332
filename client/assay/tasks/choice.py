"""A task with one right choice out of several."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field

from assay._base import WireModel
from assay.tasks.base import ScoredTask, TagName
from assay.tasks.qa import TextSource


class ChoiceOptions(WireModel):
    """How the choice is found in a completion."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"labels": "numbers"}]})

    extract: Annotated[tuple[TextSource, ...], FailFast()] = Field(
        default=("answer_tag", "boxed", "phrase", "last_line"), min_length=1, max_length=5
    )
    """Where to look for the choice, in this order, as in `qa`; the first place that holds anything decides."""
    answer_tags: Annotated[tuple[TagName, ...], FailFast()] = Field(
        default=("answer", "final_answer"), min_length=1, max_length=8
    )
    """Names of tags that hold the answer, in any case; the one of the task's `format` counts as well."""
    labels: Literal["letters", "numbers"] = "letters"
    """What the choices are called: `A`, `B`, … or `1`, `2`, …"""
    accept_text: bool = True
    """Accept the text of a choice in place of its label."""


class ChoiceTask(ScoredTask):
    """The completion must name the right choice, by its label or its text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "choice",
                    "completion": "So the answer is (B).",
                    "choices": ["Rome", "Paris", "Oslo"],
                    "reference": "B",
                }
            ]
        }
    )

    verifier: Literal["choice"]
    reference: str
    """The label of the right choice, or its text."""
    choices: Annotated[list[str], Field(min_length=2, max_length=26)] | None = None
    """Texts of the choices, in the order of their labels; without them only labels count."""
    options: ChoiceOptions = ChoiceOptions()
