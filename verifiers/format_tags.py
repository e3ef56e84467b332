"""The format verifier: does a completion have the form `<think>…</think><answer>…</answer>` and nothing else.

One pass over the tags decides. The pattern never backtracks over more than a bounded number of characters, so that
megabytes of hostile tags cost linear time.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from assay.tasks import FormatSpec, FormatTask

from sandboxes.base import Sandboxes
from verifiers.base import Failure, Judgement, Verifier

END_OF_TURN = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|call|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<｜end▁of▁sentence｜>",
    "<eos>",
    "</s>",
)
"""Tokens that end a turn; serving stacks leave them in the text or not, so they are no part of the form."""

_STRIDE = 4096

# Inside a class of a pattern: Unicode's default-ignorable code points, which are drawn as nothing, and its spaces.
_IGNORABLE = (
    "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f"
    "\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U000e0fff"
)
_SPACES = "\\x1c-\\x1f\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u2800\\u3000"
# And noncharacters; the pattern blank of Braille shows nothing either.
_INVISIBLE = re.compile(rf"[{_IGNORABLE}\u2800\ufdd0-\ufdef]")


class _Tag(NamedTuple):
    """One tag of the text."""

    name: str
    closing: bool
    exact: bool
    """Written as `<name>` or `</name>`, with no space, attribute or other case."""
    start: int
    end: int


def score_format(spec: FormatSpec, completion: str) -> tuple[float, str]:
    """Score the form of a completion.

    Args:
        spec: The form that is asked for.
        completion: What the model wrote, without its prompt.

    Returns:
        The score, 1.0 or 0.0, and a reason: `well_formed` or what is wrong first, reading from the start.
    """
    reason = _check(spec, completion, _end_of_text(completion))
    return (1.0 if reason == "well_formed" else 0.0), reason


def _check(spec: FormatSpec, text: str, end: int) -> str:
    if _blank(text, 0, end):
        return "empty_completion"
    expected = _expected_tags(spec)
    found: list[_Tag] = []
    for tag in _tags(spec, text, end):
        if not tag.exact:
            return "malformed_tag"
        if len(found) == len(expected) or (tag.name, tag.closing) != expected[len(found)]:
            return _misplaced(spec, text, found, tag)
        found.append(tag)
    if len(found) < len(expected):
        return _missing(spec, *expected[len(found)])
    return _check_parts(spec, text, end, found)


def _expected_tags(spec: FormatSpec) -> list[tuple[str, bool]]:
    """Return the one allowed sequence of (name, closing)."""
    think = spec.think_tag
    tags = [(think, True)] if spec.think_prefilled else [(think, False), (think, True)]
    if spec.answer_tag is not None:
        tags += [(spec.answer_tag, False), (spec.answer_tag, True)]
    return tags


def _misplaced(spec: FormatSpec, text: str, found: list[_Tag], tag: _Tag) -> str:
    """Name what is wrong with a tag that stands where another one, or none, should."""
    is_think = tag.name == spec.think_tag
    open_tag = _open_tag(spec, found)
    if open_tag is not None and not tag.closing:
        return "unclosed_think" if open_tag == spec.think_tag and not is_think else "nested_tags"
    if open_tag is not None:
        return "mismatched_tag"
    if any(earlier.name == tag.name for earlier in found):
        return "repeated_tags"
    if tag.closing:
        return "unopened_think" if is_think else "unopened_answer"
    return "wrong_order" if f"<{spec.think_tag}>" in text[tag.end :] else "no_think_tag"


def _open_tag(spec: FormatSpec, found: list[_Tag]) -> str | None:
    """Return the name of the part that is open after the tags found so far."""
    if not found:
        return spec.think_tag if spec.think_prefilled else None
    return None if found[-1].closing else found[-1].name


def _missing(spec: FormatSpec, name: str, closing: bool) -> str:
    if name == spec.think_tag:
        return "unclosed_think" if closing else "no_think_tag"
    return "unclosed_answer" if closing else "no_answer_tag"


def _check_parts(spec: FormatSpec, text: str, end: int, tags: list[_Tag]) -> str:
    """Check what stands in, before, between and after the right sequence of tags."""
    think_start = 0 if spec.think_prefilled else tags.pop(0).end
    before_end = 0 if spec.think_prefilled else think_start - len(f"<{spec.think_tag}>")
    think_close = tags.pop(0)
    if not spec.allow_empty_think and _blank(text, think_start, think_close.start):
        return "empty_think"
    answer_start, answer_end = (tags[0].end, tags[1].start) if tags else (think_close.end, end)
    if _blank(text, answer_start, answer_end):
        return "empty_answer"
    if spec.strict:
        gaps = [(0, before_end)]
        if tags:
            gaps += [(think_close.end, tags[0].start), (tags[1].end, end)]
        if not all(text[start:stop].isspace() or start == stop for start, stop in gaps):
            return "text_outside"
    return "well_formed"


def _tags(spec: FormatSpec, text: str, end: int) -> Iterator[_Tag]:
    names = tuple(name for name in (spec.answer_tag, spec.think_tag) if name is not None)
    return tags_named(names, text, end, ignore_case=spec.ignore_case)


def tags_named(names: tuple[str, ...], text: str, end: int, *, ignore_case: bool = False) -> Iterator[_Tag]:
    """Yield, in order, everything before `end` that a reader could take for a tag of one of the names."""
    for match in _tag_pattern(names).finditer(text, 0, end):
        assert match.lastgroup is not None
        name, closing = names[int(match.lastgroup[1:])], bool(match["slash"])
        plain = f"</{name}>" if closing else f"<{name}>"
        written = match[0]
        exact = written.lower() == plain.lower() if ignore_case else written == plain
        yield _Tag(name, closing, exact, match.start(), match.end())


@lru_cache(maxsize=64)
def _tag_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Match a tag of these names, exact or sloppy: `< think >`, `<THINK>`, `<think mode="x">`, `<//think/ >`.

    No part of it passes a `<`, so that all matches together read the text a bounded number of times.
    """
    hidden = f"[{_IGNORABLE}]{{0,8}}+"
    blank = rf"\s{_SPACES}{_IGNORABLE}"
    spelled = [hidden.join(re.escape(char) for char in name) for name in names]
    alternatives = "|".join(f"(?P<n{position}>{name})" for position, name in enumerate(spelled))
    pattern = rf"<[{blank}]*+(?P<slash>/)?[/{blank}]*+(?:{alternatives})(?:[^\w.:<>-][^<>]*+)?+>"
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def _end_of_text(text: str) -> int:
    """Return where the text ends when white space and end-of-turn tokens at its very end are left out."""
    end = len(text)
    while True:
        while end > 0 and text[max(0, end - _STRIDE) : end].isspace():
            end = max(0, end - _STRIDE)
        while end > 0 and text[end - 1].isspace():
            end -= 1
        token = next((token for token in END_OF_TURN if text.endswith(token, 0, end)), None)
        if token is None:
            return end
        end -= len(token)


