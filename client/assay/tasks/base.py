"""What every task carries, and the form a completion may be asked for."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

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
