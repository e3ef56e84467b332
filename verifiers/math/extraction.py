r"""Finds the answer in a completion.

Every rule is linear in the completion's length: patterns have bounded repetitions, and boxes are read in one pass with
a stack. What stands in the reasoning is no answer: only the text after the last closing reasoning tag is searched, and
a completion that ends inside its reasoning has none.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from assay.tasks import FormatSpec, MathOptions

from verifiers.math.normalise import MAX_CHARACTERS, unbox
from verifiers.math.plain import decide, write
from verifiers.reasoning import after_reasoning


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, or why nothing was."""

    text: str | None
    source: str
    """The rule that found it; with no text, why there is none: `absent`, `unfinished_reasoning`, `unclosed`, `empty`
    or `conflicting`."""


_Rule = Callable[[str, FormatSpec], "list[str] | None"]
"""Returns the answers found in the order of the text; None when the last one is cut off."""

_BOX_TOKEN = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s{0,20}(?P<brace>\{)?|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"(?:[-+]?[\d.,]{1,200}|\\d?frac\s?\d\s?\d|[A-Za-z](?![A-Za-z]))")

_MARKER = re.compile(r"^[ \t>*]{0,8}(?:####|\**A:)[ \t*]{0,8}(?P<answer>\S[^\n]{0,4000})$", re.MULTILINE)
_OTHER_CHOICE = re.compile(r"A:[^\n]{0,4000}\s[ \t>*]{0,6}B[:.)]")  # `A: 3`, `B: 4`: the choices of a question
_NEXT_PROBLEM = re.compile(r"^[ \t>*#]{0,8}(?:Question|Problem|Q)\s?\d{0,4}\s?:", re.MULTILINE | re.IGNORECASE)
_ANSWER_LIKE = re.compile(r"[-+−–]?[$€£¥\\(\[{.\d]|[A-Za-z](?![A-Za-z])|[\w'’-]{1,30}[.!]?$")

_PHRASE = re.compile(
    r"(?:(?:final\s{1,3}|correct\s{1,3}|right\s{1,3})?\banswers?\b(?:\s{1,3}(?:to|of|for)\s[^\n.:]{1,120}?)?\**"
    r"(?:\s{0,3}(?:is|are|was|(?:would|should|must|will)\s{1,2}be|equals|comes\s{1,2}(?:out\s{1,2})?to|=|:)\**){1,2}"
    r"|(?:最终|正确|最后)?(?:答案|结果)\**\s?(?:应该|应|就|即)?[是为：:]{1,2}\**|[故应]选择?[：:]?\**|正答[は：:]{1,2}"
    r"|(?:^|(?<=\n))[ \t#*]{0,8}(?:final\s)?answer[ \t*]{0,4}\n"
    r"|(?<![가-힣])(?:정답|최종\s?답변?|해답|답변?)\**\s?(?:은|는|:|：)\**)\s{0,4}",
    re.IGNORECASE,
)
_MATH_OPENING = {"$$": "$$", "$": "$", r"\(": r"\)", r"\[": r"\]", "**": "**"}
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]|\n|입니다|이다|이에요|예요|이므로|이며")
_AFTERTHOUGHT = re.compile(
    r",?\s(?:because|since|as|so|which|where|when|after|given)\s|[，,]\s?(?:因为|由于|所以|其中|왜냐하면)",
    re.IGNORECASE,
)
_MORE_FORMULAS = re.compile(
    r"\s{0,3}(?:[,;(/&]|and|or|\\text)\s{0,3}"
    r"(?:(?:and|or|else|maybe|perhaps|possibly|probably|alternatively|also|even|it|he|she|could|might|may|be|is|"
    r"either|both|else|then)[\s,]{1,3}){0,6}(?:\$|\\\(|\*\*|[-+]?\d)",
    re.IGNORECASE,
)
_MAX_PHRASE = 4000
_TAIL = 4000  # a text whose end holds no number has none that is an answer

_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?\$?(?:\d{1,3}(?:,\d{3}){1,20}(?!\d)|\d{1,400})(?:\.\d{1,400})?(?:\s?/\s?\d{1,400})?%?"
)


def find_answer(
    completion: str, options: MathOptions, form: FormatSpec | None, of_pattern: list[str] | None = None
) -> Found:
    """Find the answer.

    Args:
        completion: What the model wrote.
        options: Where to look, and which of several answers counts.
        form: The task's form, where it has one: the names of its tags, and whether the completion starts inside the
            reasoning.
        of_pattern: what the task's own pattern found, where it has one.
    """
    form = form or FormatSpec()
    text = after_reasoning(completion, form)
    if text is None:
        return Found(None, "unfinished_reasoning")
    reason = "absent"
    for source in options.sources:
        answers = (of_pattern or []) if source == "pattern" else _RULES[source](text, form)
        if answers is None and options.boxes != "first":
            return Found(None, "unclosed")
        filled = [answer for answer in answers or [] if answer.strip()]
        if filled:
            return _choose(filled, options.boxes, source)
        if answers:
            reason = "empty"
    return Found(None, reason)


def _choose(answers: list[str], policy: str, source: str) -> Found:
    if policy == "unanimous" and not all(_agree(answer, answers[-1]) for answer in set(answers)):
        return Found(None, "conflicting")
    if policy == "all":
        return Found(", ".join(dict.fromkeys(answers)), source)
    return Found(answers[0] if policy == "first" else answers[-1], source)