def _blank(text: str, start: int, end: int) -> bool:
    """Whether nothing that a reader could see stands between the positions; a token that ends a turn is no content."""
    if not any(_visible(text[index]) for index in range(start, end)):
        return True
    part = text[start:end]
    if not any(token in part for token in END_OF_TURN):
        return False
    for token in END_OF_TURN:
        part = part.replace(token, " ")
    return not any(map(_visible, part))


def _visible(char: str) -> bool:
    if char.isspace() or _INVISIBLE.match(char) or ord(char) & 0xFFFE == 0xFFFE:
        return False
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co"}


class FormatVerifier(Verifier[FormatTask]):
    """Scores only the form of a completion; it has no accuracy."""

    name: ClassVar[str] = "format"
    version: ClassVar[str] = "1"
    description: ClassVar[str] = "The completion is reasoning in one tag, then the answer in another, and nothing else."
    batch_size: ClassVar[int] = 256
    example: ClassVar[dict[str, Any]] = {
        "verifier": "format",
        "completion": "<think>2+2 is 4</think>\n<answer>4</answer>",
    }
    task_type = FormatTask

    def grade(self, tasks: Sequence[FormatTask], sandboxes: Sandboxes) -> Iterator[Judgement | Failure]:  # noqa: ARG002
        """Yield one judgement per task; nothing is run, so no sandbox is used and nothing fails."""
        for task in tasks:
            score, reason = score_format(task.options, task.completion)
            yield Judgement(reason=reason, format=score)
