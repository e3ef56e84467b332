"""`assay demo`: the bundled tasks, graded in real sandboxes and shown as a table."""

import re
import sys
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from assay import RewardSpec, Task, Verdict
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.configuration import load_settings
from service.cli.embedding import embedded_grader
from service.cli.explain import explain, one_line
from service.cli.summary import Summary
from service.cli.task_file import TaskFile

TASKS = Path(__file__).with_name("demo_tasks.jsonl")
MAX_WIDTH = 100
_FENCE = re.compile(r"```(?:python)?\n?")


def command(
    *, workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; one a CPU when left out.")] = None
) -> None:
    """Grade the bundled tasks and show what was decided about each, and why."""
    console = Console(highlight=False)
    console.width = min(console.width, MAX_WIDTH) if console.is_terminal else MAX_WIDTH
    with TaskFile(str(TASKS)) as task_file:
        tasks = list(task_file)
    summary = Summary()
    verdicts: dict[int, Verdict] = {}
    with embedded_grader(load_settings(workers=workers)) as grader:
        started = time.monotonic()
        for index, verdict in grader.grade(tasks, RewardSpec()):
            verdicts[index] = verdict
            summary.add(verdict)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{len(verdicts)} of {len(tasks)} tasks graded")
        seconds = time.monotonic() - started
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    console.print(_table(tasks, [verdicts[index] for index in range(len(tasks))]))
    console.print(summary.render(seconds))
    console.print(
        "Some references are broken on purpose: each is an error, reported as such, and never a completion's 0."
    )
    console.print(Text(f"The tasks: {TASKS}", overflow="fold"))


def _table(tasks: list[Task], verdicts: list[Verdict]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, expand=True, header_style="bold underline")
    table.add_column("task", no_wrap=True, width=18)
    table.add_column("completion", no_wrap=True, width=24)
    table.add_column("extracted", no_wrap=True, width=11)
    for heading, width in (("acc", 4), ("fmt", 3), ("reward", 6)):
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    table.add_column("why", ratio=1)
    for topic, rows in groupby(zip(tasks, verdicts, strict=True), key=lambda row: _topic(row[0])):
        table.add_row(Text(topic, style="bold"))
        for task, verdict in rows:
            table.add_row(*_cells(task, verdict))
        table.add_row()
    return table


def _topic(task: Task) -> str:
    """Return the first word of the task's id, under which the demo lists it."""
    assert task.id is not None
    return task.id.partition("-")[0]


def _cells(task: Task, verdict: Verdict) -> Iterator[Text]:
    assert task.id is not None
    yield Text("  " + task.id.partition("-")[2], overflow="ellipsis")
    yield Text(one_line(_FENCE.sub("", task.completion)), style="dim", overflow="ellipsis")
    yield Text(one_line(verdict.extracted.text) if verdict.extracted else "–", overflow="ellipsis")
    yield _score(verdict.accuracy)
    yield _score(verdict.format)
    yield Text("–" if verdict.reward is None else f"{verdict.reward:.3g}")
    yield Text(explain(verdict), style="" if verdict.status == "graded" else "red")


def _score(value: float | None) -> Text:
    if value is None:
        return Text("–", style="dim")
    return Text(f"{value:.2g}", style="green" if value == 1 else "red" if value == 0 else "yellow")
