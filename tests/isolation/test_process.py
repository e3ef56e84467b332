"""What only the process backend has: where it starts, and what it does itself that namespaces would have done."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandboxes.base import Case, Job, Limits, Outcome, Profile, SandboxUnavailable
from sandboxes.pool import LocalSandboxes, SandboxConfig
from sandboxes.process import Kernel, ProcessConfig, ProcessSandbox, is_isolation, reason_to_refuse
from sandboxes.runner.landlock import FIRST_WITH_SIGNALS
from tests.isolation.conftest import OLD_LANDLOCK
from tests.isolation.processes import descendants, wait_until_gone

PROFILE = Profile("process", ())
HONEST = Job(guest="sandboxes.runner.probe:answer", cases=[Case(argument="hello")])
LAMBDA = {"AWS_LAMBDA_FUNCTION_NAME": "grade", "LAMBDA_TASK_ROOT": "/var/task"}
FARGATE = {"AWS_EXECUTION_ENV": "AWS_ECS_FARGATE", "ECS_CONTAINER_METADATA_URI_V4": "http://169.254.170.2/v4/x"}
GOOD_KERNEL = Kernel(seccomp=True, landlock=7, uid=1000, root=False)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter, in which sandboxes make theirs."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(params=[None, OLD_LANDLOCK], ids=["new", "old"])
def sandbox(request: pytest.FixtureRequest, folder: Path) -> Iterator[ProcessSandbox]:
    sandbox = ProcessSandbox(PROFILE, ProcessConfig(anywhere=True, folder=str(folder), landlock=request.param))
    yield sandbox
    sandbox.close()
    assert list(folder.iterdir()) == []


def run(sandbox: ProcessSandbox, source: str, **limits: float) -> Outcome:
    (outcome,) = sandbox.run(
        Job(
            guest="sandboxes.runner.probe:run_source",
            cases=[Case(argument=source)],
            limits=Limits(**limits),  # type: ignore[arg-type]
        )
    )
    return outcome


def test_an_unknown_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*LAMBDA, *FARGATE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SandboxUnavailable, match="ASSAY_PROCESS_SANDBOX_ANYWHERE"):
        ProcessSandbox(PROFILE, ProcessConfig())
    with LocalSandboxes(SandboxConfig(backend="process")) as sandboxes, pytest.raises(SandboxUnavailable):
        sandboxes.run(PROFILE, HONEST)


@pytest.mark.parametrize("variables", [LAMBDA, FARGATE], ids=["lambda", "fargate"])
def test_a_known_place_is_recognised(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with LocalSandboxes(SandboxConfig(backend="process", spares=0)) as sandboxes:
        assert sandboxes.run(PROFILE, HONEST)[0].returned


@pytest.mark.parametrize(
    "variables",
    [
        {},
        *({name: value} for known in (LAMBDA, FARGATE) for name, value in known.items()),
        {**FARGATE, "AWS_EXECUTION_ENV": "AWS_ECS_EC2"},
    ],
)
def test_half_a_place_is_none(variables: dict[str, str]) -> None:
    assert not is_isolation(variables)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (GOOD_KERNEL, None),
        (Kernel(seccomp=True, landlock=3, uid=1000, root=False), None),
        (Kernel(seccomp=True, landlock=0, uid=0, root=True), None),
        (Kernel(seccomp=False, landlock=7, uid=0, root=True), "seccomp"),
        (Kernel(seccomp=True, landlock=2, uid=1000, root=False), "Landlock"),
        (Kernel(seccomp=True, landlock=0, uid=1000, root=False), "Landlock"),
        (Kernel(seccomp=True, landlock=7, uid=0, root=False), "CAP_SETUID"),
    ],
)
def test_a_kernel_with_too_little_is_refused(kernel: Kernel, said: str | None) -> None:
    reason = reason_to_refuse(ProcessConfig(), LAMBDA, kernel)
    assert (reason is None) if said is None else (reason is not None and said in reason)


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs no Landlock")
def test_without_landlock_and_root_it_does_not_start() -> None:
    with pytest.raises(SandboxUnavailable, match="Landlock"):
        ProcessSandbox(PROFILE, ProcessConfig(anywhere=True, landlock=0))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_folder_that_only_root_may_enter_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(SandboxUnavailable, match="Only root may enter"):
        ProcessSandbox(PROFILE, ProcessConfig(anywhere=True, folder=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_in_memory_or_where_temporary_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandboxes.process._ROOM_BYTES", 1 << 60)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    sandbox = ProcessSandbox(PROFILE, ProcessConfig(anywhere=True))
    assert len(list(folder.iterdir())) == 1
    sandbox.close()


MANY_PROCESSES = """
import os, time
for _ in range(10):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        time.sleep(600)
"""
BOMB = """
import os, signal
for s in range(1, 64):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
REAPERS_FOE = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
"""


@pytest.mark.parametrize("source", [MANY_PROCESSES, BOMB, REAPERS_FOE], ids=["many", "bomb", "reaper's foe"])
def test_a_job_leaves_no_process(sandbox: ProcessSandbox, source: str) -> None:
    sandbox.run(HONEST)
    zygote = sandbox._process.pid
    for _ in range(3):
        run(sandbox, source, processes=32, wall_seconds=3.0, cpu_seconds=1.0)
        assert len(descendants(zygote)) <= 1, "more than the next job's warden"
        assert sandbox.run(HONEST)[0].returned


DEEP = """
import os
for _ in range(2000):
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
"""
CLOSED = """
import os
os.mkdir("closed", 0o300)
open("closed/file", "w").write("x")
os.mkdir("shut", 0)
"""
UNREADABLE_NAMES = """
import os
os.mkdir(b"\\xff\\n")
open(b"\\xff\\n/\\xfe", "w").close()
os.symlink("/", "root")
os.mkfifo("pipe")
os.link("pipe", "pipe2")
"""


@pytest.mark.parametrize("source", [DEEP, CLOSED, UNREADABLE_NAMES], ids=["deep", "closed", "names"])
def test_the_work_folder_goes_whatever_is_in_it(sandbox: ProcessSandbox, folder: Path, source: str) -> None:
    outcome = run(sandbox, source)
    assert outcome.exit_code == 0 or outcome.limit == "file_size", outcome
    assert not list(folder.glob("*/work"))
    assert run(sandbox, "import os; print(os.listdir('.'))").stdout == b"[]\n"


def test_many_small_files_are_measured_together(sandbox: ProcessSandbox) -> None:
    source = "for i in range(100): open(f'f{i}', 'wb').write(b'x' * 10_000)"
    assert run(sandbox, source, file_bytes=2_000_000).ok
    assert run(sandbox, source, file_bytes=500_000).limit == "file_size"
    links = "import os\nopen('f', 'wb').write(b'x' * 400_000)\nfor i in range(10): os.link('f', f'g{i}')"
    assert run(sandbox, links, file_bytes=500_000).ok


def test_honest_use_of_files_and_processes(sandbox: ProcessSandbox) -> None:
    source = """
