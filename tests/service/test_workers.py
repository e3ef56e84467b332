"""Worker processes that are killed, hang, cannot start, or lose their gateway."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from service.dispatch.base import WorkersUnavailable
from service.embedded import EmbeddedGrader
from service.settings import Settings
from tests.service.conftest import (
    ServerProcess,
    StartServer,
    children,
    format_tasks,
    frozen,
    is_alive,
    sleeper,
    wait_until,
)


def descendants(pid: int) -> list[int]:
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def busy_worker(server: ServerProcess, but_not: int = 0) -> int:
    """Wait until a worker runs a guest that sleeps, and return the worker."""
    found: list[int] = []

    def look() -> bool:
        found[:] = [worker for worker in server.workers() if worker != but_not and cpu_free_guest(worker)]
        return bool(found)

    wait_until(look, 20)
    return found[0]


def cpu_free_guest(worker: int) -> bool:
    """Whether a descendant of the worker is inside `time.sleep` of a guest."""
    for pid in descendants(worker):
        try:
            with open(f"/proc/{pid}/syscall", encoding="ascii") as file:  # noqa: PTH123
                number = file.read().split()[0]
        except (OSError, IndexError):
            continue
        if number in {"230", "115"}:  # clock_nanosleep on x86-64 and aarch64
            return True
    return False


def test_a_killed_worker_is_replaced_and_its_tasks_are_graded(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="2")
    before = server.workers()
    with frozen(server):
        job = server.submit(format_tasks(500))
        for pid in before:
            os.kill(pid, signal.SIGKILL)
    verdicts = server.result(job)
    assert [verdict["reward"] for verdict in verdicts] == [1.0] * 500
    wait_until(lambda: len(server.workers()) == 2)
    assert not set(before) & set(server.workers())
    assert server.log.count("was lost (exit code -9)") == 2


def test_a_task_that_loses_two_workers_is_given_up_and_the_rest_is_unharmed(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    tasks = [*format_tasks(3), sleeper(60), sleeper(0), sleeper(0), *format_tasks(3)]
    job = server.submit(tasks)
    first = busy_worker(server)
    os.kill(first, signal.SIGKILL)
    os.kill(busy_worker(server, but_not=first), signal.SIGKILL)
    verdicts = server.result(job)

    assert [verdict["reward"] for verdict in verdicts] == [1.0] * 3 + [None] + [1.0] * 5
    error = verdicts[3]["error"]
    assert (error["kind"], error["retryable"]) == ("worker_lost", True)
    assert verdicts[3]["verifier"] == "code"
    assert server.status(job)["errors"] == 1
    after = server.client.post("/v1/grade", json={"tasks": format_tasks(4)})
    assert [verdict["reward"] for verdict in after.json()["verdicts"]] == [1.0] * 4


def test_one_crash_is_forgiven(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    job = server.submit([sleeper(2)])
    os.kill(busy_worker(server), signal.SIGKILL)
    assert [verdict["accuracy"] for verdict in server.result(job)] == [1.0]


def test_a_worker_that_hangs_is_killed_and_its_task_graded(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_HANG_MARGIN_SECONDS="0.5")
    [worker] = server.workers()
    os.kill(worker, signal.SIGSTOP)
    job = server.submit(format_tasks(1))
    assert [verdict["reward"] for verdict in server.result(job)] == [1.0]
    assert not is_alive(worker)
    assert "silent for too long" in server.log


def test_cancelled_tasks_of_a_lost_worker_are_not_started_again(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    with frozen(server):
        job = server.submit(format_tasks(10))
        server.client.delete(job)
        os.kill(server.workers()[0], signal.SIGKILL)
        verdicts = server.result(job)
    assert {verdict["error"]["kind"] for verdict in verdicts} == {"cancelled"}


def test_not_ready_without_workers(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    os.kill(server.workers()[0], signal.SIGKILL)
    wait_until(lambda: server.client.get("/readyz").status_code == 503, 5)
    answer = server.client.get("/readyz")
    if answer.status_code == 503:
        assert answer.json()["type"].endswith("/unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    server.wait_until_ready()


def test_nothing_is_left_when_the_gateway_is_killed(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="2")
    server.submit([sleeper(60), sleeper(60)])
    busy_worker(server)
    left = descendants(server.process.pid)
    assert len(left) > 2
    server.process.kill()
    server.process.wait()
    wait_until(lambda: not any(map(is_alive, left)), 5)


def test_sigterm_lets_running_tasks_finish_and_answers_the_rest(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1")
    answers: list[httpx.Response] = []

    def call() -> None:
        body = {"tasks": [sleeper(1.5), *[sleeper(0.2) for _ in range(60)]]}
        answers.append(httpx.post(f"{server.url}/v1/grade", json=body, timeout=60))

    caller = threading.Thread(target=call)
    caller.start()
    busy_worker(server)
    left = descendants(server.process.pid)
    started = time.monotonic()
    code = server.end()
    caller.join()

    assert code == 0, server.log
    assert time.monotonic() - started < 10
    verdicts = answers[0].json()["verdicts"]
    assert verdicts[0]["accuracy"] == 1.0
    assert len(verdicts) == 61
    cancelled = [verdict["error"] for verdict in verdicts if verdict["status"] == "error"]
    assert len(cancelled) > 40
    assert all(error["kind"] == "cancelled" and error["retryable"] for error in cancelled)
    wait_until(lambda: not any(map(is_alive, left)), 5)


def test_sigterm_does_not_wait_longer_than_the_grace_time(start_server: StartServer) -> None:
    server = start_server(ASSAY_WORKERS="1", ASSAY_SHUTDOWN_GRACE_SECONDS="0.5")
    answers: list[httpx.Response] = []

    def call() -> None:
        answers.append(httpx.post(f"{server.url}/v1/grade", json={"tasks": [sleeper(60)]}, timeout=60))

    caller = threading.Thread(target=call)
    caller.start()
    busy_worker(server)
    started = time.monotonic()
    assert server.end() == 0, server.log
    caller.join()
    assert time.monotonic() - started < 8
    assert answers[0].json()["verdicts"][0]["error"]["kind"] == "cancelled"


def test_a_machine_that_cannot_isolate_ends_the_start_with_the_reason() -> None:
    with pytest.raises(WorkersUnavailable) as refused, EmbeddedGrader(Settings(workers=2, bwrap="/nowhere/bwrap")):
        pass
    assert "/nowhere/bwrap" in str(refused.value)


def test_workers_do_not_get_the_keys(start_server: StartServer) -> None:
    server = start_server(ASSAY_API_KEYS="a-key-that-is-long-enough")
    for pid in descendants(server.process.pid):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                assert b"a-key-that-is-long-enough" not in file.read()
        except (PermissionError, FileNotFoundError, ProcessLookupError):
            continue


def test_the_same_port_twice_is_an_error(server: ServerProcess) -> None:
    from service.server import serve

    with pytest.raises(OSError, match="in use"):
        serve(Settings(port=int(server.url.rpartition(":")[2])))


def test_a_server_that_cannot_isolate_ends_with_the_reason() -> None:
    environment = {**os.environ, "ASSAY_BWRAP": "/nowhere/bwrap", "ASSAY_PORT": "0"}
    ended = subprocess.run(
        [Path(sys.executable).with_name("assay"), "serve"],
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    message = ended.stderr.decode()
    assert ended.returncode == 3, message
    assert "ASSAY_BWRAP names /nowhere/bwrap" in message
    assert "Traceback" not in message
