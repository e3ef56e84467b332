"""Brings the writing of an answer to one form, without deciding anything about its mathematics.

Everything here is text to text, in time linear in the (bounded) length. Both sides of a comparison go through the same
function, in the worker process, before the fast path or the sandbox sees them.
"""

import re

MAX_CHARACTERS = 10_000
"""Longer answers are not compared."""

_CHARACTERS = str.maketrans(
    {
        **{chr(0xFF01 + offset): chr(0x21 + offset) for offset in range(94)},  # full-width ASCII
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t\r\n", " "),
        **dict.fromkeys("−–—﹣‒", "-"),
        "×": r"\times ",
        "·": r"\cdot ",
        "⋅": r"\cdot ",
        "∙": r"\cdot ",
        "÷": "/",
        "∕": "/",
        "⁄": "/",
        "∞": r"\infty ",
        "≤": r"\le ",
        "⩽": r"\le ",
        "≥": r"\ge ",
        "⩾": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "±": r"\pm ",
        "∓": r"\mp ",
        "∪": r"\cup ",
        "∩": r"\cap ",
        "∈": r"\in ",
        "∅": r"\emptyset ",
        "ℝ": r"\mathbb{R}",
        "ℤ": r"\mathbb{Z}",
        "ℕ": r"\mathbb{N}",
        "ℚ": r"\mathbb{Q}",
        "ℂ": r"\mathbb{C}",
        "°": r"^\circ ",
        "…": r"\ldots ",
        "′": "'",
        "’": "'",
        "，": ",",
        "、": ",",
        "。": ".",
        "；": ";",
        "：": ":",
        "⟨": r"\langle ",
        "⟩": r"\rangle ",
        "π": r"\pi ",
        "α": r"\alpha ",
        "β": r"\beta ",
        "γ": r"\gamma ",
        "δ": r"\delta ",
        "ε": r"\epsilon ",
        "θ": r"\theta ",
        "λ": r"\lambda ",
        "μ": r"\mu ",
        "ρ": r"\rho ",
        "σ": r"\sigma ",
        "τ": r"\tau ",
        "φ": r"\phi ",
        "ω": r"\omega ",
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_FRACTIONS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5"}
_FRACTIONS |= {"⅘": "4/5", "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8"}

_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_FRACTION_SIGN = re.compile(f"(\\d?)\\s?([{''.join(_FRACTIONS)}])")
_ROOT = re.compile(r"√\s?(?:\(([^()]*)\)|(\d+(?:\.\d+)?|[A-Za-z]))")

_LAYOUT = re.compile(
    r"\\(?:displaystyle|textstyle|limits|nolimits|left|right|[bB]igg?[lrm]?|mathstrut|strut)(?![A-Za-z])\s?"
)
_GROUPED_THOUSANDS = re.compile(r"(?<=\d)(?:\s?\{,\}\s?|,\\!\s?|\\,|\\!|\\ )(?=\d{3}(?!\d))")
_EUROPEAN = re.compile(
    r"(?<![\d.,])(?P<grouped>\d{1,3}(?:\.\d{3}){1,40}|\d{1,4000}(?=,\d))(?:,(?P<decimals>\d{1,4000}))?(?![\d.,]*\d)"
)
_SPACE = re.compile(r"(?<!\\)\\[,;:!> ]|~|\\q?quad(?![A-Za-z])|\\hspace\{[^{}]*\}")
_FRAC = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_LESS = re.compile(r"\\(?:leqslant|leqq|leq|le)(?![A-Za-z])")
_GREATER = re.compile(r"\\(?:geqslant|geqq|geq|ge)(?![A-Za-z])")
_FONT = re.compile(r"\\(?:mathbf|mathit|mathsf|boldsymbol|bm|mathnormal)\s?\{\s?([A-Za-z0-9]+)\s?\}")
_ROMAN_LETTER = re.compile(r"\\(?:mathrm|text|operatorname)\s?\{\s?([eid])\s?\}")
_NUMBER_IN_TEXT = re.compile(r"\\text\s?\{\s?([-+]?[\d.,/]+)\s?\}")
_UNIT_QUOTIENT = re.compile(r"(?<=[A-Za-z])\s?\}\s?([/-])\s?\\text\s?\{\s?(?=[A-Za-z])")
_TEXT_COMMAND = re.compile(r"\\(?:textbf|textit|textrm|textsf|texttt|textnormal|mbox|hbox|mathrm|rm)(?=\s?\{)")
_WRAPPERS = (
    re.compile(r"\\\((.*)\\\)", re.DOTALL),
    re.compile(r"\\\[(.*)\\\]", re.DOTALL),
    re.compile(r"\*\*(.*)\*\*", re.DOTALL),
    re.compile(r"__(.*)__", re.DOTALL),
    re.compile(r"`(.*)`", re.DOTALL),
    re.compile(r'"(.*)"', re.DOTALL),
    re.compile(
        r"\\begin\{(?:equation|align|gather|displaymath)\*?\}(.*)\\end\{(?:equation|align|gather|displaymath)\*?\}"
    ),
)
_DECORATION = re.compile(r"\\(?:textcolor\s?\{[^{}]*\}|color\s?\{[^{}]*\}|underline|uline)\s?\{([^{}]*)\}")
_RUPEES = re.compile(r"^Rs\.? ?(?=\d)")
_LEAD = re.compile(r"^(?:\\text ?\{ ?(?:the |final |correct )*answer is:? ?\} ?|=(?!=) ?)", re.IGNORECASE)
_OPTION = re.compile(r"^(?:\\text ?\{)? ?(?:option|choice) ?\(?([A-J])\)?[.:]? ?\}?$", re.IGNORECASE)
_BAR = re.compile(r"(?<=\.)(\d{0,40})\\bar ?(?:\{ ?(\d{1,40}) ?\}|(\d))")
_MULTIPLE = re.compile(
    r"(?<=\d) ?(?:\\text ?\{)? ?(hundred|thousand|lakh|million|crore|billion|trillion)(?![A-Za-z])"
    r"(?: ?\}|(?P<inside> [a-z]{3,20} ?\}))?(?=$| [a-z]|\\text)"
)
_POWERS = {"hundred": 2, "thousand": 3, "lakh": 5, "million": 6, "crore": 7, "billion": 9, "trillion": 12}
_TRIGONOMETRIC = re.compile(r"(?<![A-Za-z])(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_DEGREES = re.compile(r"(\d{1,20}(?:\.\d{1,20})?|[A-Za-z]|\\[a-z]{2,8} ?) ?\^ ?(?:\\circ(?![A-Za-z])|\{ ?\\circ ?\})")
_UNIT_FRACTION = re.compile(r"\\frac ?\{ ?\\text ?\{([^{}]{1,20})\} ?\} ?\{ ?\\text ?\{([^{}]{1,20})\}(\^\d)? ?\}")
_NO_SOLUTION = re.compile(r"(?:\\text ?\{)? ?(?:no (?:real )?solutions?|(?:the )?empty set) ?\}?", re.IGNORECASE)
_REALS = re.compile(r"(?:\\text ?\{)? ?all real numbers ?\}?", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_END_OF_TURN = re.compile(r"(?:<\|[a-z_]{2,20}\|>|</s>|<eos>|<end_of_turn>)$")


def normalise(text: str, *, decimal_comma: bool = False) -> str:
    r"""Return the answer in the one form that the fast path and the sandbox read.

    Taken off: math delimiters, boxes, Markdown, layout commands, a closing full stop. Unicode signs become their LaTeX
    commands, and money is written `\$`. Units stay. With `decimal_comma`, `1.234,5` becomes `1234.5`.
    """
    text = _plain_signs(text).strip()
    if decimal_comma:
        text = _EUROPEAN.sub(_with_point, text.replace("{,}", ","))
    for _ in range(8):  # wrappers within wrappers; deeper ones are not an honest answer
        before = text
        text = _unwrap(text)
        if text == before:
            break
    text = _GROUPED_THOUSANDS.sub("", text)
    text = text.replace("{,}", ",").replace(r"\%", "%").replace(r"\left.", "").replace(r"\right.", "")
    text = " ".join(_SPACE.sub(" ", _LAYOUT.sub("", text)).split())
    text = _FRAC.sub(r"\\frac", text)
    text = _LESS.sub(r"\\le ", _GREATER.sub(r"\\ge ", text))
    text = _FONT.sub(r" \1 ", _ROMAN_LETTER.sub(r" \1 ", text))
    text = _TEXT_COMMAND.sub(r"\\text", text)
    text = _UNIT_QUOTIENT.sub(r"\1", text)
    text = _NUMBER_IN_TEXT.sub(r"\1", text)
    return " ".join(_words(_angles(text)).split())


def _with_point(match: re.Match[str]) -> str:
    return match["grouped"].replace(".", "") + (f".{match['decimals']}" if match["decimals"] else "")


def _angles(text: str) -> str:
    r"""Write the degrees of an angle that a function is applied to in radians: `\cos 60^\circ`."""
    if not _TRIGONOMETRIC.search(text):
        return text
    return _DEGREES.sub(lambda m: rf"(\frac{{{m[1]} \pi}}{{180}})", text)


def _words(text: str) -> str:
    """Take off what only introduces or decorates an answer, and write words of mathematics as its signs."""
    text = _DECORATION.sub(r"\1", text).replace(r"\pounds", "£").replace(r"\text{\$}", r"\$")
    text = _RUPEES.sub("₹", _LEAD.sub("", text).strip())
    text = _BAR.sub(lambda m: rf"{m[1]}\overline{{{m[2] or m[3]}}}", text)
    text = _UNIT_FRACTION.sub(r"\\text{\1/\2\3}", text)
    text = _MULTIPLE.sub(_multiple, text)
    if option := _OPTION.match(text):
        return option[1]
    if _NO_SOLUTION.fullmatch(text):
        return r"\emptyset"
    return r"\mathbb{R}" if _REALS.fullmatch(text) else text


def _multiple(match: re.Match[str]) -> str:
    unit = (match["inside"] or "").rstrip("} ")
    return rf" \times 10^{{{_POWERS[match[1]]}}}" + (rf"\text{{{unit}}}" if unit else "")


def unbox(text: str) -> str:
    """Return the content of a box that is the whole text, else the text."""
    match = _BOX.match(text)
    if match is None or not text.endswith("}") or not text.startswith("{", match.end()):
        return text
    depth = 0
    for brace in re.finditer(r"\\.|[{}]", text[match.end() :], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            end = match.end() + brace.end()
            return text[match.end() + 1 : end - 1].strip() if end == len(text) else text
    return text


def _plain_signs(text: str) -> str:
    text = _FRACTION_SIGN.sub(_fraction, text)
    text = _ROOT.sub(lambda m: rf"\sqrt{{{m[1] or m[2]}}}", text)
    text = _SUPERSCRIPT_RUN.sub(lambda m: f"^{{{m[0].translate(_SUPERSCRIPTS)}}}", text)
    text = _SUBSCRIPT_RUN.sub(lambda m: f"_{{{m[0].translate(_SUBSCRIPTS)}}}", text)
    return text.translate(_CHARACTERS)


def _fraction(match: re.Match[str]) -> str:
    """Write a fraction sign out; in brackets where what stands around it would take it apart, as in `1/½`."""
    written = _FRACTIONS[match[2]]
    if match[1]:
        return f"{match[1]} {written}"
    before, after = match.string[: match.start()].rstrip()[-1:], match.string[match.end() :].lstrip()[:1]
    is_bound = bool(before) and (before in "/^*÷×·∙⋅∕⁄)}]_" or before.isalnum())
    return f"({written})" if is_bound or _binds(after) else written


def _binds(after: str) -> bool:
    """Whether a character binds what stands before it more tightly than a fraction's bar."""
    return bool(after) and (after in "/^!÷∕⁄([{\\" or after.isalnum())


def _unwrap(text: str) -> str:
    text = _END_OF_TURN.sub("", text).strip()
    text = _without_dollars(text).strip()
    for pattern in _WRAPPERS:
        match = pattern.fullmatch(text)
        if match and not _closes_early(pattern, match[1]):
            text = match[1].strip()
    text = unbox(text)
    if text.endswith((".", ",", ";")) and not text.endswith(("\\,", "\\;", "..")):
        text = text[:-1].rstrip()
    return text


def _closes_early(pattern: re.Pattern[str], content: str) -> bool:
    """Whether the first delimiter closes before the end, as in `**a** and **b**`."""
    opening = pattern.pattern.split("(", 1)[0] if not pattern.pattern.startswith("\\\\") else None
    return opening is not None and opening.replace("\\", "") in content


def _without_dollars(text: str) -> str:
    """Drop dollar signs that delimit mathematics; one that is left over, or escaped, is money."""
    signs = [match.start() for match in re.finditer(r"(?<!\\)\$", text)]
    if not signs:
        return text
    money = len(signs) % 2 == 1 and "$$" not in text
    first = signs[0]
    rest = re.sub(r"(?<!\\)\$", " ", text[first + 1 :] if money else text)
    return text[:first] + r"\$" + rest if money else rest
