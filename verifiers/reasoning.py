"""Where the reasoning of a completion ends: what stands in it is no answer."""

from assay.tasks import FormatSpec

from verifiers.format_tags import END_OF_TURN, tags_named


def after_reasoning(completion: str, form: FormatSpec) -> str | None:
    """Return what follows the reasoning, all of it when there is no reasoning tag; None inside unfinished reasoning.

    A tag written sloppily, `<think >` or `<THINK>`, opens and closes like any other. White space and tokens that end a
    turn are taken off the end.
    """
    end, is_open = 0, form.think_prefilled
    for tag in tags_named((form.think_tag,), completion, len(completion)):
        is_open = not tag.closing
        end = tag.end if tag.closing else end
    return None if is_open else without_end_of_turn(completion[end:])


def without_end_of_turn(text: str) -> str:
    """Return the text without white space and tokens that end a turn at its very end."""
    end = len(text.rstrip())
    while token := next((token for token in END_OF_TURN if text.endswith(token, 0, end)), None):
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
    return text[:end]
