"""How a task becomes a verdict: the verifier judges, the form is scored, the reward is composed.

Everything here runs in a worker process. Nothing is read from settings or requests: a resolved task
(`service.admission`) carries all that its verdict depends on.
"""

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from assay.reward import compose_reward
from assay.tasks import ScoredTask, Task
from assay.verdict import Timing, Verdict, VerdictError
from pydantic import JsonValue

from sandboxes.base import Sandboxes, SandboxLost, SandboxUnavailable
from verifiers.base import Failure, Judgement, Verifier
from verifiers.format_tags import score_format

logger = logging.getLogger(__name__)

AnyVerifier = Verifier[Any]


def grade(
    tasks: Sequence[Task],
    registry: Mapping[str, AnyVerifier],
    sandboxes: Sandboxes,
    queue_ms: Sequence[float] | None = None,
) -> Iterator[Verdict]:
    """Yield exactly one verdict per task, in order, each as soon as it is known.

    Args:
        tasks: resolved tasks. Neighbours of the same verifier are graded in one call, which changes no verdict.
        registry: verifiers by name.
        sandboxes: where verifiers run what completions wrote.
        queue_ms: how long each task waited, for its timing.
    """
    waited = iter(queue_ms if queue_ms is not None else [0.0] * len(tasks))
    for name, neighbours in groupby(tasks, key=lambda task: task.verifier):
        run = list(neighbours)
        verifier = registry[name]
        started = time.perf_counter()
        for task, judged in zip(run, _judge(verifier, run, sandboxes), strict=True):
            yield _verdict(verifier, task, judged, queue_ms=next(waited), started=started)
            started = time.perf_counter()


def error_verdict(task_id: str, verifier: str, version: str, failure: Failure, timing: Timing | None = None) -> Verdict:
    """Return the verdict of a task that could not be judged: no score of any kind."""
    error = VerdictError(kind=failure.kind, message=failure.message, retryable=failure.retryable)
    return Verdict(
        id=task_id, verifier=verifier, version=version, status="error", error=error, timing=timing or Timing()
    )


def _judge(verifier: AnyVerifier, tasks: Sequence[Task], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
    """Judge the tasks together; what a failure leaves unanswered is judged again one by one.

    A lost sandbox or a defect of the verifier gives no outcome, so a second run shows a completion nothing that it
    could profit from; and alone, a task that breaks things takes no neighbour with it.
    """
    answered = 0
    try:
        for judged in verifier.grade(tasks, sandboxes):
            answered += 1
            yield judged
            if answered == len(tasks):
                return
        failure = _too_few(verifier)
    except (SandboxLost, SandboxUnavailable) as lost:
        logger.warning("sandbox lost while grading %d %s tasks: %s", len(tasks) - answered, verifier.name, lost)
        failure = None
    except Exception as defect:
        failure = _internal(verifier, defect)
    if failure is not None and len(tasks) == 1:
        yield failure
        return
    for task in tasks[answered:]:
        yield _judge_alone(verifier, task, sandboxes)


def _judge_alone(verifier: AnyVerifier, task: Task, sandboxes: Sandboxes) -> Judgement | Failure:
    try:
        for judged in verifier.grade([task], sandboxes):
            return judged
        return _too_few(verifier)
    except (SandboxLost, SandboxUnavailable) as lost:
        return Failure(kind="sandbox_lost", message=f"the sandbox was lost twice while grading this task: {lost}")
    except Exception as defect:
        return _internal(verifier, defect)


def _too_few(verifier: AnyVerifier) -> Failure:
    return Failure(kind="internal", message=f"the verifier {verifier.name} returned no judgement")


def _internal(verifier: AnyVerifier, defect: Exception) -> Failure:
    logger.error("verifier %s failed unexpectedly", verifier.name, exc_info=defect)
    return Failure(
        kind="internal",
        message=f"verifier {verifier.name} failed unexpectedly ({type(defect).__name__}); see the server's log",
    )


def _verdict(
    verifier: AnyVerifier, task: Task, judged: Judgement | Failure, *, queue_ms: float, started: float
) -> Verdict:
    assert task.id is not None
    if isinstance(judged, Judgement):
        try:
            return _graded(verifier, task, judged, queue_ms=queue_ms, started=started)
        except (ValueError, ArithmeticError, TypeError, RecursionError) as defect:
            judged = _internal(verifier, defect)
    timing = Timing(queue_ms=queue_ms, grade_ms=_milliseconds_since(started))
    return error_verdict(task.id, verifier.name, verifier.version, judged, timing)


def _graded(verifier: AnyVerifier, task: Task, judged: Judgement, *, queue_ms: float, started: float) -> Verdict:
    assert task.id is not None
    assert task.reward is not None
    format_score = judged.format
    details: dict[str, JsonValue] = judged.details
    if isinstance(task, ScoredTask) and task.format is not None:
        format_score, format_reason = score_format(task.format, task.completion)
        details = {**details, "format_reason": format_reason}
    accuracy = _checked(judged.accuracy)
    format_score = _checked(format_score)
    if accuracy is None and format_score is None:
        raise ValueError("a judgement without any score")
    return Verdict(
        id=task.id,
        verifier=verifier.name,
        version=verifier.version,
        status="graded",
        accuracy=accuracy,
        format=format_score,
        reward=compose_reward(task.reward, accuracy, format_score),
        reason=judged.reason,
        extracted=judged.extracted,
        details=details,
        integrity=judged.integrity,
        timing=Timing(
            queue_ms=queue_ms,
            grade_ms=_milliseconds_since(started),
            cpu_ms=round(judged.cpu_seconds * 1e3, 3),
            peak_memory_kb=(judged.peak_memory_bytes + 1023) // 1024,
        ),
    )


def _milliseconds_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1e3, 3)


def _checked(score: float | None) -> float | None:
    """Return the score as a float; anything but a finite number in 0…1 is the verifier's defect."""
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise TypeError(f"a score of {score!r} is not a finite number")
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"a score of {score!r} is not in 0…1")
    return float(score)
