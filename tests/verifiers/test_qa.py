"""The qa verifier against its cases and field reports, and the wording of answers."""

import time
from pathlib import Path
from typing import Any

import pytest
from assay import QaTask
from hypothesis import given
from hypothesis import strategies as st

from tests.verifiers.structured_cases import CASES, NoSandboxes, assert_expected, grade, load, task_of
from verifiers.base import Judgement
from verifiers.qa import QaVerifier
from verifiers.wording import f1, normalise


@pytest.mark.parametrize("case", load(CASES / "qa.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    task = task_of("qa", case)
    started = time.process_time()
    (verdict,) = grade([task], NoSandboxes())
    assert time.process_time() - started < 2.0
    assert_expected(case, verdict)


def test_cases_are_many() -> None:
    cases = load(CASES / "qa.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 60


def test_field_reports(shared_data: Path) -> None:
    rows = [row for row in load(shared_data.parent / "cases" / "field_reports.jsonl") if row["verifier"] == "qa"]
    assert len(rows) >= 3
    for row in rows:
        task = QaTask(verifier="qa", completion=row["input"]["completion"], reference=row["input"]["gold"])
        (verdict,) = grade([task], NoSandboxes())
        assert verdict.accuracy == row["expected"]["accuracy"], (row["id"], verdict)  # type: ignore[union-attr]


def test_the_policy_of_the_last_answer_the_other_way() -> None:
    """Q004 with the tagged answers in the other order: the last one counts, right or wrong."""
    text = "<FINAL_ANSWER>15</FINAL_ANSWER> wait, <FINAL_ANSWER>12</FINAL_ANSWER>"
    (verdict,) = grade([QaTask(verifier="qa", completion=text, reference="15")], NoSandboxes())
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 0.0


def test_example_is_graded_one() -> None:
    (verdict,) = grade([QaTask.model_validate(QaVerifier.example)], NoSandboxes())
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


words = st.lists(
    st.sampled_from(["the", "a", "Paris", "3.5", "-5", "C++", "«", "x", ".", "巴", "\u00a0", "É"]), max_size=6
)


@given(words)
def test_case_quotes_and_space_never_count(parts: list[str]) -> None:
    text = " ".join(parts)
    assert normalise(f' "{text.upper()}" !\n') == normalise(text)


@given(words, words)
def test_f1_is_symmetric_and_bounded(one: list[str], other: list[str]) -> None:
    first, second = normalise(" ".join(one)), normalise(" ".join(other))
    assert f1(first, second) == f1(second, first)
    assert 0.0 <= f1(first, second) <= 1.0
    assert f1(first, first) == 1.0
