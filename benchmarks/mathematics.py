"""The math verifier beside plain math-verify and string equality: how often each is wrong, and how fast."""

import json
import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

from assay import MathTask, Task, Verdict

from benchmarks.workloads import ROOT, numbers_workload
from service.embedded import EmbeddedGrader
from service.settings import Settings

CASES = ROOT / "tests" / "cases" / "math.jsonl"
SECONDS = 5.0
"""How long each way is measured for each workload."""
EVERY = 1
"""Takes each so many-th case."""
PLAIN_TIMEOUT_SECONDS = 1
"""Of math-verify, for parsing and for comparing; it is given up after three times as long."""

Pair = tuple[str, str]
"""A completion and its reference."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Wrong verdicts on the cases, by way."""

    cases: int
    wrong: dict[str, int]


@dataclass(frozen=True, slots=True)
class Speed:
    """Pairs a second on one workload."""

    name: str
    assay: float
    plain: float


@dataclass
class _Kinds:
    """Pairs of the cases, by what decides them."""

    exact: list[Pair] = field(default_factory=list)
    number: list[Pair] = field(default_factory=list)
    symbolic: list[Pair] = field(default_factory=list)


def errors(grader: EmbeddedGrader) -> Errors:
    """Grade all cases that have a verdict in the three ways.

    The other ways know no options, so the cases that need some are among their errors; a table without those is shown
    beside it by `errors_without_options`.
    """
    return _errors(grader, _cases())


def errors_without_options(grader: EmbeddedGrader) -> Errors:
    """Grade the cases that set no option."""
    return _errors(grader, [case for case in _cases() if not case.get("options") and not case.get("format")])


def speeds(grader: EmbeddedGrader) -> Iterator[Speed]:
    """Measure gsm8k, a mix of thirds, and its last third alone; the pairs are those of cases that break no bound."""
    numbers = numbers_workload(2000)
    answers = [(task.completion, str(task.reference)) for task in numbers.tasks if isinstance(task, MathTask)]
    yield _speed(grader, f"plain numbers ({numbers.source})", answers)
    kinds = _pairs_by_kind(grader)
    size = len(kinds.symbolic)
    mixed = zip(islice(cycle(kinds.exact), size), islice(cycle(kinds.number), size), kinds.symbolic, strict=True)
    yield _speed(grader, "exact, number, sympy: a third each", [pair for three in mixed for pair in three])
    yield _speed(grader, "the third that needs sympy", kinds.symbolic)


def _cases() -> list[dict[str, Any]]:
    """Return the cases that have a verdict, texts written out."""
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()][::EVERY]
    for case in cases:
        if isinstance(case["completion"], dict):
            piece, count, tail = case["completion"]["repeat"]
            case["completion"] = piece * count + tail
    longest = Settings().max_completion_chars
    return [case for case in cases if "accuracy" in case["expected"] and len(case["completion"]) <= longest]


def _errors(grader: EmbeddedGrader, cases: list[dict[str, Any]]) -> Errors:
    verdicts = _verdicts(grader, [_task(case) for case in cases])
    expected = [float(case["expected"]["accuracy"]) for case in cases]
    plain = _PlainProcess()
    try:
        wrong = {
            "assay": sum(verdict.accuracy != right for verdict, right in zip(verdicts, expected, strict=True)),
            "math-verify": sum(
                plain.grade(case["completion"], _first(case["reference"])) != right
                for case, right in zip(cases, expected, strict=True)
            ),
            "string equality": sum(_same_text(case) != right for case, right in zip(cases, expected, strict=True)),
        }
    finally:
        plain.end()
    return Errors(len(cases), wrong)


def _task(case: dict[str, Any]) -> Task:
    return MathTask.model_validate(
        {
            "verifier": "math",
            "completion": case["completion"],
            "reference": case["reference"],
            "options": case.get("options", {}),
            "format": case.get("format"),
        }
    )


def _verdicts(grader: EmbeddedGrader, tasks: list[Task]) -> list[Verdict]:
    found = dict(grader.grade(tasks))
    return [found[position] for position in range(len(tasks))]


