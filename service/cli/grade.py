"""`assay grade`: a file of tasks in, a file of verdicts out."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Protocol

import typer
from assay import FormatSpec, RewardSpec, Task, Verdict
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from service.cli.configuration import load_settings
from service.cli.embedding import embedded_grader
from service.cli.errors import VERDICT_ERRORS, InputError
from service.cli.remote import RemoteGrader
from service.cli.summary import Summary
from service.cli.task_file import TaskFile
from service.cli.verdict_file import VerdictFile
from service.settings import Settings


class Grader(Protocol):
    """What both ways of grading offer."""

    def grade(
        self, tasks: Iterable[Task], reward: RewardSpec, format: FormatSpec | None
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield (position, verdict), each task's exactly once, in any order."""
        ...


def command(
    tasks: Annotated[str, typer.Argument(help="JSON Lines file of tasks, plain or gzip; - reads standard input.")],
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="File for the verdicts; - writes standard output.")],
    url: Annotated[str | None, typer.Option(help="Grade by the service at this address instead of here.")] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar="ASSAY_API_KEY", help="Key for the service; better given by the environment.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes (without --url); one a CPU.")] = None,
    reward_accuracy: Annotated[float, typer.Option(help="Weight of the accuracy score.")] = 1.0,
    reward_format: Annotated[float, typer.Option(help="Weight of the format score.")] = 1.0,
    reward_combine: Annotated[str, typer.Option(help="sum, or gate: accuracy counts only where format is 1.")] = "sum",
    format_spec: Annotated[
        str | None, typer.Option("--format", help='Form to score where a task asks for none, as JSON; "{}" is R1\'s.')
    ] = None,
) -> None:
    """Grade a file of tasks.

    Verdicts are written in the tasks' order, one JSON line each, and the file appears only when it is complete. Ends
    with 1 when a task ended in an error, 2 when the input is wrong, 3 when grading is impossible here and now.
    """
    reward = _reward(reward_accuracy, reward_format, reward_combine)
    form = _format(format_spec)
    settings = load_settings(workers=workers)
    summary = Summary()
    with TaskFile(tasks) as task_file:
        task_file.check(settings if url is None else None)
        with VerdictFile(output) as verdict_file, _grader(url, api_key, settings) as grader:
            started = time.monotonic()
            for index, verdict in _shown(grader.grade(task_file, reward, form), task_file.count):
                verdict_file.add(index, verdict)
                summary.add(verdict)
            seconds = time.monotonic() - started
            verdict_file.commit(task_file.count)
    Console(stderr=output == "-", highlight=False).print(summary.render(seconds))
    if summary.errors:
        raise typer.Exit(VERDICT_ERRORS)


@contextmanager
def _grader(url: str | None, api_key: str | None, settings: Settings) -> Iterator[Grader]:
    """Provide what grades: the service at `url`, or workers of this machine."""
    if url is not None:
        yield RemoteGrader(url, api_key)
        return
    with embedded_grader(settings) as grader:
        yield grader


def _shown(verdicts: Iterable[tuple[int, Verdict]], total: int) -> Iterator[tuple[int, Verdict]]:
    """Pass the verdicts on, with a progress bar where a person looks on."""
    console = Console(stderr=True)
    columns = (TextColumn("grading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield from progress.track(verdicts, total=total)


def _reward(accuracy: float, format: float, combine: str) -> RewardSpec:
    try:
        return RewardSpec.model_validate(
            {"accuracy_weight": accuracy, "format_weight": format, "combine": combine},
        )
    except ValidationError as error:
        raise InputError(f"the reward options are not valid: {_first(error)}") from None


def _format(text: str | None) -> FormatSpec | None:
    try:
        return FormatSpec.model_validate_json(text) if text is not None else None
    except ValidationError as error:
        raise InputError(f"--format is not valid: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False)[0]
    field = ".".join(map(str, detail["loc"]))
    return f"{field}: {detail['msg']}" if field else detail["msg"]
