"""Rewards and penalties from a completion's length, repetitions and language, as published recipes define them.

Lengths are in tokens, and only the trainer knows them. Add a penalty to the reward; keep accuracies as they are, since
filters and pass@k are computed on those.
"""

import math
import re
import unicodedata
from collections.abc import Hashable, Sequence


def soft_overlong_punishment(length: int, max_length: int, cache: int) -> float:
    """Return a penalty between 0 and -1 that grows over the last `cache` tokens before `max_length`.

    DAPO (arXiv 2503.14476, equation 13): 0 up to max_length - cache; ((max_length - cache) - length) / cache up to
    max_length; -1 beyond it.

    Args:
        length: tokens of the completion.
        max_length: L_max, 20480 in the paper.
        cache: L_cache, 4096 in the paper.

    Raises:
        ValueError: length is negative, or not 0 < cache <= max_length.
    """
    _check_length(length)
    if not 0 < cache <= max_length:
        raise ValueError(f"cache is {cache}; it must be more than 0 and at most max_length, which is {max_length}")
    if length > max_length:
        return -1.0
    return min(0.0, (max_length - cache - length) / cache)


def overlong_mask(lengths: Sequence[int], max_length: int, finished: Sequence[bool] | None = None) -> list[bool]:
    """Return which completions count in the loss: overlong filtering (DAPO, arXiv 2503.14476, section 3.4).

    A truncated completion may have been right so far, so its reward is noise. Where `finished` tells whether the
    end-of-sequence token came, that decides; otherwise a completion of max_length tokens or more counts as truncated.

    Raises:
        ValueError: a length is negative, or the two sequences differ in length.
    """
    for length in lengths:
        _check_length(length)
    if finished is None:
        return [length < max_length for length in lengths]
    if len(finished) != len(lengths):
        raise ValueError(f"{len(lengths)} lengths, but finished has {len(finished)} entries")
    return [bool(end) and length <= max_length for length, end in zip(lengths, finished, strict=True)]


def cosine_length_reward(
    length: int,
    correct: bool,
    *,
    max_length: int,
    correct_range: tuple[float, float] = (1.0, 0.5),
    wrong_range: tuple[float, float] = (-1.0, -0.5),
) -> float:
    """Return a reward that moves along a half cosine from length 0 to max_length.

    Yeo et al. (arXiv 2502.03373): CosFn(t, T, a, b) = b + (a - b)/2 · (1 + cos(πt/T)), from a
    at length 0 to b at T. Right answers are worth more when short; wrong ones cost less when long. Lengths beyond
    max_length count as max_length. The defaults are those of TRL's `get_cosine_scaled_reward`.

    Args:
        length: tokens of the completion.
        correct: whether the answer is right.
        max_length: T.
        correct_range: reward of a right answer at length 0 and at max_length.
        wrong_range: reward of a wrong answer at length 0 and at max_length.

    Raises:
        ValueError: length is negative, or max_length is not positive.
    """
    _check_length(length)
    if max_length <= 0:
        raise ValueError(f"max_length is {max_length}; it must be positive")
    at_zero, at_end = correct_range if correct else wrong_range
    progress = min(length / max_length, 1.0)
    return at_end + 0.5 * (at_zero - at_end) * (1.0 + math.cos(math.pi * progress))


def group_length_rewards(lengths: Sequence[int], correct: Sequence[bool]) -> list[float]:
    """Return the length reward of each completion of one group, between -0.5 and 0.5.

    Kimi k1.5 (arXiv 2501.12599, section 2.3.3): λ = 0.5 - (length - shortest) / (longest - shortest); λ for a right
    completion, min(0, λ) for a wrong one; all 0 when all lengths are equal.

    Raises:
        ValueError: a length is negative, or the two sequences differ in length.
    """
    if len(lengths) != len(correct):
        raise ValueError(f"{len(lengths)} lengths, but correct has {len(correct)} entries")
    for length in lengths:
        _check_length(length)
    if not lengths or min(lengths) == max(lengths):
        return [0.0] * len(lengths)
    shortest, longest = min(lengths), max(lengths)
    scores = [0.5 - (length - shortest) / (longest - shortest) for length in lengths]
    return [score if right else min(0.0, score) for score, right in zip(scores, correct, strict=True)]


