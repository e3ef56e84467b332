"""Brings short answers to one wording, as question answering compares them.

After SQuAD's evaluation script (Rajpurkar et al. 2016): lower case, no punctuation, no articles, single spaces. It
keeps what that loses and what changes an answer: point and sign of a number, the end of `C++`, a letter `A` at the end.
"""

import re
import unicodedata
from collections import Counter

_SEPARATOR = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_KEPT = re.compile(r"(?<=\d)\.(?=\d)|(?<![\w.])[-−](?=\.?\d)|(?<=[a-z])[+#]|(?<=\+)\+|(?<![\w.])\.(?=\d)")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b(?=\s+\S)")
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_DECISIVE = frozenset({"yes", "no", "noanswer"})


def normalise(text: str) -> str:
    """Return the one wording of an answer; empty only where there is nothing but punctuation and space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    folded = _SEPARATOR.sub("", folded)
    kept = {match.start() for match in _KEPT.finditer(folded)}
    spaced = "".join(
        char if position in kept or not _is_punctuation(char) else _replacement(char)
        for position, char in enumerate(folded)
    )
    spaced = " ".join(spaced.replace("−", "-").split())
    bare = " ".join(_ARTICLE.sub(" ", spaced).split())
    return bare or spaced


def f1(answer: str, reference: str) -> float:
    """Return the F1 of the words of two normalised texts, each counted as often as it stands there.

    An answer that is yes or no where the reference is not, or the other way round, gets 0, as in HotpotQA (Yang et al.
    2018). Chinese and Japanese characters count as words.
    """
    if answer == reference:
        return 1.0
    if answer in _DECISIVE or reference in _DECISIVE:
        return 0.0
    given, wanted = Counter(_TOKEN.findall(answer)), Counter(_TOKEN.findall(reference))
    common = (given & wanted).total()
    return 2 * common / (given.total() + wanted.total()) if common else 0.0


def _is_punctuation(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" or char in "$+<=>^`|~"


def _replacement(char: str) -> str:
    """Return what a mark becomes: a dash parts words, others vanish."""
    return " " if char in "-–—/_" else ""
