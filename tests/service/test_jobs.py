"""Jobs and their event streams on a real server."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
from assay import JobStatus, Verdict

from tests.service.conftest import BAD, GOOD, ServerProcess, StartServer, format_tasks, frozen, wait_until

Event = dict[str, str]


def read_events(response: httpx.Response) -> Iterator[Event]:
    """Parse server-sent events as the HTML standard has it; comments come as {"comment": text}."""
    event: Event = {}
    for line in response.iter_lines():
        if not line:
            if event:
                yield event
            event = {}
        elif line.startswith(":"):
            yield {"comment": line[1:].strip()}
        else:
            name, _, value = line.partition(":")
            event[name] = value.removeprefix(" ")


def all_events(server: ServerProcess, job: str, **headers: str) -> list[Event]:
    with server.client.stream("GET", f"{job}/events", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(read_events(response))


def test_a_jobs_life(server: ServerProcess) -> None:
    tasks = [{"verifier": "format", "completion": GOOD if index % 2 else BAD} for index in range(20)]
    response = server.client.post("/v1/jobs", json={"tasks": tasks})
    assert response.status_code == 202
    assert response.headers["location"] == f"/v1/jobs/{response.json()['id']}"
    assert response.json()["total"] == 20

    verdicts = server.result(response.headers["location"])
    assert [verdict["format"] for verdict in verdicts] == [float(index % 2) for index in range(20)]
    status = JobStatus.model_validate(server.status(response.headers["location"]))
    assert (status.state, status.done, status.errors) == ("done", 20, 0)


def test_verdicts_are_not_shown_while_the_job_is_running(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        job = server.submit(format_tasks(10))
        status = server.status(job)
    assert status == {"id": status["id"], "state": "running", "total": 10, "done": 0, "errors": 0, "verdicts": None}


def test_events_are_replayed_from_the_start(server: ServerProcess) -> None:
    job = server.submit(format_tasks(5))
    verdicts = server.result(job)

    for _ in range(2):
        events = all_events(server, job)
        assert [event["event"] for event in events] == ["verdict"] * 5 + ["done"]
        assert [event.get("id") for event in events] == ["1", "2", "3", "4", "5", None]
        streamed = [json.loads(event["data"]) for event in events[:5]]
        assert sorted(streamed, key=lambda verdict: int(verdict["id"])) == verdicts
        done = JobStatus.model_validate_json(events[5]["data"])
        assert (done.state, done.done, done.verdicts) == ("done", 5, None)


def test_events_resume_after_the_last_one_seen(server: ServerProcess) -> None:
    job = server.submit(format_tasks(5))
    server.result(job)
    everything = all_events(server, job)
    assert all_events(server, job, **{"Last-Event-ID": "3"}) == everything[3:]
    assert all_events(server, job, **{"Last-Event-ID": "5"}) == everything[5:]
    assert all_events(server, job, **{"Last-Event-ID": "99"}) == everything[5:]
    refused = server.client.get(f"{job}/events", headers={"Last-Event-ID": "x"})
    assert refused.status_code == 400
    assert "Last-Event-ID" in refused.json()["detail"]


def test_events_after_one_that_has_not_come_are_refused(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        job = server.submit(format_tasks(100))
        refused = server.client.get(f"{job}/events", headers={"Last-Event-ID": "100"})
    assert refused.status_code == 400
    assert "Last-Event-ID" in refused.json()["detail"]


def test_a_refused_job_forgets_no_other(start_server: StartServer) -> None:
    server = start_server(
        ASSAY_WORKERS="1", ASSAY_MAX_JOBS="3", ASSAY_MAX_TASKS="300", ASSAY_MAX_JOB_TASKS="400", ASSAY_QUEUE_LIMIT="300"
    )
    finished = [server.submit(format_tasks(2)) for _ in range(2)]
    for job in finished:
        server.result(job)
    with frozen(server):
        server.submit(format_tasks(300))
        refused = server.client.post("/v1/jobs", json={"tasks": format_tasks(300)})
        assert refused.status_code == 429
        assert [server.client.get(job).status_code for job in finished] == [200, 200]


def test_events_come_while_the_job_is_running(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_SSE_KEEP_ALIVE_SECONDS="0.2")
    received: list[Event] = []

    def listen(job: str) -> None:
        received.extend(all_events(server, job))

    with frozen(server):
        job = server.submit(format_tasks(600), deadline_seconds=0.1)  # 200 at the worker, the rest expires
        wait_until(lambda: server.status(job)["done"] == 400)
        with server.client.stream("GET", f"{job}/events") as response:
            events = read_events(response)
            early = [next(events) for _ in range(400)]
            assert {json.loads(event["data"])["error"]["kind"] for event in early} == {"deadline"}
            assert next(events) == {"comment": "keep-alive"}
        listener = threading.Thread(target=listen, args=[job])
        listener.start()
    listener.join(20)
    verdicts = [event for event in received if event.get("event") == "verdict"]
    assert [int(event["id"]) for event in verdicts] == list(range(1, 601))
    assert received[-1]["event"] == "done"
    assert verdicts[:400] == early


def test_cancelling_ends_what_has_not_started(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        job = server.submit(format_tasks(600))
        cancelled = server.client.delete(job)
        assert cancelled.status_code == 200
        status = JobStatus.model_validate_json(cancelled.content)
        assert (status.state, status.done, status.errors, status.verdicts) == ("running", 400, 400, None)
    verdicts = server.result(job)
    assert [verdict["status"] for verdict in verdicts] == ["graded"] * 200 + ["error"] * 400
    assert {verdict["error"]["kind"] for verdict in verdicts[200:]} == {"cancelled"}
    assert server.status(job)["state"] == "cancelled"
    assert all_events(server, job)[-1]["event"] == "done"

    again = server.client.delete(job)
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")


def test_cancelling_too_late_changes_nothing(server: ServerProcess) -> None:
    job = server.submit(format_tasks(3))
    before = server.result(job)
    assert server.client.delete(job).json()["state"] == "done"
    assert server.result(job) == before


def test_a_long_job_does_not_starve_a_short_one(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        long = server.submit(format_tasks(10_000))
        short = server.submit(format_tasks(8))
    with server.client.stream("GET", f"{short}/events") as response:
        assert [event["event"] for event in read_events(response)][-1] == "done"
    # By turns: the chunk that was at the worker, one more at most, then the short job's only one.
    by_completion = all_events(server, long)
    assert len(by_completion) == 10_001
    waited = server.result(short)[0]["timing"]["queue_ms"]
    last: dict[str, Any] = json.loads(by_completion[-2]["data"])
    assert waited < last["timing"]["queue_ms"]


def test_finished_jobs_are_forgotten_oldest_first(start_server: StartServer) -> None:
    server = start_server(ASSAY_MAX_JOBS="2")
    jobs = []
    for _ in range(3):
        jobs.append(server.submit(format_tasks(1)))
        server.result(jobs[-1])
    assert server.client.get(jobs[0]).status_code == 404
    assert [server.client.get(job).status_code for job in jobs[1:]] == [200, 200]


def test_running_jobs_are_never_forgotten(start_server: StartServer) -> None:
    server = start_server(ASSAY_MAX_JOBS="2", ASSAY_WORKERS="1")
    with frozen(server):
        jobs = [server.submit(format_tasks(1)) for _ in range(2)]
        refused = server.client.post("/v1/jobs", json={"tasks": format_tasks(1)})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
    for job in jobs:
        assert Verdict.model_validate(server.result(job)[0]).reward == 1.0


def test_finished_jobs_expire(start_server: StartServer) -> None:
    server = start_server(ASSAY_JOB_TTL_SECONDS="0.3")
    job = server.submit(format_tasks(1))
    wait_until(lambda: server.client.get(job).status_code == 404, 5)
