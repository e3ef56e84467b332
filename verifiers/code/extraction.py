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

_PYTHON_TAGS = frozenset({"python", "python3", "py", "py3", "python2"})
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
_TAG = re.compile(r"[A-Za-z0-9_+#-]+")
_CODE_LINE = re.compile(
    r"[ \t]*(?:(?:def|class|async|import|from|if|for|while|with|try|return)\b|@\w|#|[\w.\[\], ]{1,80}=[^=]|\w+\()"
)
_THINK_END, _ANSWER, _ANSWER_END = "</think>", "<answer>", "</answer>"
_MAX_CLOSING_INDENT = 3


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


def find_program(completion: str, rule: Rule) -> Program | None:
    """Return the program by the rule, or None when there is none.

    `raw`: the whole completion. `first_fence`, `last_fence`: that block, whatever its tag, of those that are not empty.
    `auto`: after the last `</think>`, and inside the last `<answer>` there if there is one: the last block tagged as
    Python, else the last untagged one, else the last one if all have the same tag; without any fence, the text itself.
    """
    if rule == "raw":
        return _slice(completion, 0, len(completion), "raw")
    if rule == "auto":
        return _find_final(completion)
    blocks = _filled(completion, _blocks(completion, 0, len(completion)))
    return _of_block(completion, blocks[0 if rule == "first_fence" else -1]) if blocks else None


def _find_final(completion: str) -> Program | None:
    start, end, source = _final_part(completion)
    blocks = list(_blocks(completion, start, end))
    if not blocks:
        return _slice(completion, start, end, source)
    if _is_lone_closing_fence(completion, start, blocks):
        return _slice(completion, start, blocks[0].fence_start, "before_fence")
    filled = _filled(completion, blocks)
    python = [block for block in filled if block.tag in _PYTHON_TAGS]
    untagged = [block for block in filled if not block.tag]
    if python or untagged:
        return _of_block(completion, (python or untagged)[-1])
    return _of_block(completion, filled[-1]) if len({block.tag for block in filled}) == 1 else None


def _final_part(completion: str) -> tuple[int, int, str]:
    """Return where the answer stands, and what to call it: after the reasoning, inside the last answer tag."""
    end = _before_end_of_turn(completion)
    closing = completion.rfind(_THINK_END, 0, end)
    start = 0 if closing < 0 else closing + len(_THINK_END)
    opening = completion.rfind(_ANSWER, start, end)
    if opening < 0:
        return start, end, "text"
    start = opening + len(_ANSWER)
    closing = completion.find(_ANSWER_END, start, end)
    return start, end if closing < 0 else closing, "answer"


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


def _blocks(completion: str, start: int, end: int) -> Iterator[_Block]:
    """Yield the fenced blocks between two offsets, the last one perhaps not closed."""
    opened: re.Match[str] | None = None
    region = completion[start:end]  # so that what follows a tag on its line stands at the start of a line
    for fence in _FENCE.finditer(region):
        tag = _tag(fence)
        if opened is None:
            opened = fence if tag is not None else None
        elif _closes(fence, opened):
            yield _block(opened, start, fence.start(), closed=True)
            opened = None
        elif tag in _PYTHON_TAGS and len(fence[1]) <= len(opened[1]):
            yield _block(opened, start, fence.start(), closed=False)
            opened = fence
    if opened is not None:
        yield _block(opened, start, len(region), closed=False)


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
    text = completion[block.start : block.end]
    if block.indent:
        text = re.sub(rf"^[ \t]{{1,{block.indent}}}", "", text, flags=re.MULTILINE)
    return Program(text, "fence" if block.closed else "unclosed_fence", block.start, block.end)


def _slice(completion: str, start: int, end: int, source: str) -> Program | None:
    text = completion[start:end]
    return Program(text, source, start, end) if text.strip() else None
