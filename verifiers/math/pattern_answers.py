"""Has the tasks' own regular expressions looked for in a sandbox."""

from collections.abc import Sequence

from assay.tasks import FormatSpec, MathTask

from sandboxes.base import Case, Job, Outcome, Sandboxes
from verifiers.base import Failure, Judgement
from verifiers.math.comparisons import LIMITS, PROFILE
from verifiers.reasoning import after_reasoning

_SHOWN_CHARACTERS = 200

PatternAnswers = list[str] | Judgement | Failure
"""What a task's pattern found; or what that makes of the task."""


def find_pattern_answers(tasks: Sequence[MathTask], sandboxes: Sandboxes) -> dict[int, PatternAnswers]:
    """Look for the pattern of every task that has one; the result is by the task's position."""
    asked = {
        position: {"pattern": task.options.pattern, "text": text}
        for position, task in enumerate(tasks)
        if task.options.pattern is not None
        and (text := after_reasoning(task.completion, task.format or FormatSpec())) is not None
    }
    if not asked:
        return {}
    cases = [Case(argument=dict(argument)) for argument in asked.values()]
    outcomes = sandboxes.run(PROFILE, Job(guest="verifiers.math.patterns:find", cases=cases, limits=LIMITS))
    return {position: _found(outcome) for position, outcome in zip(asked, outcomes, strict=True)}


def _found(outcome: Outcome) -> PatternAnswers:
    if not outcome.returned or not isinstance(outcome.result, dict):
        if outcome.limit in {None, "wall_timeout"}:
            return Failure("sandbox_lost", "the search for the task's pattern did not end: the machine is overloaded")
        return Judgement(outcome.limit, 0.0, details={"problem": "the search for the task's pattern broke a limit"})
    result = outcome.result
    if "problem" in result:
        return Failure("bad_reference", f"options.pattern: no pattern of RE2: {result['problem']}"[:_SHOWN_CHARACTERS])
    answers = result["answers"]
    assert isinstance(answers, list)
    return [str(answer) for answer in answers]
