"""The math verifier: extraction, the fast path, and for the rest one sandbox job a batch."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from assay.tasks import MathOptions, MathTask
from assay.verdict import Extracted
from pydantic import JsonValue

from sandboxes.base import Profile, Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.math.choices import as_choice, with_choices
from verifiers.math.comparisons import PROFILE, Compared, compare_all
from verifiers.math.extraction import Found, find_answer
from verifiers.math.normalise import MAX_CHARACTERS
from verifiers.math.pattern_answers import PatternAnswers, find_pattern_answers
from verifiers.math.plain import Tolerance, Written, decide, units_conflict, write

_SHOWN_CHARACTERS = 200
_EXTRACTED_CHARACTERS = 2000


@dataclass(frozen=True)
class _Open:
    """A task that reading did not decide."""

    judgement: Judgement
    """What is known of it already."""
    references: tuple[str, ...]
    unmatched: tuple[str, ...]
    """References that are only read: the answer is not one of these."""
    answer: str | None
    """None when only the references are to be read: the answer is wrong whatever they say, if they say anything."""
    options: MathOptions

    def argument(self, *, with_answer: bool = True) -> JsonValue:
        """Return what the engine's `compare` takes."""
        return {
            "references": list(self.references),
            "unmatched": list(self.unmatched),
            "answer": self.answer if with_answer else None,
            "relative_tolerance": self.options.relative_tolerance,
            "absolute_tolerance": self.options.absolute_tolerance,
            "form": self.options.form,
        }

    @property
    def key(self) -> tuple[object, ...]:
        """What decides the outcome."""
        options = self.options
        tolerances = options.relative_tolerance, options.absolute_tolerance
        return self.references, self.unmatched, self.answer, *tolerances, options.form


