"""Questions whose choices are given: an answer may be the letter, the text, or both."""

import re

from verifiers.math.plain import Written, decide, read_choice, write

_FIRST_LETTER = ord("A")
_TEXT = re.compile(r"\\text ?\{([^{}]*)\}")


def with_choices(references: list[Written], choices: list[Written]) -> list[Written]:
    """Return the references with each that is a choice's letter or text as the letter, and where it is short the text.

    A text that only the sandbox could read is left to `as_choice`, since it may be a sentence.
    """
    written: list[Written] = []
    for reference in references:
        number = _number_of(reference, choices)
        if number is None:
            written.append(reference)
            continue
        written.append(_letter(number, reference))
        if choices[number].read_by_eye:
            written.append(choices[number])
    return list(dict.fromkeys(written))


def as_choice(answer: Written, choices: list[Written]) -> Written | None:
    """Return the answer, or the letter of the choice whose text it is.

    Returns None when it contradicts itself: the letter of one choice with the text of another, `(B) 13` where 13 is C.
    """
    chosen = read_choice(answer)
    if chosen is None:
        meant = [number for number, choice in enumerate(choices) if _is_text(choice, answer)]
        return _letter(meant[0], answer) if len(meant) == 1 else answer
    letter, content = chosen
    said = write(content, ignore_units=answer.ignore_units)
    meant = [number for number, choice in enumerate(choices) if content and _same(choice, said)]
    return answer if not meant or ord(letter) - _FIRST_LETTER in meant else None


def _number_of(reference: Written, choices: list[Written]) -> int | None:
    chosen = read_choice(reference)
    if chosen is not None and ord(chosen[0]) - _FIRST_LETTER < len(choices):
        return ord(chosen[0]) - _FIRST_LETTER
    return next((number for number, choice in enumerate(choices) if _same(choice, reference)), None)


def _letter(number: int, like: Written) -> Written:
    return write(chr(_FIRST_LETTER + number), ignore_units=like.ignore_units)


def _same(choice: Written, said: Written) -> bool:
    return _is_text(choice, said) or decide(choice, said) is True


def _is_text(choice: Written, said: Written) -> bool:
    return _bare(choice) == _bare(said)


def _bare(written: Written) -> str:
    return " ".join(_TEXT.sub(r"\1", written.text).casefold().rstrip(".").split())
