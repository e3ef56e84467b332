r"""The fast path: words and plain numbers, compared exactly in the worker process, without sympy.

It decides only what it reads completely: integers, decimals, thousands separators, `a/b`, `\frac{a}{b}`, mixed numbers
and powers of ten with bounded digits, clock times, single letters, and short texts. Anything else is left undecided.
What it decides, the symbolic comparison decides the same; a property test holds it to that.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

from verifiers.math.dates import read_clock, read_date
from verifiers.math.normalise import normalise
from verifiers.math.units import drop_units, split_bare_letter, split_noun, split_unit

MAX_DIGITS = 4000
"""Longer numbers are left to the sandbox; Python refuses to convert more than 4,300 digits."""

ROUNDED_DIGITS = 12
"""A decimal with at least so many significant digits stands for the number that it is rounded from."""

_MAX_EXPONENT = 400
_MAX_WORDS = 6

_INTEGER = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
_DECIMAL = re.compile(rf"(?P<integer>{_INTEGER})?(?:\.(?P<decimals>\d*))?")
_SLASH = re.compile(r"(?P<top>\d+) ?/ ?(?P<bottom>\d+)")
_FRAC = re.compile(
    r"\\frac ?(?:\{ ?(?P<ts>[-+]?) ?(?P<top>\d+) ?\} ?(?:\{ ?(?P<bs>[-+]?) ?(?P<bottom>\d+) ?\}|(?P<bottom1>\d))"
    r"|(?P<top2>\d) ?(?:\{ ?(?P<bottom2>\d+) ?\}|(?P<bottom3>\d)))"
)
_MIXED = re.compile(
    r"(?P<whole>\d+)(?: (?P<top>\d+) ?/ ?(?P<bottom>\d+)| ?\\frac ?\{ ?(?P<top1>\d+) ?\} ?\{ ?(?P<bottom1>\d+) ?\})"
)
_SCIENTIFIC = re.compile(
    r"(?P<mantissa>\d+(?:\.\d*)?|\.\d+) ?(?:\\times|\\cdot|\*) ?10 ?\^ ?"
    r"(?:\{ ?(?P<exponent>[-+]? ?\d{1,3}) ?\}|(?P<digit>\d))"
)
_E_NOTATION = re.compile(r"(\d+\.\d*(?=e)|\.\d+(?=e)|\d+(?=e\+?\d|E)|1(?=e-))[eE]([-+]?\d{1,3})")
_LETTER = re.compile(r"(?:\\text ?\{ ?)?[(\[]? ?(?P<letter>[A-Za-z]) ?[)\].:]?(?: ?\})?")
_LABEL = re.compile(r"^\\text ?\{ ?\([A-J]\) ?\} ?(?=[\d\\(+-])")  # of the choice that the answer is
_CHOICE = re.compile(
    r"(?:\\text ?\{ ?)?\(? ?(?P<letter>[A-J]) ?(?:[).:]) ?\}?(?= |\\|[,;/&|]|$)(?P<content>.*)", re.DOTALL
)
# `(B) and (C)`, `B. or C`, `(B), (C)`, `(B) is wrong`: more than one choice, or none.
_HEDGE = re.compile(
    r"[(\[] ?[A-J] ?[)\]]|(?:^|[^A-Za-z])(?:and|or|nor|but|not)\b[^A-Za-z]{0,4}(?:\\text ?\{)?[^A-Za-z]{0,4}"
    r"(?:(?:maybe|perhaps|possibly|also|even)[^A-Za-z]{1,4})?[A-J](?![A-Za-z])"
    r"|^[^A-Za-z]*[A-J] ?[).:]|[,;/&|] ?\(?[A-J](?: ?[).:,]|$)|^[^A-Za-z]*(?:and|or|nor|but|not|is|isn't|if|unless)\b"
)
_TEXT = re.compile(r"\\text ?\{(?P<inner>[^{}\\$]*)\}")
_WORDS = re.compile(r"[A-Za-z][A-Za-z'’-]*(?: [A-Za-z][A-Za-z'’-]*)*")
_SHORT_WORDS = frozenset("yes no true false none even odd dne both all never".split())  # noqa: SIM905
_MATH_NAMES = frozenset(
    """
    pi infinity infty inf sqrt log ln sin cos tan sec csc cot exp arcsin arccos arctan alpha beta gamma delta theta
    lambda sigma omega max min gcd lcm mod frac and or
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Written:
    """One side of a comparison, as written."""

    text: str
    """Normalised, with units."""
    ignore_units: bool

    @cached_property
    def quantity(self) -> tuple[str, str | None]:
        """What stands without its unit, and the unit's one name."""
        return split_unit(_LABEL.sub("", self.text))

    @cached_property
    def number(self) -> "Number | None":
        """The plain number it is, if it is one."""
        head, unit = self.quantity
        value = read_number(head)
        if value is None and unit is None and self.ignore_units:
            head, unit = split_noun(self.text)
            value = read_number(head) if unit else None
        return Number(value[0], value[1], unit) if value else None

    @cached_property
    def words(self) -> str | None:
        """The text it is, lower case, when it is text and not mathematics."""
        match = _TEXT.fullmatch(self.text)
        inner = " ".join((match["inner"] if match else self.text).rstrip(".!").split())
        if not _WORDS.fullmatch(inner):
            return None
        words = inner.lower().split()
        if len(words) > _MAX_WORDS or any(word in _MATH_NAMES for word in words):
            return None
        if len(words) == 1 and len(words[0]) < 4 and words[0] not in _SHORT_WORDS and match is None:
            return None
        return " ".join(words) if any(len(word) > 1 for word in words) else None

    @cached_property
    def letter(self) -> str | None:
        """The single letter it is, perhaps in brackets."""
        match = _LETTER.fullmatch(self.text)
        return match["letter"] if match else None

    @cached_property
    def read_by_eye(self) -> bool:
        """Whether reading alone shows that it says something: a number, a text or a letter."""
        return (
            self.number is not None
            or read_date(self.text) is not None
            or read_clock(self.text) is not None
            or self.words is not None
            or self.letter is not None
        )

    @property
    def symbolic(self) -> str:
        """What the sandbox compares: the text without units, whose agreement `units_conflict` checks."""
        head, unit = self.quantity
        if self.ignore_units:
            if self.number is not None and self.number.is_counted:
                head = split_noun(self.text)[0]
            return drop_units(head)
        return f"({head})/100" if unit == "percent" else head


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: Fraction
    rounding: Fraction | None
    """One unit in the last place of a decimal that is long enough to be a rounded value."""
    unit: str | None

    @property
    def is_counted(self) -> bool:
        """Whether it is the number of some things that a word names, which is no unit."""
        return self.unit is not None and self.unit.startswith("noun")


