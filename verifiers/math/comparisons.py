"""Has comparisons made in sandboxes: first many in one child, then each that did not end there in one of its own.

What a child of many returns is what a child of one would have returned, so that a neighbour changes no verdict: a
comparison that is slow, or whose child dies, is made again alone, and what happens there counts.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from sandboxes.base import Case, Job, Limits, Outcome, Profile, Sandboxes

PROFILE = Profile(
    "math",
    modules=(
        "verifiers.math.descent",
        "verifiers.math.leaves",
        "verifiers.math.reading",
        "verifiers.math.sizes",
        "verifiers.math.expressions",
        "verifiers.math.comparing",
        "verifiers.math.values",
        "verifiers.math.patterns",
        "verifiers.math.engine",
    ),
    packages=("sympy", "mpmath", "latex2sympy2_extended", "antlr4", "re2"),
)

LIMITS = Limits(
    cpu_seconds=0.9,  # with the tenth of a second that it had among others, no comparison takes more than one
    wall_seconds=60.0,
    memory_bytes=1 << 30,
    output_bytes=64 << 10,
    result_bytes=256 << 10,
    processes=8,
    file_bytes=1 << 20,
)

_IN_ONE_CHILD = 32
_Run = Callable[[Sequence[JsonValue], str, Limits], list[Outcome]]


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of one comparison."""

    result: JsonValue
    """What `verifiers.math.engine.compare` returned; None when it did not."""
    outcome: Outcome
    """Of the child it was made in; with others' CPU time taken off."""

    @property
    def returned(self) -> bool:
        """Whether there is a result."""
        return self.result is not None


def compare_all(arguments: Mapping[Hashable, JsonValue], sandboxes: Sandboxes) -> dict[Hashable, Compared]:
    """Make every comparison, each described by an argument of `verifiers.math.engine.compare`, by its key."""

    def run(cases: Sequence[JsonValue], function: str, limits: Limits) -> list[Outcome]:
        if not cases:
            return []
        job = Job(
            guest=f"verifiers.math.engine:{function}", cases=[Case(argument=case) for case in cases], limits=limits
        )
        return sandboxes.run(PROFILE, job)

    compared = _compare_together(arguments, run) if len(arguments) > 1 else {}
    alone = [key for key in arguments if key not in compared]
    outcomes = run([arguments[key] for key in alone], "compare", LIMITS)
    return compared | {
        key: Compared(outcome.result if outcome.returned else None, outcome)
        for key, outcome in zip(alone, outcomes, strict=True)
    }


def _compare_together(arguments: Mapping[Hashable, JsonValue], run: _Run) -> dict[Hashable, Compared]:
    """Compare many in one child; leave out those that are to be made alone."""
    compared: dict[Hashable, Compared] = {}
    waiting = list(arguments)
    while waiting:
        groups = [waiting[start : start + _IN_ONE_CHILD] for start in range(0, len(waiting), _IN_ONE_CHILD)]
        outcomes = run([[arguments[key] for key in group] for group in groups], "compare_together", LIMITS)
        waiting = []
        for group, outcome in zip(groups, outcomes, strict=True):
            if not outcome.returned or not isinstance(outcome.result, list):
                continue  # each alone
            results = outcome.result
            share = replace(outcome, cpu_seconds=outcome.cpu_seconds / max(1, len(results)))
            compared |= {
                key: Compared(result, share) for key, result in zip(group, results, strict=False) if result is not None
            }
            waiting += group[len(results) :]
    return compared
