"""What the application makes of a dispatcher that fails, is not warm, is full or is stopping."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from assay import Problem, Task

from sandboxes.pool import PoolState
from service.app import create_app
from service.dispatch.base import QueueFull, Stopping, Submission
from service.settings import Settings
from tests.service.conftest import format_tasks


class RefusingDispatcher:
    waiting_tasks = 0

    def pool(self) -> list[PoolState]:
        return []

    """Refuses every submission with the same exception; the real one is tested on real servers."""

    def __init__(self, refusal: Exception) -> None:
        self._refusal = refusal

    @property
    def ready(self) -> bool:
        return False

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    def submit(self, tasks: Sequence[Task], *, deadline_seconds: float | None = None) -> Submission:  # noqa: ARG002
        raise self._refusal


def request(method: str, path: str, refusal: Exception | None = None, **arguments: Any) -> httpx.Response:
    app = create_app(Settings(), RefusingDispatcher(refusal or Stopping("not used")))

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, **arguments)

    return asyncio.run(send())


def problem(response: httpx.Response, status: int) -> Problem:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    return Problem.model_validate_json(response.content)


@pytest.mark.parametrize("path", ["/v1/grade", "/v1/jobs"])
def test_an_unexpected_failure_shows_nothing_of_itself(path: str) -> None:
    response = request("POST", path, RuntimeError("the secret inside"), json={"tasks": format_tasks(1)})
    assert problem(response, 500).type.endswith("/internal")
    assert "secret" not in response.text
    assert "RuntimeError" not in response.text
    assert "Traceback" not in response.text


@pytest.mark.parametrize("path", ["/v1/grade", "/v1/jobs"])
def test_a_full_queue_says_when_to_come_back(path: str) -> None:
    response = request("POST", path, QueueFull(12.4), json={"tasks": format_tasks(1)})
    assert problem(response, 429).retry_after_seconds == 12.4
    assert response.headers["retry-after"] == "12"


def test_a_stopping_service_is_unavailable() -> None:
    response = request("POST", "/v1/grade", Stopping("the service is stopping"), json={"tasks": format_tasks(1)})
    assert problem(response, 503).detail == "the service is stopping"
    assert int(response.headers["retry-after"]) >= 1


def test_not_ready_is_a_problem_and_alive_is_not() -> None:
    response = request("GET", "/readyz")
    assert "no worker is warm" in problem(response, 503).detail
    assert int(response.headers["retry-after"]) >= 1
    assert request("GET", "/healthz").status_code == 200