def _agree(one: str, other: str) -> bool:
    """Whether two answers are the same text or the same plain number: `0.5` and `1/2` contradict nothing."""
    if " ".join(one.split()) == " ".join(other.split()):
        return True
    if max(len(one), len(other)) > MAX_CHARACTERS:
        return False
    left, right = (write(side, ignore_units=True) for side in (one, other))
    return left.text == right.text or decide(left, right) is True


def boxes(text: str, _form: FormatSpec) -> list[str] | None:
    r"""Return the contents of the outermost complete boxes, and of `\boxed 5`; None when the last box is left open."""
    found: list[tuple[int, str]] = []
    opened: list[tuple[int, int] | None] = []  # for every open brace: where its box starts and its content does
    last_start = -1
    for match in _BOX_TOKEN.finditer(text):
        sign = match[0]
        if match["brace"]:
            opened.append((match.start(), match.end()))
            last_start = match.start()
        elif sign == "{":
            opened.append(None)
        elif sign == "}":
            box = opened.pop() if opened else None
            if box is not None:
                while found and found[-1][0] > box[0]:
                    found.pop()  # a box within this one
                found.append((box[0], text[box[1] : match.start()]))
        elif sign.startswith((r"\boxed", r"\fbox")) and (bare := _BARE_BOX.match(text, match.end())):
            found.append((match.start(), bare[0].rstrip(".,")))
            last_start = match.start()
    complete_start = found[-1][0] if found else -1
    if any(box is not None and box[0] == last_start > complete_start for box in opened):
        return None
    return [content for _, content in found]


def _answer_tags(text: str, form: FormatSpec) -> list[str] | None:
    """Return what the answer tags hold; None when the last one is left open."""
    name = form.answer_tag or "answer"
    opening, closing = f"<{name}>", f"</{name}>"
    found: list[str] = []
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start)
        if end < 0:
            return None
        inner = text[start + len(opening) : end]
        found.append(_inside(inner[inner.rfind(opening) + len(opening) :] if opening in inner else inner))
        position = end + len(closing)
    return found


def _inside(content: str) -> str:
    """Take a box, else what follows an answer phrase, out of an answer tag's content; else all of it."""
    for rule in (boxes, _phrases):
        answers = rule(content, FormatSpec())
        if answers:
            return answers[-1]
    return content.strip()


def _markers(text: str, _form: FormatSpec) -> list[str]:
    """Return what follows `####` or `A:` on a line, up to where an invented next problem starts."""
    found: list[str] = []
    searched = 0
    for match in _MARKER.finditer(text):
        if found and _NEXT_PROBLEM.search(text, searched, match.start()):
            break
        searched = match.end()
        answer = match["answer"].strip().strip("*").strip()
        if _ANSWER_LIKE.match(answer) and not _OTHER_CHOICE.search(text, match.start(), match.end() + 12):
            found.append(answer)
    return found


def _phrases(text: str, _form: FormatSpec) -> list[str]:
    """Return what answer phrases are followed by, each up to the next phrase."""
    matches = list(_PHRASE.finditer(text))
    starts = [match.start() for match in matches[1:]] + [len(text)] * bool(matches)
    answers = [
        _phrase_answer(text, match.end(), min(following, match.end() + _MAX_PHRASE))
        for match, following in zip(matches, starts, strict=True)
    ]
    return [answer for answer in answers if answer]


def _phrase_answer(text: str, start: int, end: int) -> str:
    """Return the one formula, or the rest of the sentence, that follows an answer phrase."""
    opening = next((sign for sign in _MATH_OPENING if text.startswith(sign, start, end)), None)
    if opening is not None:
        inner = start + len(opening)
        close = text.find(_MATH_OPENING[opening], inner, end)
        rest = text[close + len(opening) : min(end, close + len(opening) + 40)] if close >= 0 else ""
        # `$18` alone is money; `$2$ and $3$` is more than one formula.
        if close >= 0 and not _MORE_FORMULAS.match(rest):
            return unbox(text[inner:close].strip())
    stop = _SENTENCE_END.search(text, start, end)
    sentence = text[start : stop.start() if stop else end]
    return unbox(_AFTERTHOUGHT.split(sentence, maxsplit=1)[0].strip().strip("*").strip())


def _last_numbers(text: str, _form: FormatSpec) -> list[str]:
    return [match[0] for match in _NUMBER.finditer(text)]


def _last_expressions(text: str, _form: FormatSpec) -> list[str]:
    """Return the last formula between signs of mathematics or the last number, whichever ends later."""
    found: list[tuple[int, str]] = []
    for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
        end = text.rfind(closing)
        start = text.rfind(opening, 0, end) if end > 0 else -1
        if start >= 0 and (inner := text[start + len(opening) : end].strip("$ \n")):
            found.append((end + len(closing), inner))
    skipped = max(0, len(text) - _TAIL)
    if numbers := list(_NUMBER.finditer(text, skipped)):
        found.append((numbers[-1].end(), numbers[-1][0]))
    return [max(found)[1]] if found else []


_RULES: dict[str, _Rule] = {
    "boxed": boxes,
    "answer_tag": _answer_tags,
    "marker": _markers,
    "phrase": _phrases,
    "last_expression": _last_expressions,
    "last_number": _last_numbers,
}
