"""Two thousand jobs, good and hostile, leave a sandbox and its owner as they were: processes, memory, descriptors."""

import resource
from pathlib import Path

import pytest

from sandboxes.base import Case, Job, Limits, Outcome
from sandboxes.docker_engine import DockerSandbox
from sandboxes.local_sandbox import LocalSandbox
from sandboxes.zygote_sandbox import ZygoteSandbox
from tests.isolation.conftest import ROLES, Start
from tests.isolation.processes import descendants

JOBS = 2000
SOURCES = {
    "print(sum(range(10)))": None,
    "open('a', 'w').write('x' * 1000); import os; os.makedirs('b/c')": None,
    "raise SystemExit(3)": None,
    "import os; os.abort()": None,
    "import os\nfor _ in range(4):\n if os.fork() == 0:\n  os.setsid()\n  import time; time.sleep(600)": None,
    "import os\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  while True: pass\n": None,
    "print('x' * 100_000)": "output",
    "a = [bytearray(1 << 20) for _ in range(100)]": "memory",
    "import os\nwhile True: os.dup(1)": "open_files",
    "open('big', 'wb').write(b'x' * (8 << 20))": "file_size",
}
LIMITS = Limits(
    cpu_seconds=2.0, wall_seconds=8.0, memory_bytes=48 << 20, output_bytes=50_000, file_bytes=4 << 20, processes=16
)


def job(number: int) -> Job:
    """One job in ten has many cases, one a driver."""
    source = list(SOURCES)[number % len(SOURCES)]
    case = Case(argument=source)
    guest = "sandboxes.runner.probe:run_source"
    if number % 10 == 3:
        return Job(guest, cases=[case] * 3, limits=LIMITS, files={"data": b"x" * 5000})
    if number % 10 == 7:
        case = Case(argument="channel.sendall(b'hello')", driver_argument={"secret": str(number)})
        return Job("tests.isolation.roles:guest", driver="tests.isolation.roles:driver", cases=[case], limits=LIMITS)
    return Job(guest, cases=[case], limits=LIMITS)


def check(number: int, outcomes: list[Outcome]) -> None:
    if number % 10 == 7:
        assert outcomes[0].result == {"heard": "hello", "kept": str(number)}
        return
    wanted = list(SOURCES.values())[number % len(SOURCES)]
    assert [outcome.limit for outcome in outcomes] == [wanted] * len(outcomes), outcomes


def first_process(sandbox: ZygoteSandbox) -> int:
    if isinstance(sandbox, DockerSandbox):
        return int(sandbox._client.inspect_container(sandbox._container)["State"]["Pid"])
    assert isinstance(sandbox, LocalSandbox)
    return sandbox._process.pid


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def measure(sandbox: ZygoteSandbox) -> tuple[int, int, int]:
    """Return the number of processes, their memory in bytes, and the owner's number of descriptors."""
    first = first_process(sandbox)
    processes = [first, *descendants(first)]
    return len(processes), sum(map(resident_bytes, processes)), len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.timeout(600)
def test_many_jobs_leave_nothing(start: Start) -> None:
    sandbox = start(ROLES)
    for number in range(2 * len(SOURCES)):
        sandbox.run(job(number))
    processes, memory, descriptors = measure(sandbox)
    for number in range(JOBS):
        check(number, sandbox.run(job(number)))
    after = measure(sandbox)
    sandbox.close()
    assert (after[0], after[2]) == (processes, descriptors)
    assert after[1] <= memory * 1.1
