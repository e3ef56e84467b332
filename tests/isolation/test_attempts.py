"""Hostile jobs against every backend; after each one an honest job in the same sandbox gets its right answer."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxes.base import Case, Job, Limits, Profile
from sandboxes.zygote_sandbox import ZygoteSandbox
from tests.isolation.attempt_cells import Attempt, read_attempts

ATTEMPTS = read_attempts()
PROFILE = Profile("isolation", ())
LIMITS = Limits(cpu_seconds=1.0, wall_seconds=4.0, memory_bytes=256 << 20, processes=24, open_files=64)
ALLOWED_ROOT = ["assay", "dev", "lib", "lib64", "proc", "tmp", "usr", "work", "root", "opt", "home"]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Real things of the host to reach for: a file, a loopback service, a unix and an abstract socket."""
    folder = tmp_path_factory.mktemp("host")
    secret = folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    servers = []
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, str(folder / "socket")),
        (socket.AF_UNIX, f"\0assay-test-{id(folder)}"),
    ):
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        servers.append(server)
    yield {
        "HOST_FILE": str(secret),
        "HOST_PORT": servers[0].getsockname()[1],
        "HOST_SOCKET": str(folder / "socket"),
        "HOST_ABSTRACT": f"assay-test-{id(folder)}",
        "PROJECT": str(Path(__file__).resolve().parents[2]),
        "ALLOWED_ROOT": ALLOWED_ROOT,
    }
    for server in servers:
        server.close()


def _greet(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        connection.sendall(b"hello")
        connection.close()


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 60
    assert len({(a.file, a.name) for a in ATTEMPTS}) == len(ATTEMPTS)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.file}: {a.name}")
def test_attempt_is_held(attempt: Attempt, sandbox: ZygoteSandbox, host: dict[str, object]) -> None:
    job = Job(guest="sandboxes.runner.probe:run_source", cases=[Case(argument=attempt.source(host))], limits=LIMITS)
    (outcome,) = sandbox.run(job)
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")[-2000:]
    assert outcome.limit == attempt.limit, said
    if attempt.limit is None:
        assert outcome.ok, said
        assert outcome.stdout.startswith(b"held"), said
    (honest,) = sandbox.run(Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument=attempt.name)]))
    assert honest.returned
    assert honest.result == {"argument": attempt.name, "uid": 1000, "pid": 2}
