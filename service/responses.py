"""Responses: wire models as JSON, problems as `application/problem+json`."""

from pydantic import BaseModel
from starlette.responses import Response

from service.errors import ServiceProblem


def model_response(model: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a wire model as JSON, straight from pydantic's serializer."""
    return Response(
        model.__pydantic_serializer__.to_json(model), status, headers=headers, media_type="application/json"
    )


def problem_response(problem: ServiceProblem) -> Response:
    """Return a problem."""
    body = problem.problem().model_dump_json(exclude_none=True)
    return Response(body, problem.status, headers=problem.headers, media_type="application/problem+json")
