"""The same work without Assay: a fresh Python process for every run, no isolation, no limits but a timeout."""

import json
import subprocess
import sys

from assay import AssertTests, CodeTask, MathTask, StdinTests, Task

_MATH_SCRIPT = """
import json, sys
from math_verify import parse, verify
from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig
asked = json.load(sys.stdin)
kinds = [LatexExtractionConfig(), ExprExtractionConfig()]
gold = parse(asked["reference"], kinds)
answer = parse(asked["completion"].rpartition("A: ")[2], kinds)
print(int(verify(gold, answer)))
"""


def grade_plainly(task: Task) -> float:
    """Return the accuracy that a plain script gives the task."""
    match task:
        case MathTask():
            return float(
                _run(_MATH_SCRIPT, json.dumps({"reference": task.reference, "completion": task.completion})) == "1\n"
            )
        case CodeTask(reference=StdinTests() as tests):
            program = task.completion.removeprefix("```python\n").removesuffix("\n```")
            return float(all(_run(program, test.input) == test.output for test in tests.tests))
        case CodeTask(reference=AssertTests() as tests):
            program = f"{tests.prompt}{task.completion}\n{tests.code}\ncheck({tests.entry_point})\nprint('passed')"
            return float(_run(program, "") == "passed\n")
    raise ValueError(f"no plain way to grade {task.verifier}")


def _run(program: str, stdin: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, input=stdin, capture_output=True, text=True, timeout=30
    )
    return done.stdout if done.returncode == 0 else ""
