"""Reads the attempts: cells of Python source, each with a name and what must become of it."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "attempts"
_HEAD = re.compile(r"^# %% (?P<name>[^[\n]*?)(?P<options>(?: \[[^]\n]*\])*)$", re.MULTILINE)
_LIMIT = re.compile(r"\[limit=(\w+)\]")
_NOT = re.compile(r"\[not ([\w-]+): [^]]+\]")

_FRAME = """
escaped = None
try:
{body}
except OSError as refusal:
    print("held:", type(refusal).__name__, refusal)
else:
    print("escaped:" if escaped else "held", repr(escaped)[:500])
"""


@dataclass(frozen=True)
class Attempt:
    """One cell."""

    file: str
    name: str
    limit: str | None
    not_held_by: frozenset[str]
    """Backends that do not promise to hold it; docs/security.md says so too."""
    body: str

    def source(self, names: dict[str, object]) -> str:
        """Return what to run: for a limit the bare cell, else one that prints `held` or `escaped`."""
        body = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + self.body
        if self.limit:
            return body
        return _FRAME.format(body="".join(f"    {line}\n" for line in body.splitlines()))


def read_attempts() -> list[Attempt]:
    """Return all attempts, in order."""
    attempts = []
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text()
        heads = list(_HEAD.finditer(text))
        for head, following in zip(heads, [*heads[1:], None], strict=True):
            body = text[head.end() : following.start() if following else len(text)].strip()
            limit = _LIMIT.search(head["options"])
            not_held_by = frozenset(_NOT.findall(head["options"]))
            attempts.append(Attempt(path.stem, head["name"], limit[1] if limit else None, not_held_by, body))
    return attempts
