"""What is graded: gsm8k and HumanEval where they lie beside the repository, own-written tasks elsewhere."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from assay import AssertTests, CodeOptions, CodeTask, MathOptions, MathTask, StdinTest, StdinTests, Task

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"
GSM8K_MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


@dataclass(frozen=True, slots=True)
class Workload:
    """Tasks of one kind."""

    name: str
    source: str
    """Where the tasks come from, for the report."""
    tasks: list[Task]


def workloads() -> Iterator[Workload]:
    """Yield all workloads."""
    yield numbers_workload(20_000)
    yield expressions_workload(2000)
    yield stdin_workload(400)
    yield assert_workload(164)


def numbers_workload(count: int) -> Workload:
    """Return word problems with their numeric answers."""
    path = DATA / "gsm8k" / "model_solutions.jsonl"
    if path.is_file():
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        texts = [
            (row[model]["solution"], row["ground_truth"].rpartition("A: ")[2]) for row in rows for model in GSM8K_MODELS
        ]
        source = "gsm8k model solutions"
    else:
        texts = [(f"{a} boxes of {b} pens each.\nA: {a * b + a % 2}", str(a * b)) for a in range(40) for b in range(50)]
        source = "own-written products"
    options = MathOptions(extract=("boxed", "answer_tag", "marker"))
    tasks: list[Task] = [
        MathTask(verifier="math", completion=completion, reference=reference, options=options)
        for completion, reference in islice(cycle(texts), count)
    ]
    return Workload("math, numbers", source, tasks)


EXPRESSIONS = (
    (r"\boxed{(x+%d)^2}", r"x^2+%d x+%d", lambda k: (k, 2 * k, k * k)),
    (r"\boxed{\frac{%d}{\sqrt{2}}}", r"\frac{%d\sqrt{2}}{2}", lambda k: (k, k)),
    (r"\boxed{\{%d, 1\}}", r"\{1, %d\}", lambda k: (k, k)),
    (r"\boxed{\sin^2 x + \cos^2 x + %d}", r"%d", lambda k: (k, k + 1)),
    (r"\boxed{[%d, \infty)}", r"(%d, \infty)", lambda k: (k, k)),
    (r"\boxed{2^{%d} \cdot 3}", r"3 \cdot 2^{%d} + x", lambda k: (k % 30, k % 30)),
)
"""Answers and references with the numbers to put in; the last two pairs are unequal."""


def expressions_workload(count: int) -> Workload:
    """Return LaTeX answers that need computer algebra."""
    tasks: list[Task] = []
    for position in range(count):
        answer, reference, numbers = EXPRESSIONS[position % len(EXPRESSIONS)]
        values = numbers(2 + position // len(EXPRESSIONS))
        holes = answer.count("%d")
        tasks.append(
            MathTask(
                verifier="math",
                completion=f"So it is {answer % values[:holes]}.",
                reference=f"\\boxed{{{reference % values[holes:]}}}",
            )
        )
    return Workload("math, expressions", "own-written LaTeX", tasks)


STDIN_PROGRAMS = (
    "n = int(input())\nprint(sum(int(digit) for digit in str(n)))",
    "n = int(input())\nprint(sum(map(int, str(n))) + (n > 10**8))",
)
"""One that is right and one that is wrong for large numbers."""


def stdin_workload(count: int) -> Workload:
    """Return programs with three tests of standard input and output."""
    tests = StdinTests(
        style="stdin",
        tests=[StdinTest(input=f"{n}\n", output=f"{sum(map(int, str(n)))}\n") for n in (7, 998, 10**9 + 1)],
    )
    tasks: list[Task] = [
        CodeTask(verifier="code", completion=f"```python\n{program}\n```", reference=tests)
        for program in islice(cycle(STDIN_PROGRAMS), count)
    ]
    return Workload("code, stdin", "own-written, 3 tests each", tasks)


def assert_workload(count: int) -> Workload:
    """Return functions with assertions about them."""
    path = DATA / "humaneval" / "HumanEval.jsonl.gz"
    if path.is_file():
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        source = "HumanEval canonical solutions"
    else:
        rows = [_own_row(shift) for shift in range(20)]
        source = "own-written functions"
    return Workload("code, asserts", source, [_assert_task(row) for row in islice(cycle(rows), count)])


def _own_row(shift: int) -> dict[str, Any]:
    return {
        "prompt": "def shifted(n):\n",
        "canonical_solution": f"    return n + {shift}\n",
        "test": f"def check(candidate):\n    for n in range(5):\n        assert candidate(n) == n + {shift}\n",
        "entry_point": "shifted",
    }


def _assert_task(row: dict[str, Any]) -> Task:
    reference = AssertTests(style="assert", code=row["test"], entry_point=row["entry_point"], prompt=row["prompt"])
    # The canonical solutions continue the prompt, so they are code as they stand.
    options = CodeOptions(extract="raw")
    return CodeTask(verifier="code", completion=row["canonical_solution"], reference=reference, options=options)
