"""Finding the program in what a model wrote. Linear in its length; nothing is parsed here.

Fences follow CommonMark (backticks or tildes, closed by at least as many, indented ones too), with two concessions to
models: a fence tagged as Python starts a new block even when the one before was left open, and a lone closing fence
after code, as when the prompt held the opening one, closes that code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from verifiers.format_tags import END_OF_TURN

Rule = Literal["auto", "last_fence", "first_fence", "raw"]

PYTHON_TAGS = frozenset({"python", "python3", "py", "py3", "python2"})
"""Tags of fenced blocks of Python."""
_FENCE = re.compile(r"^\ufeff?([ \t]*)(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_TAG = re.compile(r"[A-Za-z0-9_+#-]+")
_CODE_LINE = re.compile(
    r"[ \t]*(?:(?:def|class|async|import|from|if|for|while|with|try|return)\b|@\w|#|[\w.\[\], ]{1,80}=[^=]|\w+\()"
)
_THINK_END, _ANSWER, _ANSWER_END = "</think>", "<answer>", "</answer>"
_MAX_CLOSING_INDENT = 3
_MOST_FENCES_IN_TEXT = 8
"""Fences inside one triple-quoted text of a program that are looked past."""
_MOST_TAGS_IN_TEXT = 16
"""Tags in a program's text that are looked at one by one, so that many cost no more than linear time."""
_TRIPLE_QUOTES = ('"""', "'''")
_BYTE_ORDER_MARK = "\ufeff"
_DEFINED = re.compile(r"^(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_USAGE_LINE = re.compile(r"(?:assert\b|print\(|#|[ \t)\]}]|>>>|\w+[ \t]*=[ \t]*[-\[({\"'\d])")
_INPUT = re.compile(r"\binput\(|\bstdin\b|\bimport\b|\bopen\(")


@dataclass(frozen=True, slots=True)
class Program:
    """The program text that was found."""

    text: str
    source: str
    """`fence`, `unclosed_fence`, `before_fence` (a lone closing one), `answer` (all of the tag), `text` or `raw`."""
    start: int
    """Offset of its first character in the completion."""
    end: int
    """Offset after its last one."""


@dataclass(frozen=True, slots=True)
class _Block:
    tag: str
    fence_start: int
    start: int
    end: int
    indent: int
    closed: bool


def find_program(completion: str, rule: Rule, tags: frozenset[str] = PYTHON_TAGS) -> Program | None:
    """Return the program by the rule, or None when there is none.

    `raw`: the whole completion. `first_fence`, `last_fence`: that block, whatever its tag, of those that are not empty.
    `auto`: after the last `</think>`, and inside the last `<answer>` there if there is one: the last block tagged as
    the language (`tags`), else the last untagged one, else the last one if all have the same tag; without any fence,
    the text itself.
    """
    if rule == "raw":
        return _slice(completion, 0, len(completion), "raw")
    if rule == "auto":
        return _find_final(completion, tags)
    blocks = _filled(completion, _blocks(completion, 0, len(completion), tags))
    return _of_block(completion, blocks[0 if rule == "first_fence" else -1]) if blocks else None


def _find_final(completion: str, tags: frozenset[str]) -> Program | None:
    start, end, source = _final_part(completion, tags)
    blocks = list(_blocks(completion, start, end, tags))
    if not blocks:
        return _slice(completion, start, end, source)
    if _is_lone_closing_fence(completion, start, blocks):
        return _slice(completion, start, blocks[0].fence_start, "before_fence")
    filled = _filled(completion, blocks)
    tagged = [block for block in filled if block.tag in tags]
    untagged = [block for block in filled if not block.tag]
    if tagged or untagged:
        last = _last_program(completion, tagged or untagged) if tags is PYTHON_TAGS else (tagged or untagged)[-1]
        return _of_block(completion, last)
    return _of_block(completion, filled[-1]) if len({block.tag for block in filled}) == 1 else None


def _last_program(completion: str, blocks: list[_Block]) -> _Block:
    """Return the last block that is not mere usage (calls printed or asserted) of what an earlier one defines."""
    defining, names = None, set[str]()
    for block in blocks[:-1]:
        defined = _DEFINED.findall(completion, block.start, block.end)
        if defined:
            defining, names = block, names | set(defined)
    text = completion[blocks[-1].start : blocks[-1].end]
    lines = [line for line in text.split("\n") if line.strip()]
    usage = all(map(_USAGE_LINE.match, lines)) and not _INPUT.search(text)
    return defining if defining and usage and names & set(re.findall(r"\w+", text)) else blocks[-1]


def _final_part(completion: str, tags: frozenset[str]) -> tuple[int, int, str]:
    """Return where the answer stands, and what to call it: after the reasoning, inside the last answer tag."""
    end = _before_end_of_turn(completion)
    start = 1 if completion.startswith(_BYTE_ORDER_MARK) else 0
    programs = _programs(completion, start, end, tags)
    closing = _last_outside(completion, _THINK_END, start, end, programs)
    start = start if closing < 0 else closing + len(_THINK_END)
    opening = _last_outside(completion, _ANSWER, start, end, programs)
    if opening < 0:
        return start, end, "text"
    start = opening + len(_ANSWER)
    closing = completion.find(_ANSWER_END, start, end)
    for block in _programs(completion, start, end, tags):
        if block.start <= closing < block.end:
            closing = completion.find(_ANSWER_END, block.end, end)
    return start, end if closing < 0 else closing, "answer"


def _programs(completion: str, start: int, end: int, tags: frozenset[str]) -> list[_Block]:
    return [b for b in _blocks(completion, start, end, tags) if b.closed and b.tag in tags]


def _last_outside(completion: str, tag: str, start: int, end: int, programs: list[_Block]) -> int:
    """Return where a tag stands last, but not as a text inside a program after which no other program follows."""
    found = completion.rfind(tag, start, end)
    last = programs[-1] if programs else None
    for _ in range(_MOST_TAGS_IN_TEXT):
        if last is None or not last.start <= found < last.end or not _is_in_text(completion, last, found):
            return found
        found = completion.rfind(tag, start, found)
    return completion.rfind(tag, start, last.start) if last is not None else found


def _is_in_text(completion: str, block: _Block, position: int) -> bool:
    """Whether a position in a block is, as far as its line and the triple quotes before tell, in a text or comment."""
    line = completion[completion.rfind("\n", block.start, position) + 1 : position]
    return any(sign in line for sign in "\"'#") or any(
        completion.count(quotes, block.start, position) % 2 for quotes in _TRIPLE_QUOTES
    )


def _before_end_of_turn(completion: str) -> int:
    """Return where the completion ends without the end-of-turn tokens that serving stacks leave in the text."""
    end = len(completion)
    while True:
        trimmed = end
        while trimmed and completion[trimmed - 1].isspace():
            trimmed -= 1
        token = next((token for token in END_OF_TURN if completion.endswith(token, 0, trimmed)), None)
        if token is None:
            return end
        end = trimmed - len(token)


def _is_lone_closing_fence(completion: str, start: int, blocks: list[_Block]) -> bool:
    """Whether the only fence closes the text before it, rather than opening a block after it."""
    (block, *others) = blocks
    before = completion[start : block.fence_start]
    if others or block.closed or block.tag or not before.strip():
        return False
    after = completion[block.start : block.end]
    return not after.strip() or (_starts_like_code(before) and not _starts_like_code(after))


def _starts_like_code(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip()), "")
    return _CODE_LINE.match(first) is not None


def _blocks(completion: str, start: int, end: int, tags: frozenset[str]) -> Iterator[_Block]:
    """Yield the fenced blocks between two offsets, the last one perhaps not closed."""
    opened: re.Match[str] | None = None
    region = completion[start:end]  # so that what follows a tag on its line stands at the start of a line
    fences = list(_FENCE.finditer(region))
    in_text = 0  # fences up to this one are lines of a program's text
    for number, fence in enumerate(fences):
        tag = _tag(fence)
        if number < in_text:
            continue
        if opened is None:
            opened = fence if tag is not None else None
        elif _closes(fence, opened):
            if (
                tags is PYTHON_TAGS
                and _tag(opened) in tags
                and (real := _end_after_text(region, opened, fences, number)) is not None
            ):
                in_text = real
                continue
            yield _block(opened, start, fence.start(), closed=True)
            opened = None
        elif tag in tags and len(fence[1]) <= len(opened[1]):
            yield _block(opened, start, fence.start(), closed=False)
            opened = fence
    if opened is not None:
        yield _block(opened, start, len(region), closed=False)


def _end_after_text(region: str, opened: re.Match[str], fences: list[re.Match[str]], number: int) -> int | None:
    """Return which fence closes the block instead, when this one is a line of a text in triple quotes."""
    for quotes in _TRIPLE_QUOTES:
        if region.count(quotes, opened.end(), fences[number].start()) % 2 == 0:
            continue
        begin, odd = fences[number].start(), True
        for later in range(number + 1, min(number + 1 + _MOST_FENCES_IN_TEXT, len(fences))):
            odd ^= region.count(quotes, begin, fences[later].start()) % 2 == 1
            begin = fences[later].start()
            if _tag(fences[later]) in PYTHON_TAGS and not odd:
                break
            if not odd and _closes(fences[later], opened):
                return later
    return None


def _tag(fence: re.Match[str]) -> str | None:
    """Return the language of an opening fence, empty when it names none; None when it cannot open a block."""
    info = fence[3]
    if fence[2][0] == "`" and "`" in info:
        return None  # ```code``` on one line
    found = _TAG.search(info)
    return found[0].lower() if found else ""


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    same = fence[2][0] == opened[2][0] and len(fence[2]) >= len(opened[2])
    return same and not fence[3].strip() and len(fence[1]) <= len(opened[1]) + _MAX_CLOSING_INDENT


def _block(opened: re.Match[str], offset: int, end: int, *, closed: bool) -> _Block:
    start = min(opened.end() + 1, end)  # after the line's end
    return _Block(_tag(opened) or "", offset + opened.start(), offset + start, offset + end, len(opened[1]), closed)


def _filled(completion: str, blocks: Iterator[_Block] | list[_Block]) -> list[_Block]:
    return [block for block in blocks if completion[block.start : block.end].strip()]


def _of_block(completion: str, block: _Block) -> Program:
    text = completion[block.start : block.end].removeprefix(_BYTE_ORDER_MARK)
    if block.indent:
        text = re.sub(rf"^[ \t]{{1,{block.indent}}}", "", text, flags=re.MULTILINE)
    return Program(text, "fence" if block.closed else "unclosed_fence", block.start, block.end)


def _slice(completion: str, start: int, end: int, source: str) -> Program | None:
    start += completion.startswith(_BYTE_ORDER_MARK, start, end)
    text = completion[start:end]
    return Program(text, source, start, end) if text.strip() else None
