"""The math verifier through its real sandbox: cases, field reports, real data, batches, limits."""

import json
import random
import time
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from assay.tasks import MathTask

from sandboxes.base import Job, Outcome, Profile
from sandboxes.pool import LocalSandboxes, SandboxConfig
from verifiers.base import Failure, Judgement
from verifiers.math.verifier import MathVerifier

CASES = Path(__file__).resolve().parent.parent / "cases"
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
OPEN_REPORTS: dict[str, str] = json.loads((CASES / "field_reports_open.json").read_text(encoding="utf-8"))


class Counting:
    """The real sandboxes, and how many jobs and cases they ran."""

    def __init__(self, inner: LocalSandboxes) -> None:
        self.inner = inner
        self.jobs = 0
        self.cases = 0

    def run(self, profile: Profile, job: Job) -> list[Outcome]:
        self.jobs += 1
        self.cases += len(job.cases)
        return self.inner.run(profile, job)


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def expand(text: str | dict[str, Any]) -> str:
    """`{"repeat": [a, n, b]}` stands for a·n + b."""
    if isinstance(text, str):
        return text
    piece, count, tail = text["repeat"]
    return str(piece) * int(count) + str(tail)


def task_of(case: dict[str, Any]) -> MathTask:
    return MathTask.model_validate(
        {
            "verifier": "math",
            "completion": expand(case["completion"]),
            "reference": case["reference"],
            "options": case.get("options", {}),
            "format": case.get("format"),
        }
    )


def grade(tasks: Sequence[MathTask], sandboxes: LocalSandboxes | Counting) -> list[Judgement | Failure]:
    return list(MathVerifier().grade(tasks, sandboxes))


def facts(verdict: Judgement | Failure) -> tuple[object, ...]:
    """Everything of a verdict that must not differ between runs."""
    if isinstance(verdict, Failure):
        return verdict.kind, verdict.message
    extracted = (verdict.extracted.text, verdict.extracted.source) if verdict.extracted else None
    return verdict.reason, verdict.accuracy, verdict.format, extracted, json.dumps(verdict.details), verdict.integrity


def boxed(answer: str, reference: str | list[str]) -> MathTask:
    return MathTask(verifier="math", completion=f"\\boxed{{{answer}}}", reference=reference)


