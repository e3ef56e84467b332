"""Everything that goes wrong in the application becomes a problem."""

import logging

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from service.errors import (
    BadHeader,
    InternalProblem,
    MalformedBody,
    MethodNotAllowed,
    NotFound,
    ServiceProblem,
)
from service.responses import problem_response

logger = logging.getLogger(__name__)


def handle_problems(app: FastAPI) -> None:
    """Answer all errors with problems: our own, Starlette's, and what nobody expected."""

    @app.exception_handler(ServiceProblem)
    async def known(_request: Request, problem: ServiceProblem) -> Response:
        return problem_response(problem)

    @app.exception_handler(HTTPException)
    async def from_starlette(request: Request, error: HTTPException) -> Response:
        return problem_response(_translated(request, error))

    @app.exception_handler(RequestValidationError)
    async def from_fastapi(_request: Request, _error: RequestValidationError) -> Response:
        return problem_response(BadHeader("a parameter of the request is not valid"))

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        return problem_response(MalformedBody("the body ended early"))

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, _error: Exception) -> Response:
        # Starlette raises it again after this response, so that the server logs it with its traceback.
        return problem_response(InternalProblem("an unexpected failure; the server's log has more"))


def _translated(request: Request, error: HTTPException) -> ServiceProblem:
    path = request.url.path[:100]
    if error.status_code == 404:
        return NotFound(f"there is nothing at {path}; the interface is described at /docs")
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        headers = {"allow": allowed} if allowed else None
        return MethodNotAllowed(f"{request.method[:20]} is not allowed at {path}; allowed: {allowed}", headers=headers)
    if error.status_code < 500:
        return MalformedBody(str(error.detail))
    return InternalProblem("an unexpected failure")
