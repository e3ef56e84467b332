"""A verdict in words, short enough for a cell of a table."""

from assay import Verdict

MAX_CHARS = 160


def explain(verdict: Verdict) -> str:
    """Return why the verdict is what it is."""
    if verdict.error is not None:
        return one_line(f"{verdict.error.kind}: {verdict.error.message}")
    return one_line(verdict.reason or "")


def one_line(text: str) -> str:
    """Return the text on one line, cut, with nothing in it that a terminal would act on."""
    cut = text[: 4 * MAX_CHARS]
    words = " ".join(cut.split())
    safe = "".join(character if character.isprintable() else "·" for character in words)
    return safe if len(safe) <= MAX_CHARS else safe[: MAX_CHARS - 1] + "…"
