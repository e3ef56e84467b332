"""Prints tasks per second through Assay's workers beside plain subprocesses, and the cost of one sandboxed run."""

import os
import platform
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from assay import Task
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import mathematics
from benchmarks.floor import costs
from benchmarks.plain import grade_plainly
from benchmarks.structured import BATCH, comparisons, measure
from benchmarks.workloads import Workload, workloads
from service.embedded import EmbeddedGrader
from service.settings import Settings

PLAIN_SECONDS = 8.0
"""How long the plain way is measured for each workload; it does as many tasks as it can."""
OWN_SECONDS = 10.0
"""About how long Assay is measured for each workload, unless its tasks run out."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Tasks graded in some time, and their accuracies by position."""

    seconds: float
    accuracies: dict[int, float | None]

    @property
    def per_second(self) -> float:
        """Tasks a second."""
        return len(self.accuracies) / self.seconds


def main() -> None:
    """Measure and print."""
    console = Console(highlight=False, width=100)
    workers = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    console.print(
        f"{workers} CPUs, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}; "
        f"{workers} workers, {workers} plain processes at a time; load before the start {load:.1f}"
    )
    if load > 0.5 * workers:
        console.print("The machine is busy: all numbers are too low, though both sides suffer alike.")
    table = Table(box=box.SIMPLE_HEAD, title="Tasks per second", title_justify="left", pad_edge=False)
    for heading in ("verifier", "tasks from", "assay", "plain subprocess", "ratio", "same verdict"):
        table.add_column(heading, justify="left" if heading in ("verifier", "tasks from") else "right")
    with EmbeddedGrader(Settings(workers=workers)) as grader:
        for workload in workloads():
            table.add_row(workload.name, workload.source, *_compared(grader, workload, workers))
        console.print(table)
        console.print(_math_errors(grader))
        console.print(_math_speeds(grader))
    console.print(_structured(Settings(workers=workers)))
    floor = Table(box=box.SIMPLE_HEAD, title="One run", title_justify="left", pad_edge=False)
    floor.add_column("way")
    floor.add_column("p50, alone", justify="right")
    floor.add_column("runs/s, 2 at a time", justify="right")
    floor.add_column("of the bare fork", justify="right")
    for cost in costs():
        floor.add_row(cost.name, f"{cost.p50_ms:.2f} ms", f"{cost.per_second:.0f}", f"{cost.of_floor:.2f}×")
    console.print(floor)


def _math_errors(grader: EmbeddedGrader) -> Table:
    """Return the table of wrong verdicts on the math cases."""
    table = Table(box=box.SIMPLE_HEAD, title="math: wrong verdicts on its cases", title_justify="left", pad_edge=False)
    table.add_column("cases")
    rows = {
        "all": mathematics.errors(grader),
        "without options, which only Assay has": mathematics.errors_without_options(grader),
    }
    for way in rows["all"].wrong:
        table.add_column(way, justify="right")
    for name, found in rows.items():
        shares = (f"{count} ({count / found.cases:.1%})" for count in found.wrong.values())
        table.add_row(f"{found.cases} {name}", *shares)
    return table


def _math_speeds(grader: EmbeddedGrader) -> Table:
    """Return the table of pairs a second."""
    title = "math: pairs per second, plain math-verify in one warm process"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for heading in ("pairs", "assay", "math-verify", "ratio"):
        table.add_column(heading, justify="left" if heading == "pairs" else "right")
    for speed in mathematics.speeds(grader):
        table.add_row(speed.name, f"{speed.assay:.0f}", f"{speed.plain:.0f}", f"{speed.assay / speed.plain:.1f}×")
    return table


def _structured(settings: Settings) -> Table:
    """Return the table of structured answers."""
    title = f"Structured answers: tasks per second in batches of {BATCH}, bare libraries in one process"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    table.add_column("verifier")
    table.add_column("assay", justify="right")
    table.add_column("bare (same accuracy)")
    for comparison in comparisons():
        measured = measure(comparison, settings)
        bare = [
            f"{name} {rate:.0f} ({measured.agrees[name]}/{len(comparison.tasks)})"
            for name, rate in measured.bare.items()
        ]
        table.add_row(comparison.name, f"{measured.assay:.0f}", ", ".join(bare))
    return table


def _compared(grader: EmbeddedGrader, workload: Workload, workers: int) -> tuple[str, str, str, str]:
    own = _measure_own(grader, workload.tasks)
    plain = _measure_plain(workload.tasks, workers)
    both = own.accuracies.keys() & plain.accuracies.keys()
    same = sum(own.accuracies[index] == plain.accuracies[index] for index in both)
    ratio = own.per_second / plain.per_second
    return (
        f"{own.per_second:.0f}",
        f"{plain.per_second:.1f}",
        f"{ratio:.2g}×" if ratio < 10 else f"{ratio:.0f}×",
        f"{same}/{len(both)}",
    )


def _measure_own(grader: EmbeddedGrader, tasks: list[Task]) -> Rate:
    for _ in grader.grade(tasks[:16]):  # a first few, so that starting is not measured
        pass
    accuracies: dict[int, float | None] = {}
    started = time.perf_counter()
    for index, verdict in grader.grade(_until(started + OWN_SECONDS, tasks)):
        accuracies[index] = verdict.accuracy
    return Rate(time.perf_counter() - started, accuracies)


def _measure_plain(tasks: list[Task], workers: int) -> Rate:
    accuracies: dict[int, float | None] = {}
    started = time.perf_counter()
    source = enumerate(_until(started + PLAIN_SECONDS, tasks))
    turn = threading.Lock()

    def work(_: int) -> None:
        while True:
            with turn:
                index, task = next(source, (-1, None))
            if task is None:
                return
            accuracies[index] = grade_plainly(task)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, range(workers)))
    return Rate(time.perf_counter() - started, accuracies)


def _until(end: float, tasks: Iterable[Task]) -> Iterator[Task]:
    """Yield tasks until the time is up."""
    for task in tasks:
        if time.perf_counter() > end:
            return
        yield task


if __name__ == "__main__":
    main()