class MathVerifier(Verifier[MathTask]):
    """Decides whether the answer in a completion is mathematically equal to the reference."""

    name: ClassVar[str] = "math"
    version: ClassVar[str] = "3"
    description: ClassVar[str] = (
        "The answer in the completion is mathematically equal to the reference, or to any of them."
    )
    profile: ClassVar[Profile | None] = PROFILE
    batch_size: ClassVar[int] = 64
    example: ClassVar[dict[str, Any]] = {
        "verifier": "math",
        "completion": "<think>Half of one.</think>So the share is \\boxed{\\frac{1}{2}}.",
        "reference": "0.5",
    }
    task_type = MathTask

    def grade(self, tasks: Sequence[MathTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
        """Yield one judgement or failure per task, in order; what reading does not decide goes into one job."""
        found = find_pattern_answers(tasks, sandboxes)
        read = [_read(task, found.get(position)) for position, task in enumerate(tasks)]
        decided = iter(_compare([item for item in read if isinstance(item, _Open)], sandboxes))
        for item in read:
            yield next(decided) if isinstance(item, _Open) else item


def _read(task: MathTask, of_pattern: PatternAnswers | None) -> Judgement | Failure | _Open:
    """Extract, and decide what takes no more than reading."""
    texts = [task.reference] if isinstance(task.reference, str) else list(task.reference)
    problem = _reference_problem(texts)
    if problem is not None:
        return Failure("bad_reference", problem)
    references = [_write(text, task.options) for text in texts]
    empty = next((position for position, written in enumerate(references) if not written.text), None)
    if empty is not None:
        return Failure("bad_reference", f"reference{_place(empty, len(texts))}: holds no answer")
    if task.options.choices is not None:
        references = with_choices(references, [_write(text, task.options) for text in task.options.choices])
    if of_pattern is not None and not isinstance(of_pattern, list):
        return _unless_bad(of_pattern, references) if isinstance(of_pattern, Judgement) else of_pattern
    found = find_answer(task.completion, task.options, task.format, of_pattern)
    details: dict[str, JsonValue] = {"reference": _cut(" | ".join(texts), _SHOWN_CHARACTERS)}
    if found.text is None:
        judgement = Judgement("no_answer", accuracy=0.0, details=details | {"problem": found.source})
        return _unless_bad(judgement, references)
    extracted = Extracted(text=_cut(found.text, _EXTRACTED_CHARACTERS), source=found.source)
    if len(found.text) > MAX_CHARACTERS:
        return _unless_bad(Judgement("answer_too_long", 0.0, extracted=extracted, details=details), references)
    return _decide(task.options, references, found, Judgement("different", 0.0, extracted=extracted, details=details))


def _write(text: str, options: MathOptions) -> Written:
    return write(text, ignore_units=options.ignore_units, decimal_comma=options.decimal_comma)


def _decide(options: MathOptions, references: list[Written], found: Found, judgement: Judgement) -> Judgement | _Open:
    """Compare by reading alone; what is left open goes to the sandbox."""
    assert found.text is not None
    written = _write(found.text, options)
    answer = as_choice(written, [_write(text, options) for text in options.choices]) if options.choices else written
    if answer is None:
        return _unless_bad(_with_details(judgement, decided_by="text"), references)
    tolerance = Tolerance(options.relative_tolerance, options.absolute_tolerance)
    verdicts = [decide(reference, answer, tolerance) for reference in references]
    if any(verdicts):
        kind = (
            "number"
            if any(ref.number and verdict for ref, verdict in zip(references, verdicts, strict=True))
            else "text"
        )
        judgement = replace(judgement, reason="equal", accuracy=1.0)
        return _unless_bad(_with_details(judgement, decided_by=kind), references)
    if None not in verdicts:
        kind = "number" if any(reference.number for reference in references) else "text"
        return _with_details(judgement, decided_by=kind)
    if not answer.text:
        return _unless_bad(replace(judgement, reason="no_answer"), references)
    # A reference whose unit contradicts the answer's is no match, but it must still be one that can be read.
    open_references = [
        reference.symbolic
        for reference, verdict in zip(references, verdicts, strict=True)
        if verdict is None and not units_conflict(reference, answer)
    ]
    others = {reference.symbolic for reference in references if not reference.read_by_eye} - set(open_references)
    if not open_references:
        return _unless_bad(_with_details(judgement, decided_by="unit"), references)
    return _Open(judgement, tuple(open_references), tuple(sorted(others)), answer.symbolic, options)


def _unless_bad(judgement: Judgement, references: list[Written]) -> Judgement | _Open:
    """Keep a judgement that stands whatever the references say, as long as each says something."""
    unread = tuple(reference.symbolic for reference in references if not reference.read_by_eye)
    return _Open(judgement, (), unread, None, MathOptions()) if unread else judgement


def _compare(items: list[_Open], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:
    """Make each different comparison once, and judge each task by what came of it."""
    distinct = {item.key: item for item in sorted(items, key=lambda item: item.references)}
    compared = compare_all({key: item.argument() for key, item in distinct.items()}, sandboxes)
    doubtful = {key: item for key, item in distinct.items() if not compared[key].returned and item.answer is not None}
    alone = compare_all({key: item.argument(with_answer=False) for key, item in doubtful.items()}, sandboxes)
    for item in items:
        made = compared[item.key]
        judged = _judge(item, made, alone.get(item.key))
        yield (
            replace(judged, cpu_seconds=made.outcome.cpu_seconds, peak_memory_bytes=made.outcome.peak_memory_bytes)
            if isinstance(judged, Judgement)
            else judged
        )


def _judge(item: _Open, made: Compared, references_alone: Compared | None) -> Judgement | Failure:
    """Turn what happened in the sandbox into a judgement."""
    result = made.result
    if result is None:
        return _judge_broken(item, made, references_alone)
    assert isinstance(result, dict)
    problem = result.get("problem")
    if "reference" in result:
        position = result["reference"]
        assert isinstance(position, int)
        text = _cut((item.references + item.unmatched)[position], _SHOWN_CHARACTERS)
        return Failure("bad_reference", f"reference: cannot be read as mathematics ({problem}): {text}")
    if "read" in result:
        return item.judgement
    judgement = _with_details(item.judgement, decided_by="symbolic")
    if problem is not None:
        judgement = _with_details(judgement, problem=str(problem))
    if result.get("answer") == "unreadable":
        return replace(judgement, reason="unparsable_answer")
    if result.get("unevaluated"):
        return replace(judgement, reason="not_evaluated")
    return replace(judgement, reason="equal", accuracy=1.0) if result["equal"] is True else judgement


def _judge_broken(item: _Open, made: Compared, references_alone: Compared | None) -> Judgement | Failure:
    """Judge a comparison that did not come back: the reference's fault when it does not come back alone either."""
    is_reference = references_alone is not None and not references_alone.returned
    broken = (references_alone if references_alone is not None and is_reference else made).outcome
    if broken.signal == signal.SIGKILL and broken.limit is None:
        return Failure("sandbox_lost", "the comparison was killed from outside: the machine is out of memory")
    if broken.limit == "wall_timeout":
        return Failure("sandbox_lost", "the comparison got no CPU time: the machine is overloaded")
    what = broken.limit or ("crashed" if broken.signal is None else f"signal {broken.signal}")
    if item.answer is None or is_reference:
        return Failure("bad_reference", f"reference: reading it broke a limit of the sandbox ({what})")
    if (
        references_alone is not None
        and isinstance(references_alone.result, dict)
        and "reference" in references_alone.result
    ):
        return _judge(item, references_alone, None)
    return replace(_with_details(item.judgement, decided_by="symbolic"), reason=broken.limit or "comparison_failed")


def _reference_problem(texts: list[str]) -> str | None:
    """Return what is wrong with the references that needs no reading."""
    if not texts:
        return "reference: the list is empty"
    for position, text in enumerate(texts):
        place = _place(position, len(texts))
        if not text.strip():
            return f"reference{place}: is empty"
        if len(text) > MAX_CHARACTERS:
            return f"reference{place}: is longer than {MAX_CHARACTERS} characters"
    return None


def _place(position: int, count: int) -> str:
    return f"[{position}]" if count > 1 else ""


def _with_details(judgement: Judgement, **details: JsonValue) -> Judgement:
    return replace(judgement, details=judgement.details | details)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
