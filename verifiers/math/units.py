"""Units, currencies and percent signs of answers: known words that stand after, or before, a quantity."""

import re

_WORDS: dict[str, str] = {}
for _unit, _spellings in {
    "dollar": "dollar dollars usd buck bucks",
    "cent": "cent cents ¢",
    "euro": "euro euros eur",
    "pound": "pound pounds lb lbs gbp",
    "rupee": "rupee rupees rs inr",
    "yen": "yen jpy yuan rmb 元",
    "percent": "percent pct percentage",
    "degree": "degree degrees deg °",
    "celsius": "celsius",
    "fahrenheit": "fahrenheit",
    "radian": "radian radians rad rads",
    "metre": "metre metres meter meters m 米",
    "centimetre": "centimetre centimetres centimeter centimeters cm cms 厘米",
    "millimetre": "millimetre millimetres millimeter millimeters mm",
    "kilometre": "kilometre kilometres kilometer kilometers km kms 千米",
    "mile": "mile miles mi",
    "foot": "foot feet ft",
    "inch": "inch inches",
    "yard": "yard yards yd yds",
    "gram": "gram grams g gm gms",
    "kilogram": "kilogram kilograms kg kgs 千克",
    "milligram": "milligram milligrams mg",
    "ton": "ton tons tonne tonnes",
    "ounce": "ounce ounces oz",
    "litre": "litre litres liter liters l L",
    "millilitre": "millilitre millilitres milliliter milliliters ml mL",
    "gallon": "gallon gallons gal",
    "second": "second seconds s sec secs 秒",
    "minute": "minute minutes min mins 分钟",
    "hour": "hour hours h hr hrs 小时",
    "day": "day days 天",
    "week": "week weeks",
    "month": "month months",
    "year": "year years yr yrs",
    "newton": "newton newtons N",
    "joule": "joule joules J",
    "watt": "watt watts W",
    "kilowatt": "kilowatt kilowatts kW",
    "volt": "volt volts V",
    "ampere": "ampere amperes amp amps",
    "ohm": "ohm ohms",
    "hertz": "hertz Hz",
    "pascal": "pascal pascals Pa",
    "kelvin": "kelvin kelvins",
    "mole": "mole moles mol",
    "mph": "mph",
    "kmph": "kmph kph",
    "unit": "unit units",
    "time": "times",
    "person": "person people persons 人",
    "item": "item items 个",
}.items():
    _WORDS |= dict.fromkeys(_spellings.split(), _unit)

# Single letters that are also common variables: a unit only inside \text{…} or \mathrm{…}, or after a bare number of an
# answer (see `unit_of_answer`).
_LETTERS = frozenset(word for word in _WORDS if len(word) == 1 and word.isascii())
_JOINERS = {
    "per": "/",
    "/": "/",
    "square": "square",
    "squared": "square",
    "sq": "square",
    "cubic": "cubic",
    "cu": "cubic",
}
_JOINERS |= {"cubed": "cubic"}
_POWERS = {"2": "square", "3": "cubic"}

# Words after a number that change its value or deny it; such a text is no quantity.
_CHANGES = frozenset(
    """
    dozen dozens score gross hundred hundreds thousand thousands million millions billion billions trillion
    trillions half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh eighth
    eighths ninth tenth tenths hundredth hundredths thousandth thousandths and or to not no minus negative below
    under over less more than above at least most about squared cubed factorial root roots power mod modulo
    choose pi infinity zero loss remainder plus divided multiplied is are was but if because since when where
    wrong incorrect either between base binary hex octal exp log sin cos tan sqrt inf
    one two three four five six seven eight nine ten eleven twelve ones twos threes fours fives tens nil nought
    lakh lakhs lac lacs crore crores arab grand mil mill mln mio mrd bil bln bn mn thou myriad myriads couple
    double doubled triple tripled quadruple quadrupled halved twice thrice
    once fold negated inverted inverse reciprocal opposite complement off short fewer greater larger smaller bigger
    false untrue doubtful maybe perhaps possibly halfs eights raised per mille permille reduced increased decreased
    """.split()  # noqa: SIM905 - a list of so many words reads better so
)

_NUMBER_WORD = re.compile(
    r"[a-z]*(?:illion|illiard)(?:s|ths?)?|[a-z]*(?:hundred|thousand|lakh|crore)(?:s|ths?)?|[a-z]*(?:teen|ie)ths?"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|four|fif|six|seven|eigh|nine)ty"
    r"|(?:half|third|quarter|fourth|fif|six|seven|eigh|nin|ten|eleven|twelf)(?:s|ths?)?|[a-z]+fold|[a-z]+tupled?"
    r"|(?:milli|micro|nano|kilo|mega|giga)"
)

