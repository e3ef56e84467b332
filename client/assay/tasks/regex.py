"""A task whose answer must match a pattern."""

from typing import Annotated, Literal

from pydantic import ConfigDict, FailFast, Field

from assay._base import WireModel
from assay.tasks.base import ScoredTask, TagName
from assay.tasks.qa import TextSource

GroupValue = str | Annotated[list[str], Field(min_length=1, max_length=64)] | None


class RegexOptions(WireModel):
    """How the answer is found in a completion and matched."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"mode": "search", "ignore_case": True}]})

    mode: Literal["fullmatch", "search"] = "fullmatch"
    """`fullmatch`: the pattern matches the whole answer; `search`: it matches somewhere in it."""
    engine: Literal["re2", "python"] = "re2"
    """`re2`: linear time, without look-around and back-references; `python`: Python's `re`, ended by a time limit."""
    ignore_case: bool = False
    multiline: bool = False
    """`^` and `$` match at line breaks too."""
    dot_all: bool = False
    """`.` matches line breaks too."""
    strip: bool = True
    """Leave out white space at both ends of the answer."""
    which: Literal["last", "first", "every"] = "last"
    """Of several matches of `search`, the one whose groups are compared."""
    extract: Annotated[tuple[TextSource, ...], FailFast()] = Field(
        default=("answer_tag", "whole"), min_length=1, max_length=5
    )
    """Where to look for the answer, in this order, as in `qa`; the first place that holds one wins."""
    answer_tags: Annotated[tuple[TagName, ...], FailFast()] = Field(
        default=("answer", "final_answer"), min_length=1, max_length=8
    )
    """Names of tags that hold the answer, in any case; the one of the task's `format` counts as well."""


class RegexTask(ScoredTask):
    """The answer must match a pattern, and named groups must hold the expected values."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "regex",
                    "completion": "<answer>2024-02-29</answer>",
                    "reference": r"(?P<year>\d{4})-(?P<month>\d\d)-\d\d",
                    "groups": {"year": "2024", "month": ["02", "2"]},
                }
            ]
        }
    )

    verifier: Literal["regex"]
    reference: str = Field(max_length=10_000)
    """The pattern."""
    groups: dict[str, GroupValue] = Field(default_factory=dict)
    """What named groups must hold: a text, one of several, or null for a group that takes no part in the match."""
    options: RegexOptions = RegexOptions()
