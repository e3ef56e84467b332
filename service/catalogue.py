"""The catalogue of verifiers, from the registry and the task models."""

from typing import Any

from assay.wire import VerifierInfo
from pydantic import BaseModel

from verifiers.registry import REGISTRY


def build() -> list[VerifierInfo]:
    """Return an entry for each verifier."""
    return [
        VerifierInfo(
            name=name,
            version=verifier.version,
            description=verifier.description,
            task_schema=verifier.task_type.model_json_schema(),
            options_schema=_options_schema(verifier.task_type),
            example=verifier.example,
        )
        for name, verifier in REGISTRY.items()
    ]


def _options_schema(task_type: type[BaseModel]) -> dict[str, Any]:
    options = task_type.model_fields["options"].annotation
    assert isinstance(options, type)
    assert issubclass(options, BaseModel)
    return options.model_json_schema()