@lru_cache(maxsize=4096)
def write(text: str, *, ignore_units: bool, decimal_comma: bool = False) -> Written:
    """Normalise an answer or a reference."""
    return Written(normalise(text, decimal_comma=decimal_comma), ignore_units)


@dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the reference: as a fraction of it, or by itself."""

    relative: float | None = None
    absolute: float | None = None


EXACT = Tolerance()


def decide(reference: Written, answer: Written, tolerance: Tolerance = EXACT) -> bool | None:  # noqa: PLR0911
    """Return whether the answer equals the reference, or None when that takes more than reading.

    Never raises; a reference that this cannot read completely leaves the matter undecided.
    """
    if (day := read_date(reference.text)) is not None or read_date(answer.text) is not None:
        return day == read_date(answer.text)
    if reference.words is not None:
        return answer.words == reference.words
    if reference.letter is not None:
        return _same_letter(reference.letter, answer)
    clocks = read_clock(reference.text), read_clock(answer.text)
    if clocks[0] is not None and (clocks[1] is not None or "m" in reference.text.lower()):
        return clocks[0] == clocks[1]
    expected, given = reference.number, answer.number
    if expected is None:
        return None
    if given is None:
        given = _with_letter_unit(expected, answer)
    if given is None:
        return False if answer.words is not None else None
    return same_number(expected, given, tolerance, ignore_units=reference.ignore_units)


def same_number(expected: Number, given: Number, tolerance: Tolerance, *, ignore_units: bool) -> bool:
    """Whether two plain numbers are the same, units considered."""
    if ignore_units:
        if _units_conflict(expected.unit, given.unit):
            return False
        pairs = [(expected.value, given.value)]
        # 50% is 0.5 as well as, its sign left out, 50; where both sides have the sign they are alike anyway.
        if given.unit == "percent" != expected.unit:
            pairs.append((expected.value, given.value / 100))
        if expected.unit == "percent" != given.unit:
            pairs.append((expected.value / 100, given.value))
    else:
        if {expected.unit, given.unit} - {None, "percent"} and expected.unit != given.unit:
            return False
        scale = {"percent": Fraction(1, 100)}
        pairs = [(expected.value * scale.get(expected.unit or "", 1), given.value * scale.get(given.unit or "", 1))]
    rounding = _rounding(expected, given)
    return any(_close(wanted, got, rounding, tolerance) for wanted, got in pairs)


def read_number(text: str) -> tuple[Fraction, Fraction | None] | None:
    """Read a plain number completely: its value, and one unit in the last place of a long decimal.

    Returns None when the text is anything else, or longer than MAX_DIGITS.
    """
    text = text.strip()
    if not text or len(text) > MAX_DIGITS or not text.isascii():
        return None
    sign = 1
    if text[0] in "+-":
        sign, text = (-1 if text[0] == "-" else 1), text[1:].lstrip()
    read = _read_decimal(text) or _read_fraction(text) or _read_mixed(text) or _read_scientific(text)
    return (sign * read[0], read[1]) if read else None


def _read_decimal(text: str) -> tuple[Fraction, Fraction | None] | None:
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match["integer"] or match["decimals"]):
        return None
    integer, decimals = match["integer"] or "", match["decimals"] or ""
    if "," in integer and integer.startswith("0"):
        return None
    digits = integer.replace(",", "") + decimals
    unit = Fraction(1, 10 ** len(decimals))
    is_rounded = bool(decimals) and len(digits.lstrip("0")) >= ROUNDED_DIGITS
    return int(digits) * unit, unit if is_rounded else None


def _read_fraction(text: str) -> tuple[Fraction, None] | None:
    if match := _SLASH.fullmatch(text):
        return _ratio(match["top"], match["bottom"])
    if match := _FRAC.fullmatch(text):
        top = match["top"] or match["top2"]
        bottom = match["bottom"] or match["bottom1"] or match["bottom2"] or match["bottom3"]
        ratio = _ratio(top, bottom)
        negative = ((match["ts"] or "") + (match["bs"] or "")).count("-") == 1
        return (-ratio[0], None) if ratio and negative else ratio
    return None


def _read_mixed(text: str) -> tuple[Fraction, None] | None:
    """Read `1 1/4`; a fractional part that is not below one, as in `5 9/4`, makes it no number."""
    match = _MIXED.fullmatch(text)
    if match is None:
        return None
    part = _ratio(match["top"] or match["top1"], match["bottom"] or match["bottom1"])
    return (int(match["whole"]) + part[0], None) if part and 0 < part[0] < 1 and int(match["whole"]) > 0 else None


def _read_scientific(text: str) -> tuple[Fraction, None] | None:
    if short := _E_NOTATION.fullmatch(text):
        exponent, mantissa = int(short[2]), _read_decimal(short[1])
    elif match := _SCIENTIFIC.fullmatch(text):
        exponent = int((match["exponent"] or match["digit"]).replace(" ", ""))
        mantissa = _read_decimal(match["mantissa"])
    else:
        return None
    if mantissa is None or abs(exponent) > _MAX_EXPONENT:
        return None
    return mantissa[0] * Fraction(10) ** exponent, None


def _ratio(top: str, bottom: str) -> tuple[Fraction, None] | None:
    return (Fraction(int(top), int(bottom)), None) if int(bottom) else None


def _rounding(expected: Number, given: Number) -> Fraction | None:
    """Return the unit in the last place when exactly one side is a long decimal."""
    if (expected.rounding is None) == (given.rounding is None):
        return None
    return expected.rounding if expected.rounding is not None else given.rounding


def _close(wanted: Fraction, got: Fraction, rounding: Fraction | None, tolerance: Tolerance) -> bool:
    difference = abs(wanted - got)
    if difference == 0:
        return True
    if tolerance.relative is not None and difference <= Fraction(repr(tolerance.relative)) * abs(wanted):
        return True
    if tolerance.absolute is not None and difference <= Fraction(repr(tolerance.absolute)):
        return True
    return rounding is not None and difference < rounding


def units_conflict(reference: Written, answer: Written) -> bool:
    """Whether the units of the two sides alone make them different."""
    expected, given = reference.quantity[1], answer.quantity[1]
    if reference.ignore_units:
        return _units_conflict(expected, given)
    return bool({expected, given} - {None, "percent"}) and expected != given


def _units_conflict(one: str | None, other: str | None) -> bool:
    """Whether both are known units, and different ones; a counted noun or a percent sign contradicts nothing."""
    if one is None or other is None or "percent" in (one, other):
        return False
    if {one.split()[0], other.split()[0]} == {"degree"} and "degree" in (one, other):
        return False  # of an angle or a temperature, whose scale was left out
    return one != other and not one.startswith("noun") and not other.startswith("noun")


def _with_letter_unit(expected: Number, answer: Written) -> Number | None:
    """Read `6m` as a quantity, where the reference shows that the answer is a number."""
    if not answer.ignore_units:
        return None
    head, unit = split_bare_letter(answer.text)
    value = read_number(head) if unit else None
    if value is None or (expected.unit is not None and expected.unit != unit):
        return None
    return Number(value[0], value[1], unit)


def read_choice(written: Written) -> tuple[str, str] | None:
    """Read `B`, `(B)` or `(B) 12 apples`: the letter, in upper case, and the text with it."""
    if written.letter is not None:
        return written.letter.upper(), ""
    match = _CHOICE.fullmatch(written.text)
    if match is None or _HEDGE.search(match["content"]):
        return None
    return match["letter"], match["content"].strip(" }")


def _same_letter(letter: str, answer: Written) -> bool | None:
    if answer.letter is not None:
        given = answer.letter
    elif letter.isupper() and (match := _CHOICE.fullmatch(answer.text)):
        if _HEDGE.search(match["content"]):
            return False
        given = match["letter"]
    else:
        return None if answer.words is None and answer.number is None else False
    if given == letter:
        return True
    # The letter of a choice in the other case is the same choice; other letters are variables, whose case counts.
    return letter in "ABCDE" and given == letter.lower()
