"""What OpenAPI cannot read off the routes: the body of grading requests, problems, keys."""

from importlib import metadata
from typing import Any

from assay.groups import GroupsRequest, PassAtKRequest
from assay.wire import GradeRequest, Problem
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

VERSION = metadata.version("assay-server")
DESCRIPTION = (
    "Grades language-model completions and returns rewards to a reinforcement-learning trainer. Errors are RFC 9457 "
    "problems; a task that could not be graded gets a verdict with `status: error`, never a reward of 0."
)
_REFERENCE = "#/components/schemas/{model}"


def body_of(model: str) -> dict[str, Any]:
    """Return the documentation of a body of that model."""
    schema = {"$ref": _REFERENCE.format(model=model)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


GRADE_REQUEST_BODY = body_of("GradeRequest")

_TITLES = {
    400: "The body is not JSON in UTF-8, or a header is not valid",
    401: "No valid API key",
    403: "A web page, or a host name that is not this machine's",
    404: "There is no such job",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "Fields are wrong; each is named",
    429: "The service is full; see Retry-After",
    500: "A defect of the service",
    503: "Not ready, or stopping; see Retry-After",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of those error responses, and of those that any route may give."""
    schema = {"$ref": _REFERENCE.format(model="Problem")}
    return {
        status: {"description": _TITLES[status], "content": {"application/problem+json": {"schema": schema}}}
        for status in sorted({*statuses, 401, 403, 500})
    }


def describe(app: FastAPI) -> None:
    """Complete the OpenAPI description of the application."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            components = schema.setdefault("components", {})
            schemas = components.setdefault("schemas", {})
            for model in (GradeRequest, GroupsRequest, PassAtKRequest, Problem):
                described = model.model_json_schema(ref_template=_REFERENCE)
                schemas.update(described.pop("$defs", {}))
                schemas[model.__name__] = described
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
            components["securitySchemes"] = {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            }
            schema["security"] = [{"bearer": []}, {"key": []}, {}]
            for path in schema["paths"].values():
                for operation in path.values():
                    if operation["responses"].get("422", {}).get("description") == "Validation Error":
                        del operation["responses"]["422"]
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]
