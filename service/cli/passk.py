"""`assay passk`: pass@k of graded samples, and how many prompts were never solved: the check before training."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from assay.evaluation import evaluate_prompts
from assay.groups import PassAtKResponse, PromptCount
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from service.cli.errors import InputError

_HELP_SAMPLES = "JSON Lines of graded samples, as `assay grade` writes them, or of counts; - reads standard input."


def command(
    samples: Annotated[str, typer.Argument(help=_HELP_SAMPLES)],
    *,
    k: Annotated[str, typer.Option("--k", help="The ks, separated by commas.")] = "1,8,64",
    confidence: Annotated[float, typer.Option(min=0.01, max=0.999, help="Of the intervals.")] = 0.95,
    plot: Annotated[
        Path | None, typer.Option(help="Where the PNG goes; beside the samples when left out.", dir_okay=False)
    ] = None,
) -> None:
    """Estimate pass@k from graded samples.

    Each line is a sample with its `accuracy`, and its prompt in `prompt`, or in `id` before the last `/`; or it is a
    prompt's counts, `samples` and `correct`. Samples whose grading failed are left out and counted. A table goes to
    standard output, a plot into a PNG file.
    """
    ks = _ks(k)
    lines = sys.stdin if samples == "-" else _opened(samples)
    prompts, errors = _counted(lines, "<stdin>" if samples == "-" else samples)
    result = evaluate_prompts(prompts, ks, confidence)
    target = plot or (Path("passk.png") if samples == "-" else Path(samples).with_suffix(".passk.png"))
    _draw(result, target)
    console = Console(highlight=False)
    console.print(_table(result, confidence))
    console.print(_summary(result, prompts, errors))
    console.print(f"plot: {target}", soft_wrap=True)


def _ks(text: str) -> list[int]:
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise InputError(f"--k: {text!r} is no list of whole numbers such as 1,8,64") from None
    if ks[0] < 1:
        raise InputError(f"--k: {ks[0]} is less than 1")
    return ks


def _opened(name: str) -> Iterable[str]:
    try:
        return Path(name).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _counted(lines: Iterable[str], label: str) -> tuple[list[PromptCount], int]:
    """Return each prompt's counts in order of appearance, and how many samples had no verdict."""
    counts: dict[str, list[int]] = {}
    errors = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            prompt, samples, correct = _read(json.loads(line), str(number))
        except (ValueError, TypeError) as error:
            raise InputError(f"{label}:{number}: {error}") from None
        errors += samples == 0
        entry = counts.setdefault(prompt, [0, 0])
        entry[0] += samples
        entry[1] += correct
    prompts = [PromptCount(id=name[:256], samples=n, correct=c) for name, (n, c) in counts.items() if n]
    if not prompts:
        raise InputError(f"{label} holds no graded samples")
    return prompts, errors


def _read(entry: Any, number: str) -> tuple[str, int, int]:
    """Return the prompt of a line, its samples (0 when the grading failed) and how many of them are right."""
    if not isinstance(entry, dict):
        raise TypeError("a line must be a JSON object")
    name = entry.get("prompt")
    if name is None and isinstance(entry.get("id"), str):
        name = entry["id"].rpartition("/")[0] or entry["id"]
    if "samples" in entry or "correct" in entry:
        try:
            count = PromptCount(samples=entry.get("samples"), correct=entry.get("correct"))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'counts'}: {first['msg']}") from None
        return str(number if name is None else name), count.samples, count.correct
    if name is None:
        raise ValueError("which prompt? give `prompt`, or an `id` such as p1/0")
    if entry.get("status") == "error":
        return str(name), 0, 0
    accuracy = entry.get("accuracy")
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
        raise ValueError("no `accuracy`; grade the samples first: assay grade TASKS -o SAMPLES")
    return str(name), 1, int(accuracy == 1.0)


def _table(result: PassAtKResponse, confidence: float) -> Table:
    table = Table("k", "pass@k", f"{confidence:.0%} interval", "prompts")
    for column in table.columns:
        column.justify = "right"
    for entry in result.estimates:
        if entry.value is None or entry.low is None or entry.high is None:
            table.add_row(str(entry.k), "–", "no prompt has so many samples", "0")
        else:
            table.add_row(str(entry.k), f"{entry.value:.4f}", f"{entry.low:.4f} … {entry.high:.4f}", str(entry.prompts))
    return table


def _summary(result: PassAtKResponse, prompts: list[PromptCount], errors: int) -> str:
    between = result.prompts - result.never_solved - result.always_solved
    lines = [
        f"{result.prompts} prompts, {sum(prompt.samples for prompt in prompts)} graded samples",
        f"never solved {result.never_solved}, always solved {result.always_solved}, in between {between}",
        f"only the {between / result.prompts:.0%} in between teach a group-relative trainer anything now",
    ]
    if errors:
        lines.append(f"{errors} samples had no verdict and are left out")
    return "\n".join(lines)


def _draw(result: PassAtKResponse, target: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - slow to load
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 4), layout="constrained")
    FigureCanvasAgg(figure)
    curve, histogram = figure.subplots(1, 2)
    known = [entry for entry in result.estimates if entry.value is not None]
    if known:
        ks = [entry.k for entry in known]
        curve.plot(ks, [entry.value for entry in known], marker="o")
        curve.fill_between(ks, [entry.low or 0.0 for entry in known], [entry.high or 0.0 for entry in known], alpha=0.2)
        curve.set_xscale("log", base=2)
        curve.set_xticks(ks, [str(k) for k in ks])
    curve.set_ylim(0, 1)
    curve.set_xlabel("k")
    curve.set_ylabel("pass@k")
    curve.set_title(f"{result.prompts} prompts")
    histogram.hist(result.success_rates, bins=20, range=(0, 1))
    histogram.set_xlabel("success rate of a prompt")
    histogram.set_ylabel("prompts")
    histogram.set_title(f"never solved {result.never_solved}, always solved {result.always_solved}")
    try:
        figure.savefig(target, format="png", dpi=120)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from None
