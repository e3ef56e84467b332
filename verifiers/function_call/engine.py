"""Compares calls of tools with the expected ones. Runs inside sandboxes only."""

from dataclasses import dataclass
from typing import Any

from verifiers.function_call.calls import Call, Malformed, read_calls
from verifiers.function_call.expected import Difference, Expected
from verifiers.function_call.tools import BadReference, Tools

_Problems = dict[str | None, str]

_SHOWN_DIFFERENCES = 8
_SHOWN_NAMES = 16
_SHOWN_CHARACTERS = 200


def check(argument: dict[str, Any]) -> list[dict[str, Any]]:
    """Check the calls in texts.

    Args:
        argument: `specs`, each with `tools`, `reference`, `check_tools`, `defaults_may_be_written`, `strings`, `order`
            and `scoring`; and `items`, pairs of a spec's position and what is checked: `text` (None: the reasoning
            never ended), `syntax`, `answer_tag`; or `probe`: True, which only reads the spec.

    Returns:
        For each item `bad_reference` (why), or `score`, `reason`, `calls` (their names), and where something is wrong
        `differences` or `problem`.
    """
    tools: dict[str, Tools | str] = {}
    contracts: dict[int, _Contract | str] = {}
    results = []
    for place, what in argument["items"]:
        if place not in contracts:
            contracts[place] = _contract(argument["specs"][place], tools)
        contract = contracts[place]
        results.append({"bad_reference": contract} if isinstance(contract, str) else contract.judge(what))
    return results


def _contract(spec: dict[str, Any], known: dict[str, Tools | str]) -> "_Contract | str":
    """Return the contract of a spec, or what is wrong with it; tools that many specs share are made ready once."""
    key = repr(spec["tools"])
    try:
        if key not in known:
            known[key] = Tools(spec["tools"])
        tools = known[key]
        return tools if isinstance(tools, str) else _Contract(spec, tools)
    except BadReference as problem:
        return str(problem)[:1000]


@dataclass(frozen=True)
class _Pair:
    """A call that is compared with an expected one."""

    call: int
    expected: int
    share: float
    differences: list[Difference]


class _Contract:
    """The tools and the calls that are right."""

    def __init__(self, spec: dict[str, Any], tools: Tools) -> None:
        self._tools = tools
        self._checks_tools: bool = spec["check_tools"]
        self._is_fixed = spec["order"] == "fixed"
        self._scores_parts = spec["scoring"] == "parts"
        self._expected = [
            Expected(call, tools, spec, f"reference[{position}]") for position, call in enumerate(spec["reference"])
        ]

    def judge(self, what: dict[str, Any]) -> dict[str, Any]:
        """Judge one text."""
        if what.get("probe"):
            return {"score": 0.0, "reason": "probed"}
        if what["text"] is None:
            return {"score": 0.0, "reason": "no_answer", "problem": "unfinished_reasoning"}
        try:
            calls = read_calls(what["text"], what["syntax"], self._tools.names, what["answer_tag"])
        except Malformed as problem:
            return {"score": 0.0, "reason": "malformed_call", "problem": str(problem)[:_SHOWN_CHARACTERS]}
        names = [call.name[:_SHOWN_CHARACTERS] for call in calls[:_SHOWN_NAMES]]
        return self._compare(calls) | {"calls": names}

    def _compare(self, calls: list[Call]) -> dict[str, Any]:
        if not self._expected:
            return {"score": 0.0, "reason": "unexpected_call"} if calls else {"score": 1.0, "reason": "no_call"}
        problems = [self._problems(call) for call in calls]
        pairs = self._in_order(calls, problems) if self._is_fixed else self._best(calls, problems)
        differences = [difference for pair in pairs for difference in pair.differences]
        called = {pair.call for pair in pairs}
        for position, call in enumerate(calls):
            if position not in called:
                kind = "extra_call" if call.name in self._tools.names else "unknown_function"
                differences.append(Difference(kind, position, call.name))
        wanted = {pair.expected for pair in pairs}
        for position, expected in enumerate(self._expected):
            if position not in wanted:
                differences.append(Difference("missing_call", None, expected.name))
        if not differences:
            return {"score": 1.0, "reason": "equal"}
        share = sum(pair.share for pair in pairs) / max(len(calls), len(self._expected))
        return {
            "score": share if self._scores_parts else 0.0,
            "reason": differences[0].kind,
            "differences": [difference.shown() for difference in differences[:_SHOWN_DIFFERENCES]],
        }

    def _problems(self, call: Call) -> _Problems:
        """Return what the tool's schema has against a call, by argument."""
        tool = self._tools.get(call.name) if self._checks_tools else None
        return {} if tool is None else dict(tool.problems(call.arguments))

    def _pair(self, calls: list[Call], problems: list[_Problems], call: int, expected: int) -> _Pair:
        if calls[call].name != self._expected[expected].name:
            wrong = Difference("wrong_function", call, calls[call].name, problem=self._expected[expected].name)
            return _Pair(call, expected, 0.0, [wrong])
        differences = self._expected[expected].differences(calls[call], call, problems[call])
        return _Pair(call, expected, self._expected[expected].share(calls[call], differences), differences)

    def _in_order(self, calls: list[Call], problems: list[_Problems]) -> list[_Pair]:
        return [
            self._pair(calls, problems, position, position) for position in range(min(len(calls), len(self._expected)))
        ]

    def _best(self, calls: list[Call], problems: list[_Problems]) -> list[_Pair]:
        """Pair as many calls as can be with expected ones that they equal, then the others, the most alike first."""
        if len(calls) == len(self._expected) == 1:
            return [self._pair(calls, problems, 0, 0)]
        alike = [
            self._pair(calls, problems, call, expected)
            for call in range(len(calls))
            for expected in range(len(self._expected))
            if calls[call].name == self._expected[expected].name
        ]
        pairs = _matching([pair for pair in alike if not pair.differences])
        taken = {pair.call for pair in pairs}, {pair.expected for pair in pairs}
        for pair in sorted(alike, key=lambda pair: (-pair.share, pair.call, pair.expected)):
            if pair.call not in taken[0] and pair.expected not in taken[1]:
                pairs.append(pair)
                taken[0].add(pair.call)
                taken[1].add(pair.expected)
        return sorted(pairs, key=lambda pair: pair.call)


def _matching(edges: list[_Pair]) -> list[_Pair]:
    """Return a largest set of pairs of which no two share a call or an expected one (augmenting paths)."""
    by_call: dict[int, list[_Pair]] = {}
    for edge in edges:
        by_call.setdefault(edge.call, []).append(edge)
    holder: dict[int, _Pair] = {}

    def place(call: int, tried: set[int]) -> bool:
        for edge in by_call[call]:
            if edge.expected in tried:
                continue
            tried.add(edge.expected)
            held = holder.get(edge.expected)
            if held is None or place(held.call, tried):
                holder[edge.expected] = edge
                return True
        return False

    for call in by_call:
        place(call, set())
    return list(holder.values())
