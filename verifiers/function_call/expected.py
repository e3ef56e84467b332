"""One expected call, and how a call differs from it. Runs inside sandboxes only."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verifiers.function_call.calls import Call
from verifiers.function_call.tools import BadReference, Tool, Tools, validator_of
from verifiers.structured.json_text import equal

_SHOWN_CHARACTERS = 200
_LOOSE = str.maketrans("", "", " \t\r\n\u00a0,./-_*^'\"")

_Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Difference:
    """One thing that is wrong with the calls."""

    kind: str
    """`wrong_function`, `missing_argument`, `extra_argument`, `unknown_argument`, `invalid_argument`,
    `wrong_argument`, `missing_call`, `extra_call`, `unknown_function`."""
    call: int | None
    """Position of the call; None when it is one that is missing."""
    name: str
    argument: str | None = None
    problem: str | None = None

    def shown(self) -> dict[str, Any]:
        """Return it as JSON, cut small."""
        fields = {"argument": self.argument, "problem": self.problem}
        cut = {name: value[:_SHOWN_CHARACTERS] for name, value in fields.items() if value is not None}
        return {"kind": self.kind, "call": self.call, "name": self.name[:_SHOWN_CHARACTERS]} | cut


class Expected:
    """A call that must be made."""

    def __init__(self, call: dict[str, Any], tools: Tools, spec: dict[str, Any], place: str) -> None:
        """Take an `ExpectedCall` as JSON.

        Raises:
            BadReference: it is no call that the tools allow.
        """
        self.name: str = call["name"]
        self._optional = frozenset(call["optional"])
        self._is_loose = spec["strings"] == "loose"
        self._defaults_may_be_written: bool = spec["defaults_may_be_written"]
        self._tool: Tool | None = tools.get(self.name)
        self._values: dict[str, list[Any]] = {name: [value] for name, value in call["arguments"].items()}
        self._values |= call["any_of"]
        self._tests: dict[str, _Test] = {name: self._one_of(values) for name, values in self._values.items()}
        for name, schema in call["matching"].items():
            self._tests[name] = validator_of(schema, f"{place}.matching.{name}").is_valid
        if spec["check_tools"]:
            self._check(place)

    def differences(self, call: Call, position: int, problems: dict[str | None, str]) -> list[Difference]:
        """Return how a call of this function differs from this one; nothing when it is right.

        Args:
            call: the call.
            position: its position among the calls.
            problems: what the tool's schema has against it, by argument; None stands for all together.
        """

        def difference(kind: str, argument: str | None, problem: str | None = None) -> Difference:
            return Difference(kind, position, call.name, argument, problem)

        found: list[Difference] = []
        for name, test in self._tests.items():
            if name not in call.arguments:
                if not self._may_be_missing(name):
                    found.append(difference("missing_argument", name))
            elif name in problems:
                found.append(difference("invalid_argument", name, problems[name]))
            elif not test(call.arguments[name]):
                found.append(difference("wrong_argument", name))
        for name, value in call.arguments.items():
            if name in self._tests or self._is_written_default(name, value):
                continue
            is_known = self._tool is not None and name in self._tool.properties
            kind = "extra_argument" if is_known else "unknown_argument"
            found.append(difference(kind, name, problems.get(name)))
        if not found and problems:
            argument, problem = next(iter(problems.items()))
            found.append(difference("invalid_argument", argument, problem))
        return found

    def share(self, call: Call, differences: list[Difference]) -> float:
        """Return the share of name and arguments that are right; what may be left out, and is, earns nothing."""
        wrong = len({difference.argument for difference in differences})
        named = {name for name in self._tests if not self._may_be_missing(name)} | call.arguments.keys()
        return max(0.0, (1 + len(named) - wrong) / (1 + len(named)))

    def _check(self, place: str) -> None:
        """Refuse what the tools would refuse."""
        if self._tool is None:
            raise BadReference(f"{place}: no tool is named {self.name[:100]!r}")
        for name in self._tool.required:
            if name not in self._tests:
                raise BadReference(f"{place}: the tool requires the argument {str(name)[:100]!r}")
        for name in self._tests:
            if name not in self._tool.properties and not self._tool.takes_others:
                raise BadReference(f"{place}: the tool has no argument {name[:100]!r}")
        for name, values in self._values.items():
            problems = [dict(self._tool.problems({name: value})).get(name) for value in values]
            if None not in problems:  # one that the tool takes is enough
                raise BadReference(f"{place}: the tool refuses the value of {name[:100]!r}: {str(problems[0])[:200]}")

    def _one_of(self, values: list[Any]) -> _Test:
        accepted = [_loose(value) for value in values] if self._is_loose else values

        def test(value: Any) -> bool:
            given = _loose(value) if self._is_loose else value
            return any(equal(given, right) for right in accepted)

        return test

    def _may_be_missing(self, name: str) -> bool:
        if name in self._optional:
            return True
        return self._tool is not None and any(
            self._is_written_default(name, value) for value in self._values.get(name, ())
        )

    def _is_written_default(self, name: str, value: Any) -> bool:
        return self._defaults_may_be_written and self._tool is not None and self._tool.has_default(name, value)


def _loose(value: Any) -> Any:
    """Return a value with its strings brought to one writing."""
    if isinstance(value, str):
        return value.translate(_LOOSE).casefold()
    if isinstance(value, list):
        return [_loose(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _loose(inner) for name, inner in value.items()}
    return value
