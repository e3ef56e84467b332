"""`POST /v1/grade` on a real server."""

import json
import socket
import threading
import time

import httpx
import pytest
from assay import GradeResponse

from tests.service.conftest import BAD, GOOD, ServerProcess, StartServer, format_tasks, frozen, wait_until


def test_order_and_ids_are_kept(server: ServerProcess) -> None:
    tasks = [
        {"id": f"task {index}", "verifier": "format", "completion": GOOD if index % 3 else BAD} for index in range(1000)
    ]
    response = server.client.post("/v1/grade", json={"tasks": tasks})

    verdicts = GradeResponse.model_validate_json(response.content).verdicts
    assert [verdict.id for verdict in verdicts] == [f"task {index}" for index in range(1000)]
    assert [verdict.format for verdict in verdicts] == [1.0 if index % 3 else 0.0 for index in range(1000)]


def test_a_task_without_id_gets_its_position(server: ServerProcess) -> None:
    tasks = [*format_tasks(2), {"id": "mine", "verifier": "format", "completion": GOOD}]
    response = server.client.post("/v1/grade", json={"tasks": tasks})
    assert [verdict["id"] for verdict in response.json()["verdicts"]] == ["0", "1", "mine"]


def test_a_tasks_reward_spec_wins_over_the_requests(server: ServerProcess) -> None:
    own = {"verifier": "format", "completion": GOOD, "reward": {"format_weight": 0.5}}
    body = {"tasks": [own, *format_tasks(1)], "reward": {"format_weight": 0.25}}
    response = server.client.post("/v1/grade", json=body)
    assert [verdict["reward"] for verdict in response.json()["verdicts"]] == [0.5, 0.25]


def test_same_request_same_verdicts_apart_from_timing(server: ServerProcess) -> None:
    tasks = [{"verifier": "format", "completion": GOOD + "x" * (index % 5)} for index in range(300)]

    def graded() -> bytes:
        verdicts = server.client.post("/v1/grade", json={"tasks": tasks}).json()["verdicts"]
        for verdict in verdicts:
            del verdict["timing"]
        return json.dumps(verdicts).encode()

    assert graded() == graded()


def test_text_of_every_script_survives_the_way(server: ServerProcess) -> None:
    completion = "<think>∑ 数学 🧮 \u0000 \u2028</think>\n<answer>½</answer>"
    response = server.client.post(
        "/v1/grade", json={"tasks": [{"id": "🧮", "verifier": "format", "completion": completion}]}
    )
    assert response.json()["verdicts"][0]["id"] == "🧮"
    assert response.json()["verdicts"][0]["format"] == 1.0


def test_time_in_the_queue_is_not_grading_time(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        first = server.submit(format_tasks(1))
        second = server.submit(format_tasks(1))
        time.sleep(0.5)
    server.result(first)
    timing = server.result(second)[0]["timing"]
    assert timing["queue_ms"] >= 400
    assert timing["grade_ms"] < 400


def test_what_does_not_fit_the_queue_is_refused_at_once(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_QUEUE_LIMIT="300", ASSAY_MAX_TASKS="300")
    server.client.post("/v1/grade", json={"tasks": format_tasks(300)})
    with frozen(server):
        waiting = server.submit(format_tasks(300))  # half of it is at the worker
        started = time.monotonic()
        refused = server.client.post("/v1/grade", json={"tasks": format_tasks(200)})
        took = time.monotonic() - started
        fits = server.submit(format_tasks(100))
    assert refused.status_code == 429
    assert took < 1
    assert 1 <= int(refused.headers["retry-after"]) <= 300
    assert refused.json()["retry_after_seconds"] >= 1
    assert all(verdict["status"] == "graded" for job in (waiting, fits) for verdict in server.result(job))


def test_bytes_in_the_queue_are_bounded(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_QUEUE_MAX_BYTES="1000000")
    with frozen(server):
        server.submit(format_tasks(1))
        server.submit(format_tasks(1, "x" * 900_000))
        refused = server.client.post("/v1/grade", json={"tasks": format_tasks(1, "x" * 200_000)})
    assert refused.status_code == 429


def test_what_expired_in_the_queue_is_not_run(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        job = server.submit(format_tasks(600), deadline_seconds=0.3)
        wait_until(lambda: server.status(job)["errors"] == 400)
    verdicts = server.result(job)
    assert [verdict["status"] for verdict in verdicts] == ["graded"] * 200 + ["error"] * 400
    assert {verdict["error"]["kind"] for verdict in verdicts[200:]} == {"deadline"}
    assert all(verdict["reward"] is None and verdict["error"]["retryable"] for verdict in verdicts[200:])
    assert server.status(job)["state"] == "done"


def test_a_disconnected_caller_cancels_what_has_not_started(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_QUEUE_LIMIT="600", ASSAY_MAX_TASKS="600")
    body = json.dumps({"tasks": format_tasks(600)}).encode()
    address = httpx.URL(server.url)
    with frozen(server):
        with socket.create_connection((address.host, address.port or 0)) as connection:
            connection.sendall(b"POST /v1/grade HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
            connection.sendall(body)
            time.sleep(1.0)  # a probe that overtook the batch would take its place in the queue
            wait_until(lambda: server.client.post("/v1/jobs", json={"tasks": format_tasks(300)}).status_code == 429, 5)
        wait_until(lambda: server.client.post("/v1/jobs", json={"tasks": format_tasks(300)}).status_code == 202, 5)


@pytest.mark.parametrize("connections", [16])
def test_many_callers_at_once(server: ServerProcess, connections: int) -> None:
    problems: list[str] = []

    def call(number: int) -> None:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            for batch in range(5):
                tasks = [
                    {"id": f"{number} {batch} {index}", "verifier": "format", "completion": GOOD if index % 2 else BAD}
                    for index in range(50)
                ]
                verdicts = client.post("/v1/grade", json={"tasks": tasks}).json()["verdicts"]
                if [verdict["id"] for verdict in verdicts] != [task["id"] for task in tasks]:
                    problems.append(f"ids of {number} {batch}")
                if [verdict["format"] for verdict in verdicts] != [float(index % 2) for index in range(50)]:
                    problems.append(f"scores of {number} {batch}")

    threads = [threading.Thread(target=call, args=[number]) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
