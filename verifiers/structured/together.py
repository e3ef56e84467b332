"""Runs many checks in one forked child of a sandbox, and each alone where that breaks a limit.

A fork costs more than most checks. Together they get less than each gets alone, so that what ends together would have
ended alone as well: neighbours change no outcome.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import JsonValue

from sandboxes.base import Case, Job, Limits, Outcome, Profile, Sandboxes
from verifiers.base import Failure

PROFILE = Profile(
    "structured",
    modules=(
        "verifiers.structured.json_text",
        "verifiers.json_schema.expansion",
        "verifiers.json_schema.eager",
        "verifiers.json_schema.engine",
        "verifiers.function_call.calls",
        "verifiers.function_call.tools",
        "verifiers.function_call.expected",
        "verifiers.function_call.engine",
        "verifiers.regex.engine",
        "verifiers.parses.engine",
    ),
    packages=(
        "jsonschema_rs",
        "jsonschema",
        "jsonschema_specifications",
        "referencing",
        "rpds",
        "attr",
        "attrs",
        "typing_extensions",
        "webcolors",
        "re2",
        "yaml",
        "lark",
        "sqlglot",
    ),
)
"""The one warm sandbox of all verifiers of structured answers."""

LIMITS = Limits(
    cpu_seconds=2.0,
    wall_seconds=60.0,
    memory_bytes=512 << 20,
    output_bytes=64 << 10,
    result_bytes=4 << 20,
    processes=8,
    file_bytes=1 << 20,
)
"""Of one check alone."""

_TOGETHER = replace(LIMITS, cpu_seconds=1.0)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to check."""

    spec: JsonValue
    """What it is checked against, which many items may share."""
    key: bytes
    """The same for equal specs, and only for those."""
    what: JsonValue
    """What is checked."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a guest function returned for one item, or the outcome that says why it did not."""

    result: dict[str, Any] | None
    outcome: Outcome

    @property
    def limit(self) -> str:
        """How a check without a result ended: the name of a limit or a signal, or `recursion`."""
        if self.outcome.limit is not None:
            return self.outcome.limit
        return "recursion" if self.outcome.signal is None else f"signal_{self.outcome.signal}"


def check_together(guest: str, items: Sequence[Item], sandboxes: Sandboxes, *, alone: bool = False) -> list[Checked]:
    """Return what the guest function says of each item, in order.

    Args:
        guest: `module:function` of PROFILE. It takes `{"specs": [spec, …], "items": [[index of its spec, what], …]}`
            and returns a list of results, one for each item.
        items: what to check.
        sandboxes: where.
        alone: not together, but each in a child of its own.

    Raises:
        SandboxLost: the sandbox died.
        SandboxUnavailable: this machine cannot isolate.
    """
    if not items:
        return []
    if not alone:
        (outcome,) = sandboxes.run(PROFILE, Job(guest=guest, cases=[_case(items)], limits=_TOGETHER))
        if outcome.returned:
            shared = replace(outcome, cpu_seconds=outcome.cpu_seconds / len(items), result=None)
            return [Checked(result, shared) for result in _results(outcome)]
    outcomes = sandboxes.run(PROFILE, Job(guest=guest, cases=[_case([item]) for item in items], limits=LIMITS))
    return [Checked(_results(outcome)[0] if outcome.returned else None, outcome) for outcome in outcomes]


def failure_of(check: Checked) -> Failure | None:
    """Return the failure of a check that ended neither by itself nor by what was checked.

    That is the machine's fault, or a defect of the check: an exception that nobody foresaw tells nothing.
    """
    outcome = check.outcome
    if check.result is not None:
        return None
    if outcome.limit == "wall_timeout":
        return Failure("sandbox_lost", "the check got no CPU time: the machine is overloaded")
    if outcome.limit is None and outcome.signal == signal.SIGKILL:
        return Failure("sandbox_lost", "the check was killed from outside: the machine is out of memory")
    last_line = outcome.stderr.rstrip().rpartition(b"\n")[2].decode(errors="replace")
    if outcome.limit is None and outcome.signal is None and not last_line.startswith("RecursionError"):
        return Failure("internal", f"the check failed unexpectedly ({last_line[:200]})")
    return None


def _case(items: Sequence[Item]) -> Case:
    """Return the case of some items, each different spec sent once."""
    places: dict[bytes, int] = {}
    specs: list[JsonValue] = []
    listed: list[JsonValue] = []
    for item in items:
        if item.key not in places:
            places[item.key] = len(specs)
            specs.append(item.spec)
        listed.append([places[item.key], item.what])
    return Case(argument={"specs": specs, "items": listed})


def _results(outcome: Outcome) -> list[dict[str, Any]]:
    assert isinstance(outcome.result, list)
    return cast("list[dict[str, Any]]", outcome.result)
