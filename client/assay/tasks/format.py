"""A task of which only the form is scored."""

from typing import Literal

from pydantic import ConfigDict

from assay.tasks.base import FormatSpec, TaskBase


class FormatTask(TaskBase):
    """Only the form of the completion is scored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"verifier": "format", "completion": "<think>2+2 is 4</think>\n<answer>4</answer>"}]
        }
    )

    verifier: Literal["format"]
    options: FormatSpec = FormatSpec()
