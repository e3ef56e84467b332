"""A task whose completion is calls of tools, or none where none is right."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from assay._base import Json, JsonObject, Schema, WireModel
from assay.tasks.base import ScoredTask

Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ExpectedCall(WireModel):
    """One call that must be made. Each argument is named once, in `arguments`, `any_of` or `matching`."""

    name: str = Field(min_length=1)
    """Name of the function."""
    arguments: JsonObject = Field(default_factory=dict)
    """Arguments with the one value that is right."""
    any_of: dict[str, Annotated[list[Json], Field(min_length=1)]] = Field(default_factory=dict)
    """Arguments with several values, any of which is right."""
    matching: dict[str, Schema] = Field(default_factory=dict)
    """Arguments with a JSON Schema that the value must satisfy."""
    optional: list[str] = Field(default_factory=list)
    """Arguments among these that may as well be left out."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        named = [*self.arguments, *self.any_of, *self.matching]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the argument {twice!r} is in more than one of arguments, any_of and matching")
        unknown = next((name for name in self.optional if name not in named), None)
        if unknown is not None:
            raise ValueError(f"the optional argument {unknown!r} is in none of arguments, any_of and matching")
        return self


class FunctionCallOptions(WireModel):
    """How calls are read from a completion, compared and scored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"syntax": "python", "order": "fixed"}]})

    syntax: Literal["auto", "openai", "tags", "python", "json"] = "auto"
    """`openai`: JSON with `tool_calls`; `tags`: `<tool_call>…</tool_call>`; `python`: `f(x=1)`, or a list of such;
    `json`: `{"name": …, "arguments": …}`, or a list of such; `auto`: any of them."""
    order: Literal["free", "fixed"] = "free"
    """Whether several calls must stand in the order of the reference."""
    check_tools: bool = True
    """Whether calls, and the reference, must satisfy the tools' schemas; off: only the reference counts."""
    defaults_may_be_written: bool = True
    """Whether an optional argument that is written out with the tool's default counts as left out."""
    strings: Literal["exact", "loose"] = "exact"
    """`loose`: case, white space and the characters `,./-_*^'"` are left out before strings are compared."""
    scoring: Literal["all", "parts"] = "all"
    """`all`: 1 when every call is right and there is no other, else 0; `parts`: the share of names and arguments that
    are right."""


class FunctionCallTask(ScoredTask):
    """The completion must call tools as the reference says, or call none when the reference is empty."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "verifier": "function_call",
                    "completion": '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}}</tool_call>',
                    "tools": [
                        {
                            "type": "function",
                            "function": {
                                "name": "book",
                                "parameters": {
                                    "type": "object",
                                    "properties": {"city": {"type": "string"}, "nights": {"type": "integer"}},
                                    "required": ["city"],
                                },
                            },
                        }
                    ],
                    "reference": [{"name": "book", "any_of": {"city": ["Oslo", "Oslo, Norway"]}}],
                }
            ]
        }
    )

    verifier: Literal["function_call"]
    tools: list[JsonObject] = Field(min_length=1, max_length=1000)
    """The tools that the model had, in OpenAI's format, with or without the `function` around."""
    reference: list[ExpectedCall] = Field(max_length=64)
    """The calls that are right; empty when no call is."""
    fingerprint: Fingerprint | None = None
    """`assay.contract_fingerprint` of the tools that the task was made for; other tools are a broken reference."""
    options: FunctionCallOptions = FunctionCallOptions()