def _same_text(case: dict[str, Any]) -> float:
    """Compare what the last box holds, or else the whole completion, with the reference as texts."""
    text = case["completion"]
    start = text.rfind(r"\boxed{")
    answer = text[start + 7 : text.rfind("}")] if start >= 0 else text
    references = case["reference"] if isinstance(case["reference"], list) else [case["reference"]]
    return float(answer.strip() in {reference.strip() for reference in references})


def _first(reference: str | list[str]) -> str:
    return reference if isinstance(reference, str) else reference[0]


def _pairs_by_kind(grader: EmbeddedGrader) -> _Kinds:
    kinds = _Kinds()
    cases = [case for case in _cases() if isinstance(case["reference"], str) and len(case["completion"]) < 500]
    cases = [case for case in cases if not case.get("options") and not case.get("format")]
    for case, verdict in zip(cases, _verdicts(grader, [_task(case) for case in cases]), strict=True):
        pair = case["completion"], case["reference"]
        decided_by = verdict.details.get("decided_by")
        if verdict.extracted is None or verdict.reason not in {"equal", "different"}:
            continue
        if verdict.extracted.text.strip() == case["reference"].strip():
            kinds.exact.append(pair)
        elif decided_by == "number":
            kinds.number.append(pair)
        elif decided_by == "symbolic" and verdict.timing.cpu_ms < 200:
            kinds.symbolic.append(pair)
    return kinds


def _speed(grader: EmbeddedGrader, name: str, pairs: list[Pair]) -> Speed:
    tasks: list[Task] = [
        MathTask(verifier="math", completion=completion, reference=reference) for completion, reference in pairs
    ]
    for _ in grader.grade(tasks[:64]):  # a first few, so that starting is not measured
        pass
    started = time.perf_counter()
    done = sum(1 for _ in grader.grade(_until(started + SECONDS, tasks)))
    assay = done / (time.perf_counter() - started)
    return Speed(name, assay, _plain_speed(pairs))


def _until(end: float, tasks: list[Task]) -> Iterator[Task]:
    for task in cycle(tasks):
        if time.perf_counter() > end:
            return
        yield task


def _plain_speed(pairs: list[Pair]) -> float:
    plain = _PlainProcess()
    try:
        plain.grade(*pairs[0])
        started = time.perf_counter()
        for done, (completion, reference) in enumerate(cycle(pairs), start=1):
            plain.grade(completion, reference)
            if time.perf_counter() - started > SECONDS:
                return done / (time.perf_counter() - started)
    finally:
        plain.end()
    raise AssertionError("the cycle ended")


class _PlainProcess:
    """A warm process that does parse, parse, verify, and is replaced when it hangs."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def grade(self, completion: str, reference: str) -> float:
        """Return the accuracy that plain math-verify gives; a hang is a 0."""
        with suppress(EOFError, OSError):
            self._ours.send((completion, reference))
            if self._ours.poll(3 * PLAIN_TIMEOUT_SECONDS):
                return float(self._ours.recv())
        self.end()
        self._start()
        return 0.0

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._ours.close()

    def _start(self) -> None:
        self._ours, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_grade_plainly, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._ours.recv()  # it is warm


def _grade_plainly(channel: multiprocessing.connection.Connection) -> None:
    """Grade what comes over the channel until it is closed."""
    from math_verify import parse, verify  # noqa: PLC0415 - slow to load, and needed in this process only

    timeout = PLAIN_TIMEOUT_SECONDS
    read: Callable[[str], Any] = lambda text: parse(text, parsing_timeout=timeout)  # noqa: E731
    verify(read("$2$"), read(r"\boxed{2}"))
    channel.send(None)
    while True:
        try:
            completion, reference = channel.recv()
        except EOFError:
            return
        try:
            right = verify(read(rf"\boxed{{{reference}}}"), read(completion), timeout_seconds=timeout)
        except Exception:  # whatever it fails with, it gives no reward
            right = False
        channel.send(bool(right))
