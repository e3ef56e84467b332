"""Every kind of bad input gets a problem that names the field; data in `tests/cases/http_bad_input.jsonl`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from assay import Problem

from tests.service.conftest import ServerProcess, format_tasks

_CASES = [
    json.loads(line) for line in Path("tests/cases/http_bad_input.jsonl").read_text(encoding="utf-8").splitlines()
]


def _bytes(body: Any) -> bytes:
    match body:
        case str():
            return body.encode()
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"repeat": [unit, times, end]}:
            return bytes(unit.encode() * times + end.encode())
        case {"parts": parts}:
            return b"".join(_bytes(part) for part in parts)
    raise AssertionError(body)


def _chunks(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 1 << 16):
        yield body[start : start + (1 << 16)]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["id"])
def test_bad_input(server: ServerProcess, case: dict[str, Any]) -> None:
    headers = dict(case.get("headers", {}))
    body = _bytes(case["body"]) if "body" in case else None
    if body is not None:
        headers.setdefault("content-type", case.get("content_type", "application/json"))
    content = _chunks(body) if body is not None and case.get("chunked") else body
    response = server.client.request(
        case.get("method", "POST"), case.get("path", "/v1/grade"), content=content, headers=headers
    )

    expected = case["expected"]
    assert response.status_code == expected["status"], response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate_json(response.content)
    assert problem.status == expected["status"]
    texts = [problem.detail, *(field.message for field in problem.fields)]
    if "says" in expected:
        assert any(expected["says"] in text for text in texts), texts
    if "field" in expected:
        assert expected["field"] in [field.field for field in problem.fields]
    assert len(problem.fields) <= 20
    assert len(response.content) < 20_000
    assert "Traceback" not in response.text


def test_a_missing_content_type_is_json(server: ServerProcess) -> None:
    body = json.dumps({"tasks": format_tasks(1)}).encode()
    assert server.client.post("/v1/grade", content=body).status_code == 200


def test_an_oversize_body_is_refused_before_it_is_read(server: ServerProcess) -> None:
    """The answer comes although the announced body never does."""
    import socket

    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 0), timeout=10) as connection:
        connection.sendall(b"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n{")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_the_server_survives_all_that(server: ServerProcess) -> None:
    response = server.client.post("/v1/grade", json={"tasks": format_tasks(2)})
    assert [verdict["reward"] for verdict in response.json()["verdicts"]] == [1.0, 1.0]
