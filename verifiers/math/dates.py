"""Reads dates and times of day, as English writes them and as ISO 8601 does."""

import re
from datetime import date

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?"
_ISO = re.compile(r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})")
_CHINESE = re.compile(r"(?P<year>\d{4}) ?[年년] ?(?P<month>\d{1,2}) ?[月월] ?(?P<day>\d{1,2}) ?[日号일]")
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<name>[a-z]{{3,9}})\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"
)
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<name>[a-z]{{3,9}})\.?,? (?P<year>\d{{4}})"
)
_CLOCK = re.compile(r"(?P<hours>\d{1,2}) ?(?::|\{:\}) ?(?P<minutes>[0-5]\d) ?(?P<half>[ap]\.?m\.?)?")
_HOUR = re.compile(r"(?P<hours>\d{1,2}) ?(?P<half>[ap]\.?m\.?)")


def read_date(text: str) -> date | None:
    """Read a whole date whose parts have one meaning; `01/02/2020` has two."""
    text = _bare(text)
    for pattern in (_ISO, _CHINESE, _MONTH_FIRST, _DAY_FIRST):
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            month = int(parts["month"]) if "month" in parts else _MONTHS.get(parts["name"], 0)
            try:
                return date(int(parts["year"]), month, int(parts["day"]))
            except ValueError:
                return None
    return None


def read_clock(text: str) -> tuple[int, int, str] | None:
    """Read a time of day: hours, minutes, and the half of the day where one is said.

    `3:15` may be in either half, so it equals neither `3:15 PM` nor `15:15`; those two are one time.
    """
    text = _bare(text)
    match = _CLOCK.fullmatch(text) or _HOUR.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    hours, minutes, half = int(parts["hours"]), int(parts.get("minutes") or 0), (parts["half"] or "")[:1]
    if half and 1 <= hours <= 12:
        return hours % 12 + (12 if half == "p" else 0), minutes, "known"
    if half or hours > 24:
        return None
    return hours, minutes, "known" if hours == 0 or hours > 12 else "open"


def _bare(text: str) -> str:
    """Take off text commands and case."""
    return " ".join(re.sub(r"\\text ?\{([^{}]*)\}", r" \1 ", text).lower().replace(" ,", ",").split())
