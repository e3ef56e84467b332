"""What the verifiers of structured answers share: whose fault it is when a check does not end."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from assay import JsonSchemaTask

from sandboxes.base import Job, Limit, Outcome, Profile
from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.structured_cases import TASK as TASK_TYPE
from tests.verifiers.structured_cases import grade
from verifiers.base import Failure, Judgement
from verifiers.structured.json_text import NoJson, Strictness, balanced_spans, decode, equal, find
from verifiers.structured.together import LIMITS

TASK = JsonSchemaTask(verifier="json_schema", completion="1", reference={"type": "integer"})


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


class Scripted:
    """Answers every case that is no probe with one outcome, and probes with another; alone or together."""

    def __init__(self, outcome: Outcome, probe: Outcome) -> None:
        self.outcome = outcome
        self.probe = probe

    def run(self, profile: Profile, job: Job) -> list[Outcome]:  # noqa: ARG002
        return [self.probe if "probe" in json.dumps(case.argument) else self.outcome for case in job.cases]


def ended(
    limit: Limit | None = None, number: int | None = None, stderr: str = "", result: str | None = None
) -> Outcome:
    return Outcome(
        exit_code=None if number or limit else 1,
        signal=number,
        limit=limit,
        stdout=b"",
        stderr=stderr.encode(),
        result=None if result is None else [{"score": 0.0, "reason": result}],
        returned=result is not None,
    )


FINE = ended(result="probed")


@pytest.mark.parametrize(
    ("outcome", "probe", "expected"),
    [
        (ended("cpu_timeout"), FINE, "cpu_timeout"),
        (ended("memory"), FINE, "memory"),
        (ended(number=signal.SIGSEGV), FINE, "signal_11"),
        (ended(stderr="Traceback\nRecursionError: too deep\n"), FINE, "recursion"),
        (ended(stderr="Traceback\nKeyError: 'a'\n"), FINE, "error: internal"),
        (ended("wall_timeout"), FINE, "error: sandbox_lost"),
        (ended(number=signal.SIGKILL), FINE, "error: sandbox_lost"),
        (ended("cpu_timeout"), ended("cpu_timeout"), "error: bad_reference"),
        (ended("cpu_timeout"), ended("wall_timeout"), "error: sandbox_lost"),
        (ended("cpu_timeout"), ended(stderr="ValueError: x"), "error: internal"),
    ],
)
def test_whose_fault_a_check_without_a_result_is(outcome: Outcome, probe: Outcome, expected: str) -> None:
    (verdict,) = grade([TASK], Scripted(outcome, probe))
    if isinstance(verdict, Failure):
        assert f"error: {verdict.kind}" == expected
    else:
        assert (verdict.reason, verdict.accuracy) == (expected, 0.0)


def test_together_gets_no_more_than_alone(sandboxes: LocalSandboxes) -> None:
    """What ends together must end alone, or neighbours would change verdicts."""
    seen: list[Job] = []

    class Watching:
        def run(self, profile: Profile, job: Job) -> list[Outcome]:
            seen.append(job)
            return sandboxes.run(profile, job)

    slow = TASK.model_copy(update={"completion": "7" * 1_000_000})
    verdicts = grade([TASK, slow], Watching())
    assert [verdict.accuracy for verdict in verdicts if isinstance(verdict, Judgement)] == [1.0, 0.0]
    together, alone, *_ = seen
    assert len(together.cases) == 1
    assert len(alone.cases) == 2
    assert alone.limits == LIMITS
    for name in ("cpu_seconds", "wall_seconds", "memory_bytes", "output_bytes", "result_bytes", "processes"):
        assert getattr(together.limits, name) <= getattr(alone.limits, name)


@pytest.mark.parametrize("name", ["json_schema", "function_call", "qa", "choice", "regex", "parses"])
def test_the_example_of_each_page_is_graded_one(name: str, sandboxes: LocalSandboxes) -> None:
    page = (Path("docs/verifiers") / f"{name}.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    task = TASK_TYPE.validate_json(example)
    assert task.verifier == name
    (verdict,) = grade([task], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a {1} [2]", ["{1}", "[2]"]),
        ("{a [b] {c}}", ["{a [b] {c}}"]),
        ("[ {1}", ["{1}"]),
        ('{"}": "{"}', ['{"}": "{"}']),
        ("{[}] [1]", ["[1]"]),
        ("]}{}", ["{}"]),
        ("", []),
    ],
)
def test_balanced_spans(text: str, spans: list[str]) -> None:
    assert [text[start:end] for start, end in balanced_spans(text)] == spans


def test_equality_is_that_of_json() -> None:
    assert equal({"a": [1, None]}, {"a": [1.0, None]})
    for one, other in ((1, True), (0, False), (None, False), ("1", 1), ([], {}), ([1], [1, 2]), ({"a": 1}, {"b": 1})):
        assert not equal(one, other)
        assert not equal(other, one)
    nan = float("nan")
    assert not equal([nan], [nan])
    assert not equal(2**53, float(2**53) + 2)


def test_strictness_is_off_piece_by_piece() -> None:
    assert find('{"a": 1, "a": 2}', "whole", "answer", Strictness(duplicate_keys=True)).value == {"a": 2}
    with pytest.raises(NoJson, match="not_a_number"):
        decode("[NaN]", Strictness(duplicate_keys=True, trailing_text=True))
    with pytest.raises(NoJson, match="trailing_text"):
        decode("1 2", Strictness(duplicate_keys=True, nan=True))