def repetition_penalty(tokens: Sequence[Hashable], ngram: int = 3, max_penalty: float = -1.0) -> float:
    """Return a penalty for repeated n-grams: (1 - distinct / total) · max_penalty, 0 without any n-gram.

    The n-gram repetition penalty of Yeo et al. (arXiv 2502.03373) in TRL's form,
    `get_repetition_penalty_reward`.

    Args:
        tokens: token ids, or words.
        ngram: length n of an n-gram.
        max_penalty: the penalty when nothing but repetition is left; 0 or less.

    Raises:
        ValueError: ngram is less than 1, or max_penalty more than 0.
    """
    if ngram < 1:
        raise ValueError(f"ngram is {ngram}; it must be 1 or more")
    if max_penalty > 0:
        raise ValueError(f"max_penalty is {max_penalty}; a penalty must be 0 or less")
    total = len(tokens) - ngram + 1
    if total < 1:
        return 0.0
    distinct = len({tuple(tokens[start : start + ngram]) for start in range(total)})
    return (1.0 - distinct / total) * max_penalty


_SCRIPTS: dict[str, tuple[str, ...]] = {
    "latin": ("LATIN",),
    "cyrillic": ("CYRILLIC",),
    "greek": ("GREEK",),
    "arabic": ("ARABIC",),
    "hebrew": ("HEBREW",),
    "devanagari": ("DEVANAGARI",),
    "thai": ("THAI",),
    "chinese": ("CJK",),
    "japanese": ("CJK", "HIRAGANA", "KATAKANA"),
    "korean": ("HANGUL", "CJK"),
}
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI")
_NO_LANGUAGE = re.compile(r"```.*?(?:```|\Z)|\$\$.*?\$\$|\$[^$\n]*\$|\\\(.*?\\\)|\\\[.*?\\\]|\\[A-Za-z]+", re.DOTALL)


def language_consistency(text: str, script: str) -> float:
    """Return the share of words that are in the wanted language's script, between 0 and 1; 1 for a text without words.

    DeepSeek-R1 (arXiv 2501.12948, section 2.3.2): the proportion of words of the target language in the reasoning. Told
    by script, which finds the mixing that the paper met (English and Chinese) but not one language of a script from
    another (English from French). Programs in fences, formulas and LaTeX commands are of no language and left out. In
    scripts written without spaces each character is a word.

    Args:
        text: the reasoning.
        script: `latin`, `cyrillic`, `greek`, `arabic`, `hebrew`, `devanagari`, `thai`, `chinese`, `japanese`, `korean`.

    Raises:
        ValueError: the script is unknown.
    """
    if script not in _SCRIPTS:
        raise ValueError(f"unknown script {script!r}; known: {', '.join(_SCRIPTS)}")
    words = _words_by_script(_NO_LANGUAGE.sub(" ", text))
    return sum(word in _SCRIPTS[script] for word in words) / len(words) if words else 1.0


def _words_by_script(text: str) -> list[str]:
    """Return each word's script, by the start of its letters' Unicode names; a change of script ends a word."""
    words: list[str] = []
    current = ""
    for character in text:
        category = unicodedata.category(character)
        if category.startswith("M") and current:
            continue
        if not category.startswith("L"):
            current = ""
            continue
        own = unicodedata.name(character, "UNKNOWN").split()[0]
        if own != current or own in _WITHOUT_SPACES:
            words.append(own)
        current = own
    return words


def _check_length(length: int) -> None:
    if length < 0:
        raise ValueError(f"a length is {length}; lengths must be 0 or more")
