"""What a guest can do to the driver beside it: nothing but talk over the channel, or spoil its own result."""

import secrets

import pytest

from sandboxes.base import Case, Job, Limits, Outcome
from sandboxes.zygote_sandbox import ZygoteSandbox
from tests.isolation.conftest import ROLES

PROFILE = ROLES

SCAN_OWN_MEMORY = """
import ctypes, re
spans = []
for line in open("/proc/self/maps"):
    span, rights = line.split()[:2]
    if rights.startswith("rw"):
        spans.append([int(end, 16) for end in span.split("-")])
found = [
    match
    for low, high in spans
    for match in re.findall(rb"SEC" + rb"RET-[0-9a-f]{32}", ctypes.string_at(low, high - low))
]
channel.sendall(b"found " + b" ".join(found))
"""
SCAN_OBJECTS = """
import gc
found = [o for o in gc.get_objects() if "SEC" + "RET-" in repr(o)[:100000] and o is not globals()]
channel.sendall(b"found " + repr([type(o) for o in found if "SECRET-" + "x" not in repr(o)[:10]]).encode()[:0])
frames = []
import sys
frame = sys._getframe()
while frame:
    frames.append(repr(frame.f_locals))
    frame = frame.f_back
import re
channel.sendall(" ".join(re.findall("SEC" + "RET-[0-9a-f]{32}", " ".join(frames))).encode())
"""
LOOK_INTO_PROCESSES = """
import os
seen = b""
for pid in os.listdir("/proc"):
    if pid.isdigit() and pid != os.readlink("/proc/self"):
        for name in ("mem", "environ", "maps", "exe", "stack", "syscall", "auxv", "io"):
            try:
                seen += open(f"/proc/{pid}/{name}", "rb").read(9)
            except OSError:
                pass
        for name in ("fd", "cwd", "root"):
            try:
                seen += b"".join(map(os.fsencode, os.listdir(f"/proc/{pid}/{name}")))
            except OSError:
                pass
channel.sendall(b"seen " + seen)
"""
DESCRIPTORS = """
import os, stat
extra = []
for number in range(1024):
    try:
        kind = os.fstat(number)
    except OSError:
        continue
    if number > 2 and number != channel.fileno():
        extra.append((number, stat.S_ISSOCK(kind.st_mode)))
channel.sendall(repr([n for n, is_socket in extra if is_socket]).encode())
"""


def run(sandbox: ZygoteSandbox, source: str, secret: str = "", **limits: float) -> Outcome:
    (outcome,) = sandbox.run(
        Job(
            guest="tests.isolation.roles:guest",
            driver="tests.isolation.roles:driver",
            cases=[Case(argument=source, driver_argument={"secret": secret})],
            limits=Limits(**{"cpu_seconds": 5.0, "wall_seconds": 10.0, **limits}),  # type: ignore[arg-type]
        )
    )
    return outcome


def heard(outcome: Outcome) -> str:
    assert outcome.returned, outcome
    assert isinstance(outcome.result, dict)
    return str(outcome.result["heard"])


def test_a_profile_is_prepared_once(sandbox: ZygoteSandbox) -> None:
    outcomes = [sandbox.run(Job("tests.isolation.roles:tell", cases=[Case()] * number)) for number in (1, 2)]
    assert [outcome.result for of_job in outcomes for outcome in of_job] == [["read ''"]] * 3


def test_an_honest_guest_is_heard(sandbox: ZygoteSandbox) -> None:
    outcome = run(sandbox, "channel.sendall(b'hello'); print(channel.recv(9))", "s")
    assert outcome.result == {"heard": "hello", "kept": "s"}
    assert outcome.stdout == b"b'5\\n'\n"


@pytest.mark.parametrize(
    "source", [SCAN_OWN_MEMORY, SCAN_OBJECTS, LOOK_INTO_PROCESSES], ids=["memory", "objects", "proc"]
)
def test_the_drivers_secret_is_out_of_reach(sandbox: ZygoteSandbox, source: str) -> None:
    for _ in range(3):  # also not by what an earlier job left
        secret = f"SECRET-{secrets.token_hex(16)}"
        outcome = run(sandbox, source, secret)
        said = heard(outcome)
        assert "SECRET-" not in said, said
        assert said.strip() in ("", "found", "seen"), said
        assert isinstance(outcome.result, dict)
        assert outcome.result["kept"] == secret


