"""Real server processes on free loopback ports."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

_SERVE = "from service.server import serve; from service.settings import Settings; serve(Settings())"
_ROOT = Path(__file__).resolve().parent.parent.parent

GOOD = "<think>two and two</think>\n<answer>4</answer>"
BAD = "4"


def format_tasks(count: int, completion: str = GOOD) -> list[dict[str, Any]]:
    return [{"verifier": "format", "completion": completion} for _ in range(count)]


def sleeper(seconds: float, **options: Any) -> dict[str, Any]:
    """A code task whose program sleeps, then passes."""
    return {
        "verifier": "code",
        "completion": f"```python\nimport time\ntime.sleep({seconds})\nprint('done')\n```",
        "reference": {"style": "stdin", "tests": [{"input": "", "output": "done\n"}]},
        "options": {"wall_seconds": 120, **options},
    }


class ServerProcess:
    """A server with its own settings."""

    def __init__(self, log: Path, settings: dict[str, str]) -> None:
        self._log = log
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                cwd=_ROOT,
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                env={**inherited, "ASSAY_PORT": "0", "ASSAY_WORKERS": "2", "ASSAY_WARM_VERIFIERS": "", **settings},
            )
        self.url = self._wait_for_address()
        self.client = httpx.Client(base_url=self.url, timeout=60)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait_until_ready(self) -> None:
        wait_until(lambda: self.client.get("/readyz").status_code == 200, 60)

    def workers(self) -> list[int]:
        """Process ids of the live workers."""
        return [pid for pid in children(self.process.pid) if b"service.worker" in command_line(pid)]

    def submit(self, tasks: list[dict[str, Any]], **fields: Any) -> str:
        """Start a job and return its path."""
        response = self.client.post("/v1/jobs", json={"tasks": tasks, **fields})
        assert response.status_code == 202, response.text
        return response.headers["location"]

    def status(self, job: str) -> dict[str, Any]:
        response = self.client.get(job)
        assert response.status_code == 200, response.text
        status: dict[str, Any] = response.json()
        return status

    def result(self, job: str, seconds: float = 60) -> list[dict[str, Any]]:
        """Wait for a job and return its verdicts."""
        wait_until(lambda: self.status(job)["state"] != "running", seconds)
        verdicts: list[dict[str, Any]] = self.status(job)["verdicts"]
        return verdicts

    def end(self) -> int:
        """Ask the server to stop and return its exit code."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def _wait_for_address(self) -> str:
        gives_up = time.monotonic() + 60
        while time.monotonic() < gives_up and self.process.poll() is None:
            found = re.search(r"listening on (http://\S+)", self.log)
            if found:
                return found[1]
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        raise AssertionError(f"the server did not start:\n{self.log}")


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    gives_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < gives_up, "waited in vain"
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


@contextlib.contextmanager
def frozen(server: ServerProcess) -> Iterator[None]:
    """Stop the server's workers in their tracks for the length of a block: what is submitted meanwhile has to wait."""
    workers = server.workers()
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


StartServer = Callable[..., ServerProcess]


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[StartServer]:
    """Return a function that starts a server with settings: `start_server(ASSAY_MAX_TASKS="10")`."""
    running: list[ServerProcess] = []

    def start(**settings: str) -> ServerProcess:
        server = ServerProcess(tmp_path / f"server-{len(running)}.log", settings)
        running.append(server)
        server.wait_until_ready()
        return server

    yield start
    for server in running:
        server.end()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with default settings that tests share."""
    shared = ServerProcess(tmp_path_factory.mktemp("server") / "server.log", {})
    try:
        shared.wait_until_ready()
        yield shared
    finally:
        shared.end()
