"""The parses verifier through its real sandbox."""

from collections.abc import Iterator
from typing import Any

import pytest
from assay import ParsesTask

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.structured_cases import CASES, Counting, assert_expected, facts, grade, load, task_of
from verifiers.base import Judgement
from verifiers.parses.verifier import ParsesVerifier


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


@pytest.mark.parametrize("case", load(CASES / "parses.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([task_of("parses", case)], sandboxes)
    assert_expected(case, verdict)


def test_cases_are_many() -> None:
    cases = load(CASES / "parses.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 50


def test_neighbours_change_nothing(sandboxes: LocalSandboxes) -> None:
    cases = [case for case in load(CASES / "parses.jsonl") if not case.get("costly")]
    tasks = [task_of("parses", case) for case in cases]
    counting = Counting(sandboxes)
    together = list(reversed(grade(reversed(tasks), counting)))
    assert (counting.jobs, counting.cases) == (1, 1)
    for case, task, verdict in zip(cases[::4], tasks[::4], together[::4], strict=True):
        (alone,) = grade([task], sandboxes)
        assert facts(alone) == facts(verdict), case["id"]


def test_example_is_graded_one(sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([ParsesTask.model_validate(ParsesVerifier.example)], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0
