"""The format verifier against its cases, its field reports, and hostile sizes."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from assay.tasks import FormatSpec, FormatTask
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.base import Job, Outcome, Profile
from verifiers.base import Judgement
from verifiers.format_tags import END_OF_TURN, FormatVerifier, score_format

CASES = Path(__file__).resolve().parent.parent / "cases"


class NoSandboxes:
    """Any use is a failure: the form of a text needs no sandbox."""

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        pytest.fail(f"format ran {job.guest} in {profile.name}")


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expand(completion: str | dict[str, Any]) -> str:
    """`{"repeat": [a, n, b]}` stands for a·n + b."""
    if isinstance(completion, str):
        return completion
    piece, count, tail = completion["repeat"]
    return str(piece) * int(count) + str(tail)


def grade(tasks: Sequence[FormatTask]) -> list[Judgement]:
    judgements = list(FormatVerifier().grade(tasks, NoSandboxes()))
    assert all(isinstance(judgement, Judgement) for judgement in judgements)
    return [judgement for judgement in judgements if isinstance(judgement, Judgement)]


@pytest.mark.parametrize("case", load(CASES / "format.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any]) -> None:
    task = FormatTask(
        verifier="format", completion=expand(case["completion"]), options=FormatSpec(**case.get("options", {}))
    )
    started = time.process_time()
    (judgement,) = grade([task])
    assert time.process_time() - started < 2.0
    assert {"format": judgement.format, "reason": judgement.reason} == case["expected"], case["why"]
    assert judgement.accuracy is None


def test_case_ids_are_unique() -> None:
    ids = [case["id"] for case in load(CASES / "format.jsonl")]
    assert len(ids) == len(set(ids)) >= 50


def test_field_reports(shared_data: Path) -> None:
    rows = load(shared_data.parent / "cases" / "field_reports.jsonl")
    rows = [row for row in rows if row["verifier"] == "format"]
    assert len(rows) >= 12
    for row in rows:
        spec = FormatSpec(**row["input"].get("options", {}))
        (judgement,) = grade([FormatTask(verifier="format", completion=row["input"]["completion"], options=spec)])
        assert judgement.format == row["expected"]["accuracy"], (row["id"], judgement.reason)


pieces = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<answer>", "</answer>", "<", ">", "a", " ", "\n", "<think ", "</s>", "\u200b", "/"]
    ),
    max_size=12,
).map("".join)


@given(pieces, st.booleans(), st.booleans())
def test_well_formed_text_has_one_reading(completion: str, prefilled: bool, strict: bool) -> None:
    """A score of 1 means: cutting at the only tags gives non-empty parts, whichever end a reader starts from."""
    score, reason = score_format(FormatSpec(think_prefilled=prefilled, strict=strict), completion)
    assert (score == 1.0) == (reason == "well_formed")
    if score == 1.0:
        assert completion.count("<think>") == (0 if prefilled else 1)
        assert completion.count("</think>") == completion.count("<answer>") == completion.count("</answer>") == 1
        assert completion.index("</think>") < completion.index("<answer>") < completion.index("</answer>")


@given(pieces, st.sampled_from(END_OF_TURN))
def test_end_of_turn_changes_nothing(completion: str, token: str) -> None:
    assert score_format(FormatSpec(), completion) == score_format(FormatSpec(), completion + token)


def test_example_is_graded_one() -> None:
    (judgement,) = grade([FormatTask.model_validate(FormatVerifier.example)])
    assert judgement.format == 1.0
