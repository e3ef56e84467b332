"""Grading single code tasks in a real sandbox, for the code verifier's tests."""

import json
from pathlib import Path
from typing import Any

from assay.tasks import CodeTask

from sandboxes.pool import LocalSandboxes
from verifiers.base import Failure, Judgement
from verifiers.code.verifier import CodeVerifier

CASES = Path(__file__).resolve().parent.parent / "cases"


def load(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file under tests/cases."""
    return [json.loads(line) for line in (CASES / name).read_text(encoding="utf-8").splitlines()]


def grade(sandboxes: LocalSandboxes, *tasks: dict[str, Any]) -> list[Judgement | Failure]:
    """Grade tasks, given as JSON without their verifier, in one call."""
    return list(CodeVerifier().grade([CodeTask.model_validate({"verifier": "code", **t}) for t in tasks], sandboxes))


def judge(sandboxes: LocalSandboxes, task: dict[str, Any]) -> Judgement:
    """Grade one task that can be judged."""
    (judged,) = grade(sandboxes, task)
    assert isinstance(judged, Judgement), judged
    return judged


def fenced(code: str) -> str:
    """Return the code in a fenced block."""
    return f"```python\n{code}\n```"