import os, shutil, signal, socket, subprocess, sys, tempfile, multiprocessing
os.makedirs("a/b")
open("a/b/c", "w").write("text")
shutil.copytree("a", "d")
shutil.copy2("d/b/c", "e")
os.rename("d/b", "f")
shutil.rmtree("a")
with tempfile.TemporaryDirectory() as name:
    open(name + "/x", "w").close()
left, right = socket.socketpair()
left.sendall(b"x")
assert right.recv(1) == b"x"
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.nice(1)
print(sorted(os.listdir(".")), open("e").read(), os.path.realpath(".") == os.environ["HOME"])
print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout)
receiving, sending = multiprocessing.Pipe(duplex=False)
child = multiprocessing.Process(target=sending.send, args=([1, 2],))
child.start()
print(receiving.recv(), flush=True)
child.join()
os.kill(os.getpid(), signal.SIGUSR1)
"""
    outcome = run(sandbox, source)
    assert outcome.stdout.splitlines() == [b"['d', 'e', 'f'] text True", b"b'1\\n'", b"[1, 2]"], outcome
    assert outcome.signal == signal.SIGUSR1, outcome


def test_only_the_filter_keeps_a_job_from_signalling_its_children(sandbox: ProcessSandbox) -> None:
    source = "import os, signal, time\npid = os.fork()\nif pid == 0: time.sleep(9)\nos.kill(pid, signal.SIGKILL)"
    outcome = run(sandbox, source, wall_seconds=5.0)
    only_filter = os.geteuid() != 0 and sandbox.landlock < FIRST_WITH_SIGNALS
    assert outcome.ok is not only_filter, outcome
    assert (b"PermissionError" in outcome.stderr) is only_filter


def test_nothing_done_to_the_owners_files(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    """Also where job and owner have one uid, and Landlock does not cover modes, times and attributes."""
    mine = tmp_path / "mine"
    mine.write_text("x")
    mine.chmod(0o640)
    before = mine.stat()
    source = f"""
import os
for change in (
    lambda: os.chmod({str(mine)!r}, 0o777),
    lambda: os.utime({str(mine)!r}, (1, 1)),
    lambda: os.chown({str(mine)!r}, -1, -1),
    lambda: os.setxattr({str(mine)!r}, "user.x", b"x"),
    lambda: os.truncate({str(mine)!r}, 0),
    lambda: os.unlink({str(mine)!r}),
    lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
    lambda: os.setpriority(os.PRIO_PGRP, {os.getpgid(0)}, 19),
    lambda: os.sched_setaffinity({os.getpid()}, [0]),
    lambda: os.kill({os.getpid()}, 0) or print("signal"),
):
    try:
        change()
    except OSError:
        pass
"""
    affinity = os.sched_getaffinity(0)
    outcome = run(sandbox, source)
    assert outcome.ok
    assert outcome.stdout == b""
    after = mine.stat()
    assert (after.st_mode, after.st_mtime, after.st_ctime, after.st_size) == (
        before.st_mode,
        before.st_mtime,
        before.st_ctime,
        before.st_size,
    )
    assert os.getpriority(os.PRIO_PROCESS, sandbox._process.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    assert os.sched_getaffinity(0) == affinity


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a job"])
def test_the_zygotes_end_is_the_end_of_all(folder: Path, busy: bool) -> None:
    """By a signal that it can hear; the folder goes, too, when it cannot, but only with `close`."""
    sandbox = ProcessSandbox(PROFILE, ProcessConfig(anywhere=True, folder=str(folder)))
    sandbox.run(HONEST)
    below = descendants(sandbox._process.pid)
    os.kill(sandbox._process.pid, signal.SIGKILL if not busy else signal.SIGTERM)
    assert not wait_until_gone(below, 5.0)
    sandbox.close()
    assert list(folder.iterdir()) == []
