"""The base of all wire models, and JSON as they carry it."""

import math
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, JsonValue, StrictBool, TypeAdapter


class WireModel(BaseModel):
    """An immutable message; unknown fields are refused, so that a misspelt option is never silently ignored."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)


_WRITTEN: TypeAdapter[JsonValue] = TypeAdapter(JsonValue, config=ConfigDict(ser_json_inf_nan="constants"))


def _finite(value: JsonValue) -> JsonValue:
    text = _WRITTEN.dump_json(value)
    if (b"NaN" in text or b"Infinity" in text) and not _is_finite(value):
        raise ValueError("numbers must be finite: NaN, infinities and numbers beyond 1.8e308 are no JSON")
    return value


def _is_finite(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(map(_is_finite, inner))


Json = Annotated[JsonValue, AfterValidator(_finite)]
"""Any JSON value, its numbers finite."""
JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
"""A JSON object, its numbers finite."""
Schema = StrictBool | JsonObject
"""A JSON Schema: an object, or true or false."""
