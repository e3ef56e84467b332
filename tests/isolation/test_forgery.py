"""A guest that writes what it likes to the pipe of its result: nothing of it may be to its good."""

import pytest

from sandboxes.base import Case, Job, Limits, Outcome, Profile
from sandboxes.zygote_sandbox import ZygoteSandbox

PROFILE = Profile("isolation", ())
HEAD = """
import json, os, time
def note(**said):
    os.write(3, json.dumps({"pid": os.getpid(), **said}).encode() + b"\\n")
"""


def run(
    sandbox: ZygoteSandbox, source: str, cases: int = 1, wants_result: bool = False, **limits: float
) -> list[Outcome]:
    bounds = Limits(**{"cpu_seconds": 2.0, "wall_seconds": 5.0, **limits})  # type: ignore[arg-type]
    return sandbox.run(
        Job(
            guest="sandboxes.runner.probe:run_source",
            cases=[Case(argument=HEAD + source)] * cases,
            limits=bounds,
            wants_result=wants_result,
        )
    )


@pytest.mark.parametrize(
    "claim",
    ["'passed'", "['x']", "5", "{'a': 1}", "'\\ud800'", "None", "'cpu_timeout'", "'sandbox_lost'", "'wall_timeout'"],
)
def test_a_limit_that_nobody_hit_is_not_believed(sandbox: ZygoteSandbox, claim: str) -> None:
    (outcome,) = run(sandbox, f"note(limit={claim})\nos._exit(7)")
    assert (outcome.limit, outcome.exit_code, outcome.returned) == (None, 7, False)


@pytest.mark.parametrize("claim", ["memory", "processes", "open_files", "file_size"])
def test_a_limit_that_one_may_claim_is_a_failure(sandbox: ZygoteSandbox, claim: str) -> None:
    (outcome,) = run(sandbox, f"note(limit={claim!r})\nos._exit(0)")
    assert (outcome.limit, outcome.ok) == (claim, False)


def test_a_result_that_nobody_wants_is_dropped(sandbox: ZygoteSandbox) -> None:
    (outcome,) = run(sandbox, "note(value='1')\nos._exit(0)")
    assert (outcome.result, outcome.returned) == (None, False)


@pytest.mark.parametrize(
    "value",
    ["'[' * 100_000", "'{\"a\":' * 50_000", "'nonsense'", "'1' * 5_000", "'NaN'", "[1]", "'\\ud800'", "''"],
    ids=["deep list", "deep object", "no json", "huge int", "nan", "no text", "surrogate", "empty"],
)
def test_a_result_that_is_no_json_is_no_end_of_the_sandbox(sandbox: ZygoteSandbox, value: str) -> None:
    (outcome,) = run(sandbox, f"note(value={value})\nos._exit(0)", wants_result=True)
    assert outcome.exit_code == 0
    (after,) = run(sandbox, "print('fine')")
    assert after.stdout == b"fine\n"


@pytest.mark.parametrize("filler", ["b'\\n'", "b'[\\n'", "b'{\\n'", "b'\\x00'", "b'\\x01' * 3 + b'\\n'"])
def test_a_flooded_pipe_costs_the_flooder(sandbox: ZygoteSandbox, filler: str) -> None:
    source = (
        f"data = {filler} * ((4 << 20) // len({filler}) - 1)\nwhile data: data = data[os.write(3, data):]\nos._exit(0)"
    )
    outcomes = run(sandbox, source, cases=5)
    assert len(outcomes) == 5
    assert max(outcome.wall_seconds for outcome in outcomes) < 2.0


def test_outputs_of_a_whole_job_are_bounded(sandbox: ZygoteSandbox) -> None:
    source = "import sys\nfor s in (1, 2):\n data = b'\\x00' * (1 << 20)\n while data: data = data[os.write(s, data):]"
    outcomes = run(sandbox, source, cases=100)
    written = sum(len(outcome.stdout) + len(outcome.stderr) for outcome in outcomes)
    assert written <= 65 << 20
    assert outcomes[0].ok
    assert outcomes[-1].limit == "output"


def test_stealing_ones_own_output_stops_no_clock(sandbox: ZygoteSandbox) -> None:
    source = (
        "import random\nr = os.open('/proc/self/fd/1', os.O_RDONLY | os.O_NONBLOCK)\n"
        "end = time.monotonic() + 3.0\n"
        "while time.monotonic() < end:\n"
        " os.write(1, b'x')\n"
        " for _ in range(random.randrange(2000)): pass\n"
        " try: os.read(r, 100)\n"
        " except BlockingIOError: pass\n"
        "time.sleep(60)"
    )
    (outcome,) = run(sandbox, source, cpu_seconds=1.0, wall_seconds=4.0)
    assert outcome.limit in ("cpu_timeout", "wall_timeout")
    assert outcome.wall_seconds < 13.0


def test_what_earlier_cases_wrote_counts_for_none_of_the_later(sandbox: ZygoteSandbox) -> None:
    outcomes = run(sandbox, "import sys\nsys.stdout.write('x' * 1_000_000)", cases=60, memory_bytes=32 << 20)
    assert {outcome.limit for outcome in outcomes} == {None}


def test_a_program_that_starts_another_is_not_counted_twice(sandbox: ZygoteSandbox) -> None:
    source = (
        "held = bytearray(150 << 20)\nfor i in range(0, len(held), 4096): held[i] = 1\n"
        "for _ in range(5):\n"
        " pid = os.fork()\n"
        " if pid == 0:\n"
        "  time.sleep(0.1)\n"
        "  os._exit(0)\n"
        " os.wait()"
    )
    (outcome,) = run(sandbox, source, memory_bytes=256 << 20)
    assert (outcome.limit, outcome.exit_code) == (None, 0)


def test_a_case_that_waits_for_a_cpu_is_given_time(sandbox: ZygoteSandbox) -> None:
    """Eight burners on the machine: wall time passes several times faster than this case's CPU time."""
    import multiprocessing

    burners = [multiprocessing.get_context("spawn").Process(target=_burn, daemon=True) for _ in range(8)]
    for burner in burners:
        burner.start()
    try:
        source = "end = time.process_time() + 0.8\nwhile time.process_time() < end: pass\nprint('done')"
        (outcome,) = run(sandbox, source, cpu_seconds=2.0, wall_seconds=1.5)
    finally:
        for burner in burners:
            burner.kill()
            burner.join()
    assert outcome.stdout == b"done\n", outcome


def _burn() -> None:
    import time

    end = time.monotonic() + 20
    while time.monotonic() < end:
        pass
