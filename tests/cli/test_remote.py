"""`assay grade --url`: against the real service, and against one that misbehaves."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.test_grade import BAD_FORM, GOOD, lines, without_timing

KEY = "a-key-of-this-test-only"
Answer = tuple[int, dict[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def service_url() -> Iterator[str]:
    """Start the real service on a free port, with an API key."""
    command = [str(Path(sys.executable).with_name("assay")), "serve", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={"ASSAY_API_KEYS": KEY}) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if found := re.search(r"listening on (\S+)", line):
                break
        else:
            pytest.fail("the service did not start")
        drain = threading.Thread(target=server.stderr.read)  # a full pipe would stop the service
        drain.start()
        yield found[1]
        server.terminate()
        drain.join()
    assert server.returncode == 0


def verdict_of(task: dict[str, Any]) -> dict[str, Any]:
    return {"id": task["id"], "verifier": "format", "version": "1", "status": "graded", "format": 1, "reward": 1}


def right_answer(body: dict[str, Any]) -> Answer:
    return 200, {}, {"verdicts": [verdict_of(task) for task in body["tasks"]]}


@contextmanager
def service_that_answers(answer: Callable[[dict[str, Any], int], Answer]) -> Iterator[str]:
    """Serve `answer(request body, number of the request)`."""
    numbers = iter(range(1_000_000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, message = answer(body, next(numbers))
            payload = json.dumps(message).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(payload))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_service_gives_the_same_verdicts_as_workers_here(assay: Run, service_url: str) -> None:
    tasks = lines(*[GOOD, BAD_FORM] * 100, {**GOOD, "id": "last"})
    here = assay("grade", "-", "-o", "-", stdin=tasks)
    there = assay("grade", "-", "-o", "-", "--url", service_url + "/", stdin=tasks, ASSAY_API_KEY=KEY)
    assert (here.returncode, there.returncode) == (0, 0)
    assert len(without_timing(here.stdout)) == 201
    assert without_timing(here.stdout) == without_timing(there.stdout)


def test_a_refused_key_is_a_usage_error(assay: Run, service_url: str) -> None:
    done = assay("grade", "-", "-o", "-", "--url", service_url, "--api-key", "wrong", stdin=lines(GOOD))
    assert (done.returncode, done.stdout) == (2, "")
    assert "refused the API key (401)" in done.stderr


def test_a_task_beyond_the_services_bounds_is_named_in_its_words(assay: Run, service_url: str) -> None:
    beyond = {
        "verifier": "code",
        "completion": "",
        "reference": {"style": "stdin", "tests": [{"output": "1"}]},
        "options": {"cpu_seconds": 1e6},
    }
    done = assay("grade", "-", "-o", "-", "--url", service_url, "--api-key", KEY, stdin=lines(GOOD, beyond))
    assert (done.returncode, done.stdout) == (2, "")
    assert "refused tasks (422): tasks[1].options.cpu_seconds: " in done.stderr


def test_a_busy_service_is_asked_again(assay: Run) -> None:
    def answer(body: dict[str, Any], number: int) -> Answer:
        if number % 2 == 0:
            return (429, 503)[number // 2 % 2], {"Retry-After": "0"}, {}
        return right_answer(body)

    with service_that_answers(answer) as url:
        done = assay("grade", "-", "-o", "-", "--url", url, stdin=lines(*[GOOD] * 300))
    assert done.returncode == 0
    assert [verdict["id"] for verdict in without_timing(done.stdout)] == [str(index) for index in range(300)]


def test_verdicts_are_matched_by_id(assay: Run) -> None:
    def answer(body: dict[str, Any], _: int) -> Answer:
        verdicts = [verdict_of(task) for task in body["tasks"]]
        return 200, {}, {"verdicts": [{**verdict, "reason": verdict["id"]} for verdict in reversed(verdicts)]}

    with service_that_answers(answer) as url:
        done = assay("grade", "-", "-o", "-", "--url", url, stdin=lines(*[GOOD] * 100))
    assert [verdict["reason"] for verdict in without_timing(done.stdout)] == [str(index) for index in range(100)]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda body: (200, {}, {"verdicts": [verdict_of(body["tasks"][0])]}), "verdicts of other tasks"),
        (lambda body: (200, {}, {"verdicts": [verdict_of({"id": "x"}) for _ in body["tasks"]]}), "of other tasks"),
        (lambda _: (200, {}, {"rewards": [1.0]}), "did not answer like an Assay service"),
        (lambda _: (404, {}, {}), "answered 404: Not Found"),
        (lambda _: (500, {}, {}), "answered 500: Internal Server Error"),
    ],
)
def test_no_verdict_is_invented(
    assay: Run, tmp_path: Path, answer: Callable[[dict[str, Any]], Answer], message: str
) -> None:
    with service_that_answers(lambda body, _: answer(body)) as url:
        done = assay("grade", "-", "-o", "v.jsonl", "--url", url, stdin=lines(GOOD, GOOD))
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_service_is_said_so(assay: Run) -> None:
    with service_that_answers(lambda body, _: right_answer(body)) as url:
        pass
    done = assay("grade", "-", "-o", "-", "--url", url, stdin=lines(*[GOOD] * 500))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"assay: no connection to {url}")
    assert len(done.stderr.splitlines()) == 1
