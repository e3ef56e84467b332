"""What the tests of the structured answers share: cases as data, and grading them in real sandboxes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.tasks import Task
from pydantic import TypeAdapter

from sandboxes.base import Job, Outcome, Profile, Sandboxes
from verifiers.base import Failure, Judgement
from verifiers.registry import REGISTRY

CASES = Path(__file__).resolve().parent.parent / "cases"
TASK: TypeAdapter[Any] = TypeAdapter(Task)


def load(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expand(node: Any) -> Any:
    """Return the node with every `{"repeat": [a, n, b]}` in it replaced by a·n + b, and `{"join": […]}` joined."""
    if isinstance(node, list):
        return [expand(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    if node.keys() == {"repeat"}:
        piece, count, tail = node["repeat"]
        return str(piece) * int(count) + str(tail)
    if node.keys() == {"join"}:
        return "".join(map(expand, node["join"]))
    return {name: expand(inner) for name, inner in node.items()}


def task_of(verifier: str, case: dict[str, Any]) -> Task:
    """Return the task of a case, whose fields stand in `task`."""
    task: Task = TASK.validate_python({"verifier": verifier, **expand(case["task"])})
    return task


def grade(tasks: Iterable[Task], sandboxes: Sandboxes) -> list[Judgement | Failure]:
    """Return what the verifier of the tasks, which is one and the same, says of each."""
    listed = list(tasks)
    return list(REGISTRY[listed[0].verifier].grade(listed, sandboxes))


def facts(verdict: Judgement | Failure) -> tuple[object, ...]:
    """Everything of a verdict that must not differ between runs."""
    if isinstance(verdict, Failure):
        return verdict.kind, verdict.message
    extracted = (verdict.extracted.text, verdict.extracted.source) if verdict.extracted else None
    return verdict.reason, verdict.accuracy, verdict.format, extracted, json.dumps(verdict.details), verdict.integrity


def assert_expected(case: dict[str, Any], verdict: Judgement | Failure) -> None:
    """Hold a verdict against `expected`: `error` and `says`, or `accuracy`, `reason`, `details`, `extracted`."""
    expected = dict(case["expected"])
    if isinstance(verdict, Failure):
        assert verdict.kind == expected.get("error"), (case["why"], verdict)
        assert expected.get("says", "reference") in verdict.message
        return
    assert "error" not in expected, (case["why"], verdict)
    assert verdict.accuracy is not None
    assert abs(verdict.accuracy - expected["accuracy"]) < 1e-9, (case["why"], verdict)
    if "reason" in expected:
        assert verdict.reason == expected["reason"], (case["why"], verdict)
    for name, value in expected.get("details", {}).items():
        assert verdict.details[name] == value, (case["why"], verdict)
    if "extracted" in expected:
        assert verdict.extracted is not None
        assert verdict.extracted.text == expected["extracted"], case["why"]


class Counting:
    """The real sandboxes, and how many jobs and cases they ran."""

    def __init__(self, inner: Sandboxes) -> None:
        """Take the real ones."""
        self.inner = inner
        self.jobs = 0
        self.cases = 0

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        """Run the job, and count it."""
        self.jobs += 1
        self.cases += len(job.cases)
        return self.inner.run(profile, job)


class NoSandboxes:
    """Any use is a failure: reading a short answer needs no sandbox."""

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        """Fail."""
        raise AssertionError(f"{job.guest} ran in {profile.name}")
