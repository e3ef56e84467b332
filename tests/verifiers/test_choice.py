"""The choice verifier against its cases."""

import time
from typing import Any

import pytest
from assay import ChoiceTask

from tests.verifiers.structured_cases import CASES, NoSandboxes, assert_expected, grade, load, task_of
from verifiers.base import Judgement
from verifiers.choice import ChoiceVerifier


@pytest.mark.parametrize("case", load(CASES / "choice.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    task = task_of("choice", case)
    started = time.process_time()
    (verdict,) = grade([task], NoSandboxes())
    assert time.process_time() - started < 2.0
    assert_expected(case, verdict)


def test_cases_are_many() -> None:
    cases = load(CASES / "choice.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 60


def test_example_is_graded_one() -> None:
    (verdict,) = grade([ChoiceTask.model_validate(ChoiceVerifier.example)], NoSandboxes())
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


def test_no_answer_is_right_for_two_references() -> None:
    """Whatever a completion says, it is right for at most one of the choices."""
    choices = ["Rome", "Paris", "Oslo"]
    for case in load(CASES / "choice.jsonl"):
        if not isinstance(case["task"]["completion"], str):
            continue
        tasks = [
            ChoiceTask(verifier="choice", completion=case["task"]["completion"], choices=choices, reference=label)
            for label in "ABC"
        ]
        verdicts = grade(tasks, NoSandboxes())
        assert sum(v.accuracy == 1 for v in verdicts if isinstance(v, Judgement)) <= 1
