"""Hostile jobs against every backend; after each one an honest job in the same sandbox gets its right answer."""

import os
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
    name = f"assay-test-{os.getpid()}-{folder.name}"
    secret = folder / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    servers = []
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", 0)),
        (socket.AF_UNIX, str(folder / "socket")),
        (socket.AF_UNIX, f"\0{name}"),
    ):
        server = socket.socket(family)
        server.bind(address)
        server.listen()
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        servers.append(server)
    for address in (str(folder / "datagram"), f"\0{name}-datagram"):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        server.bind(address)
        servers.append(server)
    yield {
        "HOST_FILE": str(secret),
        "HOST_PORT": servers[0].getsockname()[1],
        "HOST_SOCKET": str(folder / "socket"),
        "HOST_DATAGRAM": str(folder / "datagram"),
        "HOST_ABSTRACT": name,
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
def test_attempt_is_held(attempt: Attempt, backend: str, sandbox: ZygoteSandbox, host: dict[str, object]) -> None:
    if backend in attempt.not_held_by:
        pytest.skip("not promised by this backend")
    job = Job(guest="sandboxes.runner.probe:run_source", cases=[Case(argument=attempt.source(host))], limits=LIMITS)
    (outcome,) = sandbox.run(job)
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")[-2000:]
    assert outcome.limit == attempt.limit, said
    if attempt.limit is None:
        assert outcome.ok, said
        assert outcome.stdout.startswith(b"held"), said
    check_honest(sandbox, backend, attempt.name)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda a: f"{a.file}: {a.name}")
def test_attempt_is_held_in_a_job_of_many(
    attempt: Attempt, backend: str, sandbox: ZygoteSandbox, host: dict[str, object]
) -> None:
    """Nor does it change what the job's other cases see; where there are namespaces, they have them in common."""
    if backend.startswith("process"):
        pytest.skip("here a job of many is no different")
    cases = [Case(argument=source) for source in (LOOK_AROUND, attempt.source(host), LOOK_AROUND)]
    before, outcome, after = sandbox.run(Job("sandboxes.runner.probe:run_source", cases=cases, limits=LIMITS))
    said = (outcome.stdout + outcome.stderr).decode(errors="replace")[-2000:]
    assert outcome.limit == attempt.limit, said
    if attempt.limit is None:
        assert outcome.ok, said
        assert outcome.stdout.startswith(b"held"), said
    assert after.ok, after
    assert after.stdout == before.stdout
    check_honest(sandbox, backend, attempt.name)


LOOK_AROUND = """
import os
pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
work = os.stat(".")
print(pids, os.listdir("."), oct(work.st_mode), work.st_uid, os.listxattr("."), os.getppid(), os.getcwd(), os.environ)
print(sorted(os.listdir("/proc/self/fd")), os.sched_getaffinity(0), os.getpgrp() == os.getpid(), os.umask(0))
print(*open("/proc/self/limits"), os.statvfs("/work").f_bavail, os.statvfs("/work").f_favail)
"""


def check_honest(sandbox: ZygoteSandbox, backend: str, name: str) -> None:
    (honest,) = sandbox.run(Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument=name)]))
    assert honest.returned
    assert isinstance(honest.result, dict)
    assert honest.result["argument"] == name
    if not backend.startswith("process"):
        assert (honest.result["uid"], honest.result["pid"]) == (1000, 2)
