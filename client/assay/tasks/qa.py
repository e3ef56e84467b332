"""A task with a short answer in words."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field

from assay._base import WireModel
from assay.tasks.base import ScoredTask, TagName

TextSource = Literal["answer_tag", "boxed", "phrase", "last_line", "whole"]


class QaOptions(WireModel):
    """How the answer is found in a completion and compared with the references."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"scoring": "f1"}]})

    extract: Annotated[tuple[TextSource, ...], FailFast()] = Field(
        default=("answer_tag", "boxed", "phrase", "whole"), min_length=1, max_length=5
    )
    """Where to look for the answer, in this order; the first place that holds one wins. `answer_tag`: the last
    `<answer>…</answer>`; `boxed`: the last `\\boxed{…}`; `phrase`: the last "the answer is …"; `last_line`; `whole`:
    all that follows the reasoning."""
    answer_tags: Annotated[tuple[TagName, ...], FailFast()] = Field(
        default=("answer", "final_answer"), min_length=1, max_length=8
    )
    """Names of tags that hold the answer, in any case; the one of the task's `format` counts as well."""
    scoring: Literal["exact", "f1"] = "exact"
    """`exact`: 1 when the answer equals a reference after normalisation; `f1`: the F1 of their words, with the best
    reference."""


class QaTask(ScoredTask):
    """The answer must equal one of the references after normalisation, or share words with it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "qa",
                    "completion": "<answer>The Eiffel Tower</answer>",
                    "reference": ["Eiffel Tower", "La Tour Eiffel"],
                }
            ]
        }
    )

    verifier: Literal["qa"]
    reference: str | Annotated[list[str], Field(max_length=1000)]
    """The right answer; a list accepts any of its answers."""
    options: QaOptions = QaOptions()
