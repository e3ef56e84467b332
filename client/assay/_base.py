"""The base of all wire models."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """An immutable message; unknown fields are refused, so that a misspelt option is never silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)
