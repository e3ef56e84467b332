"""`assay demo`, and the tasks it shows."""

import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from service.cli.demo import TASKS
from service.cli.explain import one_line
from tests.cli.conftest import Run
from tests.cli.test_grade import without_timing
from verifiers.registry import REGISTRY

EXPECTED = [json.loads(line) for line in Path(__file__).with_name("demo_expected.jsonl").read_text().splitlines()]


def test_the_demo_tells_about_every_verifier() -> None:
    tasks = [json.loads(line) for line in TASKS.read_text().splitlines()]
    assert {task["verifier"] for task in tasks} == set(REGISTRY)
    assert [task["id"] for task in tasks] == [expected["id"] for expected in EXPECTED]


def test_each_task_of_the_demo_gets_the_right_verdict(assay: Run) -> None:
    done = assay("grade", str(TASKS), "-o", "-")
    assert done.returncode == 1, "some references are broken"
    for verdict, expected in zip(without_timing(done.stdout), EXPECTED, strict=True):
        if "error" in expected:
            assert (verdict["id"], verdict["error"]["kind"]) == (expected["id"], expected["error"])
            assert (verdict["accuracy"], verdict["format"], verdict["reward"]) == (None, None, None)
        else:
            got = {name: verdict[name] for name in ("id", "accuracy", "format", "reward")}
            assert got == {
                **expected,
                **{name: pytest.approx(expected[name], abs=1e-6) for name in ("accuracy", "reward")},
            }


def test_the_demo_fits_its_width_and_ends_well(assay: Run) -> None:
    done = assay("demo", COLUMNS="200")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(cell_len, done.stdout.splitlines())) <= 100
    shown = re.findall(r"^  (\S+) ", done.stdout, re.MULTILINE)
    assert shown == [expected["id"].partition("-")[2] for expected in EXPECTED]
    broken = sum("error" in expected for expected in EXPECTED)
    assert f"{broken} × bad_reference" in done.stdout


def test_the_demo_needs_isolation(assay: Run) -> None:
    done = assay("demo", ASSAY_BWRAP="/no/such/bwrap")
    assert (done.returncode, done.stdout) == (3, "")
    assert "/no/such/bwrap" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_terminal_would_act_on_is_not_shown() -> None:
    assert one_line("a\x1b[31mred\x07\u202e\r\n b") == "a·[31mred·· b"
    assert one_line("x" * 1000) == "x" * 159 + "…"