@pytest.mark.parametrize("case", load(CASES / "math.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    task = task_of(case)
    started = time.process_time()
    (verdict,) = grade([task], sandboxes)
    assert time.process_time() - started < 3.0, "the worker's own time is linear in the completion"
    expected = case["expected"]
    if isinstance(verdict, Failure):
        assert {"error": verdict.kind} == expected, (case["why"], verdict.message)
        assert verdict.message.startswith(("reference", "options.pattern"))
        return
    got = {"accuracy": verdict.accuracy, "reason": verdict.reason}
    assert got | expected == got, (case["why"], verdict)


def test_cases_are_many_and_balanced() -> None:
    cases = load(CASES / "math.jsonl")
    ids = [case["id"] for case in cases]
    assert len(ids) == len(set(ids)) >= 150
    right = sum(case["expected"].get("accuracy") == 1 for case in cases)
    wrong = sum(case["expected"].get("accuracy") == 0 for case in cases)
    assert 0.8 < right / wrong < 1.25


def test_batch_neighbours_change_nothing(sandboxes: LocalSandboxes) -> None:
    """A third of the cases alone, and all of them in one batch in another order: one verdict each."""
    costly = ("flood", "big-", "huge-matrix", "endless")
    cases = [case for case in load(CASES / "math.jsonl") if not any(word in case["id"] for word in costly)]
    tasks = [task_of(case) for case in cases]
    order = random.Random(1).sample(range(len(tasks)), len(tasks))
    together = dict(zip(order, grade([tasks[index] for index in order], sandboxes), strict=True))
    for index in range(0, len(tasks), 3):
        (alone,) = grade([tasks[index]], sandboxes)
        assert facts(together[index]) == facts(alone), cases[index]["id"]


def test_batch_is_one_job_and_one_child(sandboxes: LocalSandboxes) -> None:
    counting = Counting(sandboxes)
    answers = [r"\frac{\sqrt{8}}{2}", r"\sqrt{3}", r"2^{1/2}", r"\frac{\sqrt{8}}{2}", "5"] * 8
    verdicts = grade([boxed(answer, r"\sqrt{2}") for answer in answers], counting)
    assert [verdict.accuracy for verdict in verdicts if isinstance(verdict, Judgement)] == [1.0, 0.0, 1.0, 1.0, 0.0] * 8
    assert (counting.jobs, counting.cases) == (1, 1)


def test_plain_answers_need_no_sandbox(sandboxes: LocalSandboxes) -> None:
    counting = Counting(sandboxes)
    verdicts = grade([boxed("18", "18.0"), boxed("1,234", "1234"), boxed("(B)", "B"), boxed("7", "8")], counting)
    assert [verdict.accuracy for verdict in verdicts if isinstance(verdict, Judgement)] == [1.0, 1.0, 1.0, 0.0]
    assert counting.jobs == 0


def test_only_the_answer_that_breaks_a_limit_pays(sandboxes: LocalSandboxes) -> None:
    endless = boxed(r"\prod_{k=1}^{16000}(\sqrt{k}+x)", "7")
    verdicts = grade([boxed(r"\sqrt{49}", "7"), endless, boxed(r"\sqrt{50}", "7")], sandboxes)
    assert [(v.accuracy, v.reason) for v in verdicts if isinstance(v, Judgement)] == [
        (1.0, "equal"),
        (0.0, "cpu_timeout"),
        (0.0, "different"),
    ]


def test_example_is_graded_one(sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([MathTask.model_validate(MathVerifier.example)], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


def test_field_reports(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """Every report gets its verdict, those that hang on a policy too; the open ones must fail."""
    rows = [row for row in load(shared_data.parent / "cases" / "field_reports.jsonl") if row["verifier"] == "math"]
    assert len(rows) >= 62
    tasks = [
        MathTask(verifier="math", completion=row["input"]["completion"], reference=row["input"]["gold"]) for row in rows
    ]
    wrong = {
        row["id"]
        for row, verdict in zip(rows, grade(tasks, sandboxes), strict=True)
        if not isinstance(verdict, Judgement) or verdict.accuracy != row["expected"]["accuracy"]
    }
    assert wrong == set(OPEN_REPORTS)


def gsm8k_tasks(shared_data: Path) -> list[tuple[int, str, bool, MathTask]]:
    """All four models' solutions of all problems, with their labels."""
    problems = load(shared_data / "gsm8k" / "model_solutions.jsonl")
    return [
        (
            index,
            model,
            problem[model]["is_correct"],
            MathTask(
                verifier="math",
                completion=problem[model]["solution"],
                reference=problem["ground_truth"].rsplit("A: ", 1)[1],
            ),
        )
        for index, problem in enumerate(problems)
        for model in MODELS
    ]


def test_gsm8k_solutions_agree_with_their_labels(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """2,800 real solutions, twice: the same verdicts, and every disagreement with a label is an explained one."""
    rows = gsm8k_tasks(shared_data)
    assert len(rows) == 2800
    tasks = [task for _, _, _, task in rows]
    size = MathVerifier.batch_size
    first = [v for at in range(0, len(tasks), size) for v in grade(tasks[at : at + size], sandboxes)]
    second = [v for at in range(0, len(tasks), 7) for v in grade(tasks[at : at + 7], sandboxes)]
    assert [facts(verdict) for verdict in first] == [facts(verdict) for verdict in second]
    disagreements = {
        (index, model, label, verdict.accuracy if isinstance(verdict, Judgement) else verdict.kind)
        for (index, model, label, _), verdict in zip(rows, first, strict=True)
        if isinstance(verdict, Failure) or verdict.accuracy != float(label)
    }
    explained = load(CASES / "gsm8k_disagreements.jsonl")
    assert disagreements == {(row["problem"], row["model"], row["label"], row["verdict"]) for row in explained}


def readable_references(shared_data: Path, sandboxes: LocalSandboxes) -> list[dict[str, str]]:
    """A fifth of the real references, those that can be read, after checking that each of them equals itself."""
    rows = load(shared_data / "math" / "reference_answers.jsonl")[::5]
    size = MathVerifier.batch_size
    tasks = [boxed(row["answer"], row["answer"]) for row in rows]
    verdicts = [verdict for at in range(0, len(tasks), size) for verdict in grade(tasks[at : at + size], sandboxes)]
    wrong = [
        (row["answer"], verdict)
        for row, verdict in zip(rows, verdicts, strict=True)
        if (isinstance(verdict, Judgement) and verdict.accuracy != 1.0)
        or (isinstance(verdict, Failure) and verdict.kind != "bad_reference")
    ]
    assert wrong == []
    return [row for row, verdict in zip(rows, verdicts, strict=True) if isinstance(verdict, Judgement)]


SAME_VALUE = {frozenset(("5", "5 : 1"))}
"""Reference answers of one source that differ as texts and have one value."""


def test_reference_answers_equal_themselves_and_no_other(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """780 real references: nine in ten can be read, each is equal to itself, and 880 pairs that differ are not."""
    rows = readable_references(shared_data, sandboxes)
    assert len(rows) > 0.87 * 780
    by_source: dict[str, list[str]] = {}
    for row in rows:
        by_source.setdefault(row["source"], []).append(row["answer"])
    large = [source for source, answers in by_source.items() if len(answers) > 20]
    choose = random.Random(11)
    equal = []
    for _ in range(8):  # all pairs of eleven at a time, so that each is parsed once
        pairs = list(permutations(choose.sample(by_source[choose.choice(large)], 11), 2))
        verdicts = grade([boxed(answer, reference) for reference, answer in pairs], sandboxes)
        equal += [
            (pair, verdict)
            for pair, verdict in zip(pairs, verdicts, strict=True)
            if not isinstance(verdict, Judgement) or (verdict.accuracy != 0.0 and frozenset(pair) not in SAME_VALUE)
        ]
    assert equal == []