_MONEY = r"(?:(?:US|AU|CA)?(?:\\\$|[$€£¥₹₽₩]))"
_LEADING_MONEY = re.compile(rf"^(?P<sign>[-+]?)\s*(?P<money>{_MONEY})\s*(?=[-+\d.\\])")
_TRAILING_MONEY = re.compile(rf"(?<=\d)\s*(?P<money>{_MONEY})$")
_CURRENCIES = {"€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "₽": "ruble", "₩": "won"}
_CIRCLE = r"\^\s?(?:\\circ|\{\s?\\circ\s?\})"
_TRAILING_DEGREES = re.compile(rf"\s?{_CIRCLE}\s?$")
_TEMPERATURE = re.compile(rf"\s?{_CIRCLE}\s?(?:\\text\s?\{{\s?)?(?P<scale>[CF])(?:\s?\}})?$")
_SCALES = {"C": "celsius", "F": "fahrenheit"}
_TRAILING_PERCENT = re.compile(r"\s?%$")
_TRAILING_TEXT = re.compile(r"\s?\\text\s?\{(?P<words>[^{}]{1,60})\}\s?(?:\^\s?(?:\{\s?)?(?P<power>[23])(?:\s?\})?)?$")
_TRAILING_WORDS = re.compile(
    r"\s?(?P<words>[^\W\d_]{1,20}(?:[ /]{1,3}[^\W\d_]{1,20}){0,3})"
    r"\s?(?:\^\s?(?:\{\s?)?(?P<power>[23])(?:\s?\})?)?$"
)
_INNER_TEXT = re.compile(r"\\text\s?\{([^{}]{1,60})\}(?:\s?\^\s?(?:\{\s?)?[23](?:\s?\})?)?")


def split_unit(text: str) -> tuple[str, str | None]:  # noqa: PLR0911 - one way for each place of a unit
    """Split a quantity into what stands without its unit and the unit's one name; None where there is no known unit."""
    money = _LEADING_MONEY.match(text)
    if money:
        rest, unit = split_unit(text[money.end() :])
        return money["sign"] + rest, _CURRENCIES.get(money["money"][-1], unit if unit == "cent" else "dollar")
    if match := _TEMPERATURE.search(text):
        return text[: match.start()], f"degree {_SCALES[match['scale']]}"
    for pattern, unit in ((_TRAILING_PERCENT, "percent"), (_TRAILING_DEGREES, "degree")):
        if match := pattern.search(text):
            return text[: match.start()], unit
    if match := _TRAILING_MONEY.search(text):
        return text[: match.start()], _CURRENCIES.get(match["money"][-1], "dollar")
    if match := _TRAILING_TEXT.search(text):
        name = _unit_name(match["words"], match["power"], letters=True)
        if name and match.start():
            return text[: match.start()], name
    if match := _TRAILING_WORDS.search(text, max(0, len(text) - 90)):
        head = text[: match.start()]
        name = _unit_name(match["words"], match["power"], letters=False)
        if name and head and (head[-1].isdigit() or head[-1] in "})" or head.endswith("\\pi")):
            return head, name
    return text, None


def split_bare_letter(text: str) -> tuple[str, str | None]:
    """Split a bare number and a one-letter unit, `6m` or `6 m`, which might as well be a variable."""
    head, letter = text[:-1].rstrip(), text[-1:]
    if letter in _LETTERS and head[-1:].isdigit():
        return head, _WORDS[letter]
    return text, None


def split_noun(text: str) -> tuple[str, str | None]:
    """Split a bare number and the one or two words counted by it, `18 apples`; None where a word changes the value."""
    match = re.fullmatch(
        r"(?P<head>[^A-Za-z\\]*\d) ?(?:\\text ?\{| ) ?(?P<words>[a-z]{3,20}(?: [a-z]{3,20})?) ?\}?", text
    )
    if match is None or any(map(_changes, match["words"].split())):
        return text, None
    return match["head"], f"noun {match['words']}"


def _changes(word: str) -> bool:
    """Whether a word after a number makes it another one: it is not left out, and the text is no plain quantity."""
    return word in _CHANGES or _NUMBER_WORD.fullmatch(word) is not None


def drop_units(text: str) -> str:
    """Leave out currency, percent and degree signs and known units in text commands, wherever they stand."""
    text = re.sub(_MONEY, " ", text)
    text = re.sub(_CIRCLE, " ", text).replace("%", " ")
    text = _INNER_TEXT.sub(lambda m: " " if _is_unit_of(text[: m.start()], m[1]) else m[0], text)
    return " ".join(text.split())


def _is_unit_of(before: str, words: str) -> bool:
    """Whether the words are a unit, and stand after a quantity rather than as a name of their own."""
    before = before.rstrip()
    return (before[-1:].isdigit() or before.endswith((")", "}", r"\pi"))) and bool(
        _unit_name(words, None, letters=True)
    )


def _unit_name(words: str, power: str | None, *, letters: bool) -> str | None:
    """Return the one name of a unit such as `square feet`, `km/h` or, with `letters`, `m`; None when not known."""
    parts = []
    given = re.sub(r"[-\\.()]", " ", words.replace("/", " / ")).split()
    letters = letters or "/" in given or "per" in given
    for written in given:
        word, _, inner_power = written.partition("^")
        if inner_power in _POWERS and "/" in given:
            parts.append(_WORDS.get(word, word))
            parts.append(_POWERS[inner_power])
        elif inner_power in _POWERS and len(given) == 1:
            power = inner_power
            parts.append(_WORDS.get(word, word))
        elif word in _JOINERS:
            parts.append(_JOINERS[word])
        elif (word in _LETTERS and not letters) or not (name := _WORDS.get(word) or _WORDS.get(word.lower())):
            return None
        else:
            parts.append(name)
    if not any(part in _NAMES for part in parts):
        return None
    if power:
        parts.insert(len(parts) if "/" in parts else 0, _POWERS[power])
    return " ".join(parts)


_NAMES = frozenset(_WORDS.values())