def test_the_memory_scan_would_find_a_secret(sandbox: ZygoteSandbox) -> None:
    own = "mine = bytes.fromhex('" + b"SECRET-".hex() + "') + b'0' * 32\n"
    assert "SECRET-" + "0" * 32 in heard(run(sandbox, own + SCAN_OWN_MEMORY))


def test_nothing_of_an_earlier_job_is_in_memory(sandbox: ZygoteSandbox) -> None:
    scan = SCAN_OWN_MEMORY.replace("channel.sendall(", "print(")
    guest = "sandboxes.runner.probe:run_source"
    for _ in range(3):
        secret = f"SECRET-{secrets.token_hex(16)}"
        hidden = f"# {secret}\nimport sys\nkept = sys.stdin.read() + open('data').read()\n"
        case = Case(argument=hidden, stdin=secret.encode())
        assert all(outcome.ok for outcome in sandbox.run(Job(guest, cases=[case] * 2, files={"data": secret.encode()})))
        own = scan.replace("import ctypes", f"mine = {secret!r}\nimport ctypes")
        found, sought = (sandbox.run(Job(guest, cases=[Case(argument=source)]))[0].stdout for source in (scan, own))
        assert found == b"b'found '\n"
        assert secret.encode() in sought, "the scan would find it"


def test_only_the_channel_is_a_socket(sandbox: ZygoteSandbox) -> None:
    assert heard(run(sandbox, DESCRIPTORS)) == "[]"


@pytest.mark.parametrize(
    "source",
    [
        (
            "import os, signal\nfor p in os.listdir('/proc'):\n if p.isdigit() and int(p) not in (1, os.getpid()):\n"
            "  try: os.kill(int(p), signal.SIGKILL)\n  except OSError: pass"
        ),
        (
            "import os, signal\nfor p in os.listdir('/proc'):\n if p.isdigit() and int(p) not in (1, os.getpid()):\n"
            "  try: os.kill(int(p), signal.SIGSTOP)\n  except OSError: pass"
        ),
        (
            "import os, signal\nfor n in range(1, 40):\n for s in (signal.SIGINT, signal.SIGALRM, signal.SIGPROF):\n"
            "  try: n != os.getpid() and os.kill(n, s)\n  except OSError: pass"
        ),
        "import os; os.kill(-1, 9)",
        "import os; os._exit(0)",
        "channel.close()",
        "import os\nif os.fork() == 0:\n import time; time.sleep(60)",
    ],
    ids=["kill", "stop", "signal by number", "kill all", "exit", "close", "an heir holds the channel"],
)
def test_a_guest_spoils_only_its_own_result(sandbox: ZygoteSandbox, source: str) -> None:
    outcome = run(sandbox, source, "kept", wall_seconds=2.0)
    if outcome.returned:
        assert outcome.result == {"heard": "", "kept": "kept"}
    else:
        assert outcome.driver_failure
    assert run(sandbox, "channel.sendall(b'x')").returned


def test_heirs_end_with_the_guest(sandbox: ZygoteSandbox) -> None:
    """What a guest leaves behind while the driver goes on is not left to burn what it likes."""
    burner = (
        "import os, time\nfor _ in range(4):\n if os.fork() == 0:\n  held = bytearray(100 << 20)\n"
        "  while True: pass\nos._exit(0)"
    )
    outcome = run(sandbox, burner, "kept", memory_bytes=64 << 20, wall_seconds=5.0)
    assert outcome.result == {"heard": "", "kept": "kept"}
    assert outcome.wall_seconds < 2.0
    assert outcome.peak_memory_bytes < 128 << 20


def test_one_driver_job_is_one_case(sandbox: ZygoteSandbox) -> None:
    with pytest.raises(ValueError, match="one case"):
        sandbox.run(Job(guest="a:b", driver="c:d", cases=[Case(), Case()]))
