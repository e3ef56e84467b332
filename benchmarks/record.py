"""The record on real data: `python -m benchmarks.record`, with `../shared/data` beside the repository.

Grades all gsm8k solutions twice and all HumanEval programs, and prints how the verdicts agree with what is known.
"""

import gzip
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence

from assay import AssertTests, CodeTask, MathTask, Task, Verdict

from benchmarks.workloads import DATA, GSM8K_MODELS
from service.embedded import EmbeddedGrader
from service.settings import Settings


def main() -> None:
    """Grade and print."""
    if not DATA.is_dir():
        sys.exit("the real data is not beside the repository")
    with EmbeddedGrader(Settings()) as grader:
        _gsm8k(grader)
        _humaneval(grader)


def _gsm8k(grader: EmbeddedGrader) -> None:
    rows = [json.loads(line) for line in (DATA / "gsm8k" / "model_solutions.jsonl").read_text().splitlines()]
    pairs = [(row[model], row["ground_truth"].rpartition("A: ")[2]) for row in rows for model in GSM8K_MODELS]
    tasks: list[Task] = [
        MathTask(verifier="math", completion=solution["solution"], reference=reference) for solution, reference in pairs
    ]
    started = time.perf_counter()
    first = _grade(grader, tasks)
    seconds = time.perf_counter() - started
    second = _grade(grader, tasks)
    same = sum(_bytes(one) == _bytes(other) for one, other in zip(first, second, strict=True))
    agreed = sum(
        verdict.accuracy == float(solution["is_correct"]) for verdict, (solution, _) in zip(first, pairs, strict=True)
    )
    print(f"gsm8k: {agreed} of {len(tasks)} verdicts agree with the label; {_errors(first)}")
    print(
        f"gsm8k: {same} of {len(tasks)} verdicts are the same bytes in a second run; {len(tasks) / seconds:.0f} tasks/s"
    )


def _humaneval(grader: EmbeddedGrader) -> None:
    path = DATA / "humaneval" / "HumanEval.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for name, body in (("canonical solutions", None), ("bodies of `pass`", "    pass\n")):
        tasks: list[Task] = [
            CodeTask(
                verifier="code",
                completion=body or row["canonical_solution"],
                reference=AssertTests(
                    style="assert", code=row["test"], entry_point=row["entry_point"], prompt=row["prompt"]
                ),
            )
            for row in rows
        ]
        verdicts = _grade(grader, tasks)
        scores = Counter(verdict.accuracy for verdict in verdicts if verdict.status == "graded")
        shown = ", ".join(f"{count} × {score:g}" for score, count in sorted(scores.items()) if score is not None)
        print(f"HumanEval, {name}: accuracy {shown}; {_errors(verdicts)}")


def _grade(grader: EmbeddedGrader, tasks: Sequence[Task]) -> list[Verdict]:
    verdicts = dict(grader.grade(tasks))
    return [verdicts[index] for index in range(len(tasks))]


def _bytes(verdict: Verdict) -> bytes:
    return verdict.model_dump_json(exclude={"timing"}).encode()


def _errors(verdicts: Sequence[Verdict]) -> str:
    kinds = Counter(verdict.error.kind for verdict in verdicts if verdict.error is not None)
    return "errors: " + (", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items())) or "none")


if __name__ == "__main__":
    main()
