"""What becomes of a verifier's judgements, defects and lost sandboxes. The verifiers here misbehave on purpose."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from assay import FormatSpec, FormatTask, MathTask, RewardSpec, Task, Verdict

from sandboxes.base import Job, Outcome, Profile, SandboxLost, SandboxUnavailable
from service.grading import grade
from verifiers.base import Failure, Judgement, Verifier

Behaviour = Callable[[MathTask, int], Judgement | Failure]
"""What a task and the number of times it was seen before lead to."""


class NoSandboxes:
    """A source of sandboxes for verifiers that need none."""

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        raise AssertionError(profile, job)


class Scripted(Verifier[MathTask]):
    """Does with each task what the test says."""

    name: ClassVar[str] = "math"
    version: ClassVar[str] = "test"
    description: ClassVar[str] = "A test's verifier."
    example: ClassVar[dict[str, Any]] = {}
    task_type = MathTask

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.calls: list[list[str]] = []
        self._seen: dict[str, int] = {}

    def grade(self, tasks: Sequence[MathTask], sandboxes: object) -> Iterator[Judgement | Failure]:
        assert isinstance(sandboxes, NoSandboxes)
        self.calls.append([task.completion for task in tasks])
        for task in tasks:
            seen = self._seen.get(task.completion, 0)
            self._seen[task.completion] = seen + 1
            yield self._behaviour(task, seen)


def tasks(*completions: str, **fields: Any) -> list[MathTask]:
    return [
        MathTask(
            id=f"{index}", verifier="math", completion=completion, reference="4", **{"reward": RewardSpec(), **fields}
        )
        for index, completion in enumerate(completions)
    ]


def graded(behaviour: Behaviour, *completions: str, **fields: Any) -> tuple[list[Verdict], Scripted]:
    verifier = Scripted(behaviour)
    return list(grade(tasks(*completions, **fields), {"math": verifier}, NoSandboxes())), verifier


def right(_task: MathTask, _seen: int) -> Judgement:
    return Judgement(reason="equal", accuracy=1.0, cpu_seconds=0.25, peak_memory_bytes=2049)


def test_a_judgement_becomes_a_verdict() -> None:
    verdict = graded(right, "x")[0][0]
    assert (verdict.id, verdict.verifier, verdict.version, verdict.status) == ("0", "math", "test", "graded")
    assert (verdict.accuracy, verdict.format, verdict.reward, verdict.reason) == (1.0, None, 1.0, "equal")
    assert verdict.error is None
    assert (verdict.timing.cpu_ms, verdict.timing.peak_memory_kb) == (250.0, 3)


@pytest.mark.parametrize(
    ("completion", "combine", "reward", "format_score"),
    [
        ("<think>x</think>\n<answer>4</answer>", "sum", 1.5, 1.0),
        ("<think>x</think>\n<answer>4</answer>", "gate", 1.5, 1.0),
        ("4", "sum", 1.0, 0.0),
        ("4", "gate", 0.0, 0.0),
    ],
)
def test_the_form_is_scored_when_asked_for(completion: str, combine: str, reward: float, format_score: float) -> None:
    spec = RewardSpec.model_validate({"format_weight": 0.5, "combine": combine})
    verdict = graded(right, completion, reward=spec, format=FormatSpec())[0][0]
    assert (verdict.accuracy, verdict.format, verdict.reward) == (1.0, format_score, reward)
    assert isinstance(verdict.details["format_reason"], str)


def test_a_failure_has_no_score_of_any_kind() -> None:
    def broken(_task: MathTask, _seen: int) -> Failure:
        return Failure("bad_reference", "the reference cannot be read")

    good_form = "<think>x</think>\n<answer>4</answer>"
    verdict = graded(broken, good_form, format=FormatSpec())[0][0]
    assert (verdict.status, verdict.accuracy, verdict.format, verdict.reward) == ("error", None, None, None)
    assert verdict.error is not None
    assert (verdict.error.kind, verdict.error.retryable) == ("bad_reference", False)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1.0000001, -0.1, True, "1", 10**400])
@pytest.mark.parametrize("field", ["accuracy", "format"])
def test_a_score_that_is_none_is_refused(score: Any, field: str) -> None:
    def absurd(task: MathTask, seen: int) -> Judgement:
        return Judgement(reason="odd", **{field: score}) if task.completion == "bad" else right(task, seen)

    verdicts, _ = graded(absurd, "good", "bad", "fine")
    assert [verdict.reward for verdict in verdicts] == [1.0, None, 1.0]
    assert verdicts[1].error is not None
    assert verdicts[1].error.kind == "internal"


def test_a_judgement_without_any_score_is_refused() -> None:
    verdict = graded(lambda _task, _seen: Judgement(reason="nothing"), "x")[0][0]
    assert verdict.error is not None
    assert verdict.error.kind == "internal"


@pytest.mark.parametrize("defect", [ValueError("boom"), RecursionError(), MemoryError(), KeyError("x")])
def test_a_defect_takes_only_its_own_task(defect: Exception) -> None:
    def fragile(task: MathTask, seen: int) -> Judgement:
        if task.completion == "bad":
            raise defect
        return right(task, seen)

    verdicts, verifier = graded(fragile, "a", "bad", "c", "d")
    assert [verdict.reward for verdict in verdicts] == [1.0, None, 1.0, 1.0]
    error = verdicts[1].error
    assert error is not None
    assert (error.kind, error.retryable) == ("internal", True)
    assert type(defect).__name__ in error.message
    assert "boom" not in error.message
    assert "Traceback" not in error.message
    assert verifier.calls == [["a", "bad", "c", "d"], ["bad"], ["c"], ["d"]]


def test_a_lone_task_is_not_judged_again_after_a_defect() -> None:
    def once(_task: MathTask, seen: int) -> Judgement:
        if seen == 0:
            raise ValueError
        return right(_task, seen)

    verdicts, verifier = graded(once, "x")
    assert verdicts[0].status == "error"
    assert verifier.calls == [["x"]]


@pytest.mark.parametrize("loss", [SandboxLost("gone"), SandboxUnavailable("forbidden")])
def test_a_lost_sandbox_is_retried_once(loss: Exception) -> None:
    def lost_once(task: MathTask, seen: int) -> Judgement:
        if task.completion == "b" and seen == 0:
            raise loss
        return right(task, seen)

    verdicts, verifier = graded(lost_once, "a", "b", "c")
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0, 1.0]
    assert verifier.calls == [["a", "b", "c"], ["b"], ["c"]]


@pytest.mark.parametrize("neighbours", [(), ("a",), ("a", "c")])
def test_a_sandbox_lost_twice_is_an_error_of_that_task_only(neighbours: tuple[str, ...]) -> None:
    def lost(task: MathTask, seen: int) -> Judgement:
        if task.completion == "bad":
            raise SandboxLost("gone")
        return right(task, seen)

    verdicts, verifier = graded(lost, "bad", *neighbours)
    assert verdicts[0].error is not None
    assert (verdicts[0].error.kind, verdicts[0].error.retryable) == ("sandbox_lost", True)
    assert [verdict.reward for verdict in verdicts[1:]] == [1.0] * len(neighbours)
    assert sum("bad" in call for call in verifier.calls) == 2


def test_judgements_that_are_missing_or_too_many() -> None:
    class Miscounting(Scripted):
        def grade(self, tasks: Sequence[MathTask], sandboxes: object) -> Iterator[Judgement | Failure]:
            judged = list(super().grade(tasks, sandboxes))
            yield from judged if tasks[0].completion == "more" else judged[:-1]
            yield from judged

    class Silent(Scripted):
        def grade(self, tasks: Sequence[MathTask], sandboxes: object) -> Iterator[Judgement | Failure]:  # noqa: ARG002
            return iter(())

    too_many = list(grade(tasks("more", "x"), {"math": Miscounting(right)}, NoSandboxes()))
    assert [verdict.id for verdict in too_many] == ["0", "1"]
    none = list(grade(tasks("x", "y"), {"math": Silent(right)}, NoSandboxes()))
    assert [verdict.error.kind for verdict in none if verdict.error] == ["internal", "internal"]


def test_details_that_are_not_json_are_a_defect() -> None:
    def odd(_task: MathTask, _seen: int) -> Judgement:
        return Judgement(reason="equal", accuracy=1.0, details={"set": {1}})  # type: ignore[dict-item]

    verdict = graded(odd, "x")[0][0]
    assert verdict.error is not None
    assert verdict.error.kind == "internal"


def test_verdicts_do_not_depend_on_neighbours() -> None:
    def by_text(task: MathTask, _seen: int) -> Judgement:
        return Judgement(reason="equal", accuracy=len(task.completion) / 10)

    together = graded(by_text, "a", "bb", "ccc")[0]
    alone = [
        verdict
        for task in tasks("a", "bb", "ccc")
        for verdict in grade([task], {"math": Scripted(by_text)}, NoSandboxes())
    ]
    assert [without_timing(verdict) for verdict in together] == [without_timing(verdict) for verdict in alone]


def test_mixed_verifiers_keep_their_order() -> None:
    from verifiers.registry import REGISTRY

    formats = FormatTask(id="f", verifier="format", completion="x", reward=RewardSpec())
    mixed: list[Task] = [*tasks("a", "b"), formats, *tasks("c")]
    registry = {**REGISTRY, "math": Scripted(right)}
    assert [verdict.id for verdict in grade(mixed, registry, NoSandboxes())] == ["0", "1", "f", "0"]


def without_timing(verdict: Verdict) -> str:
    return json.dumps(verdict.model_dump(exclude={"timing"}))
