"""The code verifier in a real sandbox: its cases, real data, field reports."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.code_runs import CASES, fenced, grade, judge, load
from verifiers.base import Failure, Judgement
from verifiers.code.verifier import CodeVerifier

LINES = load("code.jsonl")
SQUARE = {"style": "assert", "code": "assert solve(3) == 9\nassert solve(-4) == 16"}
DOUBLE = {"style": "stdin", "tests": [{"input": "21\n", "output": "42\n"}]}


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    with LocalSandboxes(SandboxConfig()) as opened:
        yield opened


@pytest.mark.parametrize("case", LINES, ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    (judged,) = grade(sandboxes, case["task"])
    expected = case["expected"]
    if "error" in expected:
        assert isinstance(judged, Failure), case["why"]
        assert judged.kind == expected["error"]
        assert expected["says"] in judged.message
    else:
        assert isinstance(judged, Judgement), case["why"]
        assert {name: getattr(judged, name) for name in expected} == expected, case["why"]


def test_cases_are_many_and_named_once() -> None:
    ids = [case["id"] for case in LINES]
    assert len(ids) == len(set(ids)) >= 80


def test_the_example_is_right(sandboxes: LocalSandboxes) -> None:
    assert judge(sandboxes, CodeVerifier.example).accuracy == 1


def test_judgements_are_the_same_in_another_sandbox_and_another_order(sandboxes: LocalSandboxes) -> None:
    tasks = [case["task"] for case in LINES if not case["task"].get("options", {}).keys() & {"cpu_seconds"}][::2]
    first = [_without_use(judged) for judged in grade(sandboxes, *tasks)]
    with LocalSandboxes(SandboxConfig(recycle_after_jobs=5)) as others:
        second = [_without_use(judged) for judged in grade(others, *reversed(tasks))]
    assert first == second[::-1]


def test_the_order_of_a_set_is_the_same_in_every_sandbox() -> None:
    task = {"completion": fenced("print(set('abcdefghij'))"), "reference": DOUBLE}
    shown = set()
    for _ in range(3):
        with LocalSandboxes(SandboxConfig()) as fresh:
            shown.add(json.dumps(judge(fresh, task).details))
    assert len(shown) == 1, "the interpreter's hash seed is not fixed"


def _without_use(judged: Judgement | Failure) -> str:
    """Return the judgement as text, without the time and memory it took."""
    if isinstance(judged, Failure):
        return repr(judged)
    return json.dumps([judged.reason, judged.accuracy, repr(judged.extracted), judged.details, judged.integrity])


def test_details_of_a_failed_test_are_small_and_stable(sandboxes: LocalSandboxes) -> None:
    program = fenced("print(object())\nprint('x' * 100_000)")
    tests = [{"input": "i" * 100_000, "output": "o" * 100_000}]
    judged = judge(sandboxes, {"completion": program, "reference": {"style": "stdin", "tests": tests}})
    text = json.dumps(judged.details)
    assert len(text) < 3000
    assert "<object object at 0x…>" in json.loads(text)["tests"][0]["got"]


def test_hidden_tests_are_not_shown(sandboxes: LocalSandboxes) -> None:
    hidden = {"echo_tests": False}
    program = fenced("x = input()\nraise ValueError(x)")
    stdin = {"style": "stdin", "tests": [{"input": "secret-input", "output": "secret-output"}]}
    printed = judge(sandboxes, {"completion": program, "reference": stdin, "options": hidden})
    code = "assert solve('secret-input') == 'secret-output', 'secret-message'"
    asserted = judge(
        sandboxes,
        {
            "completion": fenced("def solve(x):\n    raise ValueError(x)"),
            "reference": {"style": "assert", "code": code},
            "options": hidden,
        },
    )
    for judged in (printed, asserted):
        assert judged.accuracy == 0
        assert "secret" not in json.dumps(judged.details)


def test_a_failed_assertion_is_shown(sandboxes: LocalSandboxes) -> None:
    judged = judge(sandboxes, {"completion": fenced("def solve(x):\n    return x + 6"), "reference": SQUARE})
    shown = {name: judged.details[name] for name in ("line", "source", "left", "right")}
    assert shown == {"line": 2, "source": "assert solve(-4) == 16", "left": "2", "right": "16"}


def test_every_test_has_a_status(sandboxes: LocalSandboxes) -> None:
    program = fenced("x = input()\nif x == '1': raise SystemExit(1)\nprint(x)")
    tests = [{"input": str(n), "output": str(n)} for n in range(4)]
    for scoring, expected in (
        ("fraction", ["passed", "crashed", "passed", "passed"]),
        ("all", ["passed", "crashed", "skipped", "skipped"]),
    ):
        task = {"completion": program, "reference": {"style": "stdin", "tests": tests}, "options": {"scoring": scoring}}
        entries = judge(sandboxes, task).details["tests"]
        assert isinstance(entries, list)
        assert [entry["status"] for entry in entries if isinstance(entry, dict)] == expected


def test_many_tests_run_in_chunks(sandboxes: LocalSandboxes) -> None:
    tests = [{"input": str(n), "output": str(n % 7 if n == 150 else n)} for n in range(200)]
    task = {"completion": fenced("print(input())"), "reference": {"style": "stdin", "tests": tests}}
    assert judge(sandboxes, {**task, "options": {"scoring": "fraction"}}).accuracy == 199 / 200
    assert judge(sandboxes, task).details["passed"] == 191  # the chunk of the failure is run to its end


def test_time_limits_end_the_run_of_a_fraction(sandboxes: LocalSandboxes) -> None:
    tests = [{"input": str(n), "output": str(n)} for n in range(80)]
    task = {
        "completion": fenced("while True: pass"),
        "reference": {"style": "stdin", "tests": tests},
        "options": {"scoring": "fraction", "cpu_seconds": 0.01},
    }
    entries = judge(sandboxes, task).details["tests"]
    assert isinstance(entries, list)
    statuses = [entry["status"] for entry in entries if isinstance(entry, dict)]
    assert statuses == ["cpu_timeout"] * 64 + ["skipped"] * 16


def test_a_large_input(sandboxes: LocalSandboxes) -> None:
    tests = [{"input": "7" * (10 << 20), "output": str(10 << 20)}]
    task = {"completion": fenced("print(len(input()))"), "reference": {"style": "stdin", "tests": tests}}
    assert judge(sandboxes, task).accuracy == 1


def test_neighbours_of_a_hostile_completion_are_unharmed(sandboxes: LocalSandboxes) -> None:
    honest = {"completion": fenced("print(int(input()) * 2)"), "reference": DOUBLE}
    hostile = [
        "import os\nwhile True: os.fork()",
        "import os, signal\nos.kill(-1, signal.SIGKILL)",
        "a = []\nwhile True: a.append(bytearray(10**7))",
        "open('sitecustomize.py', 'w').write('raise SystemExit')\nimport json\njson.loads = None",
    ]
    tasks = [task for code in hostile for task in ({"completion": fenced(code), "reference": DOUBLE}, honest)]
    accuracies = [judged.accuracy for judged in grade(sandboxes, *tasks) if isinstance(judged, Judgement)]
    assert accuracies == [0, 1] * len(hostile)


@pytest.fixture(scope="module")
def humaneval(shared_data: Path) -> list[dict[str, Any]]:
    with gzip.open(shared_data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _humaneval_task(problem: dict[str, Any], completion: str) -> dict[str, Any]:
    reference = {"code": problem["test"], "entry_point": problem["entry_point"], "prompt": problem["prompt"]}
    return {"completion": completion, "reference": {"style": "assert", **reference}}


def test_humaneval_solutions_are_right(humaneval: list[dict[str, Any]], sandboxes: LocalSandboxes) -> None:
    as_continuation = [_humaneval_task(p, p["canonical_solution"]) for p in humaneval]
    as_program = [_humaneval_task(p, fenced(p["prompt"] + p["canonical_solution"])) for p in humaneval]
    for tasks in (as_continuation, as_program):
        judged = grade(sandboxes, *tasks)
        assert len(judged) == 164
        assert [j for j in judged if not isinstance(j, Judgement) or j.accuracy != 1] == []
        assert {j.integrity for j in judged if isinstance(j, Judgement)} == {"isolated"}


def test_humaneval_without_bodies_is_wrong(humaneval: list[dict[str, Any]], sandboxes: LocalSandboxes) -> None:
    judged = grade(sandboxes, *(_humaneval_task(p, "    pass\n") for p in humaneval))
    assert len(judged) == 164
    assert [j for j in judged if not isinstance(j, Judgement) or j.accuracy != 0] == []


def test_humaneval_generations_of_a_model(shared_data: Path, humaneval: list[dict[str, Any]]) -> None:
    with gzip.open(shared_data / "humaneval-x" / "python_generations.jsonl.gz", "rt", encoding="utf-8") as lines:
        generations = {json.loads(line)["task_id"].split("/")[1]: json.loads(line) for line in lines}
    tasks = [_humaneval_task(p, generations[p["task_id"].split("/")[1]]["generation"]) for p in humaneval]
    runs = []
    for _ in range(3):
        with LocalSandboxes(SandboxConfig()) as fresh:
            runs.append([_without_use(judged) for judged in grade(fresh, *tasks)])
    assert runs[0] == runs[1] == runs[2]


REPORTED_REASONS = {
    "timeout": {"cpu_timeout", "wall_timeout"},
    "memory_limit": {"memory"},
    "process_limit": {"processes"},
    "output_limit": {"output"},
}
OPEN = json.loads((CASES / "field_reports_open_code.json").read_text(encoding="utf-8"))


def reported(shared_data: Path) -> list[dict[str, Any]]:
    lines = (shared_data.parent / "cases" / "field_reports.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [json.loads(line) for line in lines]
    return [r for r in reports if r["verifier"] in ("code", "reward_hack") and not r["policy_choice"]]


def as_task(report: dict[str, Any]) -> dict[str, Any]:
    given = report["input"]
    # Filling half a gigabyte takes a slow machine more than a second of CPU.
    usual = 5.0 if report["expected"].get("status") == "memory_limit" else 1.0
    options = {"cpu_seconds": float(given.get("time_limit_s", usual)), "wall_seconds": 10.0}
    reference: dict[str, Any]
    if given["mode"] == "stdin":
        tests = [{"input": test["stdin"], "output": test["stdout"]} for test in given["tests"]]
        reference = {"style": "stdin", "tests": tests}
    elif given["mode"] == "function":
        reference = {"style": "function", "entry_point": "solve", "tests": given["tests"]}
    elif given["mode"] == "pytest":
        functions = [f"def test_{n}():\n    {code}\n" for n, code in enumerate(given["tests"])]
        reference = {"style": "pytest", "code": "from solution import solve\n" + "".join(functions)}
    else:
        reference = {"style": "assert", "code": "\n".join(given["tests"])}
    return {"completion": given["completion"], "reference": reference, "options": options}


def test_field_reports(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    reports = reported(shared_data)
    assert {r["id"] for r in reports} >= set(OPEN)
    done = [report for report in reports if report["id"] not in OPEN]
    assert len(done) > 40
    for report in done:
        expected = report["expected"]
        judged, neighbour = grade(
            sandboxes, as_task(report), {"completion": fenced("print(int(input()) * 2)"), "reference": DOUBLE}
        )
        assert isinstance(judged, Judgement), report["id"]
        assert judged.accuracy == expected["accuracy"], (report["id"], judged)
        if "status" in expected:
            assert judged.reason in REPORTED_REASONS[expected["status"]], (report["id"], judged)
        assert isinstance(neighbour, Judgement), report["id"]
        assert neighbour.accuracy == 1, report["id"]
