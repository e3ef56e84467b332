"""A task whose completion is JSON that must satisfy a schema."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from assay._base import Json, Schema, WireModel
from assay.tasks.base import ScoredTask

JsonSource = Literal["auto", "whole", "fence", "answer_tag", "first", "last"]
"""Where the JSON of a completion is: `whole` text; the last `fence` of JSON; the last `<answer>…</answer>`; the `first`
or `last` object or array in the text; `auto`: the whole text if that is JSON, else the answer tag, else the fence."""


class JsonSchemaOptions(WireModel):
    """How the JSON is found in a completion, read, checked and scored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"draft": "7", "extract": "fence"}]})

    draft: Literal["auto", "3", "4", "6", "7", "2019-09", "2020-12"] = "auto"
    """Draft of JSON Schema; `auto`: the one that the schema's `$schema` names, 2020-12 when it names none."""
    check_formats: bool = True
    """Whether `format` is checked; off: a note only, as drafts from 2019-09 say."""
    extract: JsonSource = "auto"
    allow_duplicate_keys: bool = False
    """Accept an object that has a key twice; the last one counts."""
    allow_nan: bool = False
    """Accept `NaN`, `Infinity` and `-Infinity` as numbers."""
    allow_trailing_text: bool = False
    """Accept text after the value, where the value is read from the start of what was extracted."""
    scoring: Literal["all", "required"] = "all"
    """`all`: 1 when the JSON is right, else 0; `required`: a wrong one gets the share of the schema's `required`
    properties that are right."""


class JsonSchemaTask(ScoredTask):
    """The completion is JSON that must satisfy a schema, and equal an accepted value where there are any."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "json_schema",
                    "completion": '{"city": "Oslo", "nights": 2}',
                    "reference": {
                        "type": "object",
                        "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 1}},
                        "required": ["city", "nights"],
                        "additionalProperties": False,
                    },
                }
            ]
        }
    )

    verifier: Literal["json_schema"]
    reference: Schema
    """The schema."""
    schemas: dict[str, Schema] = Field(default_factory=dict, max_length=1000)
    """Further schemas by their URI, for `$ref` and `$schema`; nothing is ever fetched."""
    accepted: Annotated[list[Json], Field(min_length=1, max_length=64)] | None = None
    """Values of which the completion's must equal one, as JSON: 1 equals 1.0, the order of keys does not count."""
    options: JsonSchemaOptions = JsonSchemaOptions()
