"""Finds a short answer in words in a completion. Every rule is linear in the completion's length."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.tasks import FormatSpec

from verifiers.math.extraction import boxes
from verifiers.math.normalise import unbox
from verifiers.reasoning import after_reasoning

MAX_CHARACTERS = 10_000
"""Longer answers are none."""

_PHRASE = re.compile(
    r"(?:(?:final|correct|right|best)\s{1,3})?\b(?:answer|option|choice)\b\**"
    r"(?:\s{1,3}(?:to|of|for)\s[^\n.:]{1,120}?)?\**(?:\s{0,3}(?:is|was|would\s{1,2}be|=|:|：)\**){1,2}\s{0,3}"
    r"|(?:最终)?答案[是为：:]{1,2}\s{0,3}|正答[は：:]{1,2}\s{0,3}|(?:정답|답)(?:은|:|：)\s{0,3}",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_MAX_PHRASE = 1000


@dataclass(frozen=True, slots=True)
class FoundText:
    """What was found, or why nothing was."""

    readings: tuple[str, ...]
    """The answer, and where it may as well have ended: "St. Louis, Missouri" and "St". Empty when there is none."""
    source: str
    """The rule that found it; else `absent`, `empty`, `unclosed`, `unfinished_reasoning` or `too_long`."""
    raw: str = ""
    """The first reading, with the white space around it."""


_Rule = Callable[[str, tuple[str, ...]], "tuple[str, ...] | None"]
"""Returns readings of the last answer, none where there is no answer; None when the last one is cut off."""


def find_text(
    completion: str,
    sources: Sequence[str],
    answer_tags: Sequence[str],
    form: FormatSpec | None,
    *,
    max_characters: int = MAX_CHARACTERS,
) -> FoundText:
    """Find the answer.

    Args:
        completion: what the model wrote.
        sources: where to look, in this order: `answer_tag`, `boxed`, `phrase`, `last_line`, `whole`.
        answer_tags: names of tags that hold the answer, in any case.
        form: the task's form, where it has one.
        max_characters: length of the longest answer.
    """
    form = form or FormatSpec()
    text = after_reasoning(completion, form)
    if text is None:
        return FoundText((), "unfinished_reasoning")
    tags = tuple(dict.fromkeys(name.lower() for name in (form.answer_tag, *answer_tags) if name is not None))
    reason = "absent"
    for source in sources:
        readings = _RULES[source](text, tags)
        if readings is None:
            return FoundText((), "unclosed")
        filled = tuple(dict.fromkeys(reading.strip() for reading in readings if reading.strip()))
        if any(len(reading) > max_characters for reading in filled):
            return FoundText((), "too_long")
        if filled:
            return FoundText(filled, source, readings[0])
        if readings:
            reason = "empty"
    return FoundText((), reason)


def _tagged(text: str, tags: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return what the last tag holds: a box in it, what follows an answer phrase in it, else all."""
    opened: re.Match[str] | None = None
    content: str | None = None
    for match in _tag_pattern(tags).finditer(text):
        if not match["slash"]:
            opened = match
        elif opened is not None and match["name"].lower() == opened["name"].lower():
            content, opened = text[opened.end() : match.start()], None
    if opened is not None:
        return None
    if content is None:
        return ()
    return _boxed(content, tags) or _phrase(content, tags) or (content,)


@lru_cache(maxsize=64)
def _tag_pattern(tags: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(tag) for tag in tags)
    return re.compile(rf"<(?P<slash>/)?(?P<name>{names})>", re.IGNORECASE)


def _boxed(text: str, _tags: tuple[str, ...]) -> tuple[str, ...] | None:
    found = boxes(text, FormatSpec())
    if found is None:
        return None
    return (found[-1],) if found else ()


def _phrase(text: str, _tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rest of the line after the last answer phrase, and that up to the end of its first sentence."""
    last = None
    for last in _PHRASE.finditer(text):  # noqa: B007
        pass
    if last is None:
        return ()
    start = last.end()
    end = text.find("\n", start, start + _MAX_PHRASE)
    line = text[start : end if end >= 0 else start + _MAX_PHRASE].strip()
    sentence = _SENTENCE_END.search(line)
    readings = (line, line[: sentence.start()]) if sentence else (line,)
    return tuple(unbox(reading.strip().strip("*").strip()) for reading in readings)


def _last_line(text: str, _tags: tuple[str, ...]) -> tuple[str, ...]:
    return (text.rstrip().rpartition("\n")[2],)


def _whole(text: str, _tags: tuple[str, ...]) -> tuple[str, ...]:
    return (text,)


_RULES: dict[str, _Rule] = {
    "answer_tag": _tagged,
    "boxed": _boxed,
    "phrase": _phrase,
    "last_line": _last_line,
    "whole": _whole,
}
