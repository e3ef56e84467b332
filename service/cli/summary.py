"""The summary of a run: scores by verifier, errors by kind, speed."""

from collections import Counter
from dataclasses import dataclass, field

from assay import Verdict
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(slots=True)
class Mean:
    """A mean over the values that are there."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        """Take a value; None is left out."""
        if value is not None:
            self.total += value
            self.count += 1

    def __str__(self) -> str:
        return f"{self.total / self.count:.3f}" if self.count else "–"


@dataclass(slots=True)
class Scores:
    """What one verifier's verdicts add up to."""

    tasks: int = 0
    errors: int = 0
    accuracy: Mean = field(default_factory=Mean)
    format: Mean = field(default_factory=Mean)
    reward: Mean = field(default_factory=Mean)

    def add(self, verdict: Verdict) -> None:
        """Take a verdict."""
        self.tasks += 1
        self.errors += verdict.status == "error"
        self.accuracy.add(verdict.accuracy)
        self.format.add(verdict.format)
        self.reward.add(verdict.reward)


class Summary:
    """Adds up verdicts as they come."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        self._all = Scores()
        self._by_verifier: dict[str, Scores] = {}

    def add(self, verdict: Verdict) -> None:
        """Take a verdict."""
        self._all.add(verdict)
        self._by_verifier.setdefault(verdict.verifier, Scores()).add(verdict)
        if verdict.error is not None:
            self.errors[verdict.error.kind] += 1

    def render(self, seconds: float) -> RenderableType:
        """Return the table; `seconds` is how long the grading took."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("verifier")
        for heading in ("tasks", "errors", "accuracy", "format", "reward"):
            table.add_column(heading, justify="right")
        for name, scores in sorted(self._by_verifier.items()):
            _add_row(table, name, scores)
        if len(self._by_verifier) > 1:
            table.add_section()
            _add_row(table, "all", self._all)
        lines: list[RenderableType] = [table]
        if self.errors:
            kinds = ", ".join(f"{count} × {kind}" for kind, count in sorted(self.errors.items()))
            lines.append(Text(f"Errors (no score, not counted in the means): {kinds}", style="red"))
        rate = self._all.tasks / max(seconds, 1e-9)
        lines.append(Text(f"{self._all.tasks} tasks in {seconds:.2f} s ({rate:.0f} tasks/s)"))
        return Group(*lines)


def _add_row(table: Table, name: str, scores: Scores) -> None:
    numbers = (scores.tasks, scores.errors, scores.accuracy, scores.format, scores.reward)
    table.add_row(name, *map(str, numbers))
