"""The choice verifier: one of several choices, by its label or its text. All of it is reading, bounded in length."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, ClassVar

from assay.tasks import ChoiceTask
from assay.verdict import Extracted

from sandboxes.base import Sandboxes
from verifiers.base import Failure, Judgement, Verifier
from verifiers.math.normalise import unbox
from verifiers.text_answers import MAX_CHARACTERS, FoundText, find_text
from verifiers.wording import normalise

_EXTRACTED_CHARACTERS = 2000
_LABEL = r"(?:[A-Za-z]|\d{1,2})"
_DECORATION = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\{([^{}]{0,200})\}|\*\*|__|`|\$")
_ALONE = re.compile(rf"(?:(?:option|choice|answer)\s{{1,3}})?[(\[]?(?P<label>{_LABEL})[)\].:]{{0,2}}", re.IGNORECASE)
_WITH_TEXT = re.compile(
    rf"(?:(?:option|choice|answer)\s{{1,3}})?"
    rf"(?:[(\[](?P<bracket>{_LABEL})[)\]][.:]?\s*"  # (B) Paris
    rf"|(?P<marked>{_LABEL})(?:[).:]{{1,2}}\s+|\s+[-–—]\s+|,\s+)"  # B. Paris
    rf"|(?P<bare>(?-i:[A-Z]|\d{{1,2}}))\s+(?=(?:because|since|as|is|which|due|for|given)\b))"  # B because …
    r"(?P<text>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_FIRST_LABEL = re.compile(r"[(\[]?([A-Z]|\d{1,2})[)\]]?(?=\s|$)")
_OTHER_LABEL = re.compile(
    rf"[(\[]({_LABEL})[)\]]|\b(?:or|and|not|nor)\s{{1,3}}([A-HJ-Z]|\d{{1,2}})(?![\w'])"
    r"|(?:^|[/,&+]\s?)([A-Z])(?=\s?[/,&+.)]|$)"
)
"""Labels that a text names beside the first: `(C)`, `or C`, `B, C`."""


@dataclass(frozen=True)
class _Choices:
    """The choices of a task."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    """Normalised; empty when there are none."""
    accepts_text: bool

    def by_label(self, label: str) -> int | None:
        """Return the position of a label."""
        wanted = label.upper()
        return self.labels.index(wanted) if wanted in self.labels else None

    def by_text(self, text: str) -> int | None:
        """Return the position of the choice that has this text."""
        written = normalise(text)
        return self.texts.index(written) if self.accepts_text and written in self.texts else None


class ChoiceVerifier(Verifier[ChoiceTask]):
    """Decides whether a completion names the right choice, and no other."""

    name: ClassVar[str] = "choice"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = "The completion names the right choice, by its label or its text, and no other."
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "choice",
        "completion": "<think>Rome is in Italy.</think>The answer is (B) Paris.",
        "choices": ["Rome", "Paris", "Oslo"],
        "reference": "B",
    }
    task_type = ChoiceTask

    def grade(self, tasks: Sequence[ChoiceTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:  # noqa: ARG002
        """Yield one judgement or failure per task; nothing is run, so no sandbox is used."""
        return map(_grade, tasks)


def _grade(task: ChoiceTask) -> Judgement | Failure:
    choices = _choices(task)
    if isinstance(choices, str):
        return Failure("bad_reference", choices)
    right = _right(task, choices)
    if isinstance(right, str):
        return Failure("bad_reference", right)
    problem, passed_over = "absent", None
    for source in task.options.extract:
        found = find_text(task.completion, (source,), task.options.answer_tags, task.format)
        if found.readings:
            judgement = _judged(found, choices, right)
            if judgement.reason != "unreadable" or source != "phrase":
                return judgement
            passed_over = passed_over or judgement  # "the answer is clear" names no choice: one may follow
        elif found.source == "too_long":
            return Judgement("answer_too_long", accuracy=0.0, details={"problem": found.source})
        elif found.source != "absent":
            problem = found.source
        if problem in ("unclosed", "unfinished_reasoning"):
            break
    return passed_over or Judgement("no_answer", accuracy=0.0, details={"problem": problem})


def _judged(found: FoundText, choices: _Choices, right: int) -> Judgement:
    """Judge what was found in one place."""
    named = (_chosen(reading, choices) for reading in found.readings)
    chosen = next((name for name in named if name != "unreadable"), "unreadable")
    extracted = Extracted(text=found.readings[0][:_EXTRACTED_CHARACTERS], source=found.source)
    if isinstance(chosen, str):
        return Judgement(chosen, accuracy=0.0, extracted=extracted)
    is_right = chosen == right
    return Judgement(
        "equal" if is_right else "different",
        accuracy=float(is_right),
        extracted=extracted,
        details={"chosen": choices.labels[chosen]},
    )


def _choices(task: ChoiceTask) -> "_Choices | str":
    """Return the choices, or what is wrong with them."""
    is_numbered = task.options.labels == "numbers"
    count = len(task.choices) if task.choices is not None else 26
    labels = tuple(str(number + 1) for number in range(count)) if is_numbered else tuple(ascii_uppercase[:count])
    texts = tuple(map(normalise, task.choices or ()))
    for position, text in enumerate(texts):
        if len((task.choices or ())[position]) > MAX_CHARACTERS:
            return f"choices[{position}]: is longer than {MAX_CHARACTERS} characters"
        if not text:
            return f"choices[{position}]: holds no word"
        if text in texts[:position]:
            return f"choices[{position}]: says the same as choices[{texts.index(text)}]"
    return _Choices(labels, texts, task.options.accept_text)


def _right(task: ChoiceTask, choices: _Choices) -> int | str:
    """Return the position of the right choice, or what is wrong with the reference."""
    stripped = task.reference.strip()
    label = _ALONE.fullmatch(stripped)
    position = choices.by_label(label["label"]) if label is not None else None
    if position is None and choices.texts and normalise(stripped) in choices.texts:
        position = choices.texts.index(normalise(stripped))
    if position is not None:
        return position
    known = f"{choices.labels[0]}…{choices.labels[-1]}"
    return f"reference: is neither a label ({known}) nor the text of a choice"


def _chosen(answer: str, choices: _Choices) -> int | str:
    """Return the position of the choice that an answer names; else `unreadable`, `several`, `contradictory`."""
    text = unbox(_DECORATION.sub(lambda match: match[1] or "", answer).strip()).strip()
    alone = _ALONE.fullmatch(text)
    if alone is not None and (position := choices.by_label(alone["label"])) is not None:
        return position
    by_text = choices.by_text(text)
    if by_text is not None:
        return by_text
    match = _WITH_TEXT.fullmatch(text)
    if match is not None:
        label = choices.by_label(match["bracket"] or match["marked"] or match["bare"])
        if label is not None:
            return _with_text(label, match["text"], choices)
    named = set(_labels_within(text, choices))
    first = _FIRST_LABEL.match(text)
    if first is not None and (position := choices.by_label(first[1])) is not None:
        named.add(position)
    return "several" if len(named) > 1 else "unreadable"


def _with_text(label: int, text: str, choices: _Choices) -> int | str:
    """Return the choice of a label with text behind it, which must be that choice's, or an explanation."""
    by_text = choices.by_text(text)
    if by_text is not None:
        return label if by_text == label else "contradictory"
    if any(position != label for position in _labels_within(text, choices)):
        return "several"
    written = f"{normalise(text)} "
    begun = [position for position, other in enumerate(choices.texts) if written.startswith(f"{other} ")]
    if not begun or label in begun:
        return label
    return "contradictory"


def _labels_within(text: str, choices: _Choices) -> Iterator[int]:
    """Yield the labels that a longer text names."""
    for match in _OTHER_LABEL.finditer(text[:MAX_CHARACTERS]):
        position = choices.by_label(next(filter(None, match.groups())))
        if position is not None:
            yield position
