"""Programs of other languages than Python, with their real compilers, in a real sandbox."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.code_runs import grade, judge, load
from verifiers.base import Failure, Judgement
from verifiers.code.languages import LANGUAGES

CASES = load("code_languages.jsonl")
EVERY = 1 if os.environ.get("ASSAY_TEST_ALL_PROGRAMS") else 16
"""Of so many real problems one is compiled, since compiling all takes minutes; all with the variable set."""
BROKEN = {
    "CPP/22": "includes boost/any.hpp, which is no part of the tool-chain",
    "JavaScript/112": "the solution returns (z, true), which is true and no array",
    "JavaScript/155": "the solution counts no digit in 0, for which its tests expect one even digit",
    "JavaScript/162": "requires the package js-md5",
}
"""Canonical solutions of HumanEval-X that do not pass their own tests here."""
REAL = {"cpp": ("cpp", "}\n"), "js": ("javascript", "}\n"), "java": ("java", "}\n}\n")}


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    with LocalSandboxes(SandboxConfig()) as opened:
        yield opened


def need(language: str) -> None:
    """Skip the test where the language's tool-chain is missing; CI has them all."""
    missing = LANGUAGES[language].missing()
    if missing and os.environ.get("CI"):
        pytest.fail(f"CI lacks {missing}")
    if missing:
        pytest.skip(f"no tool-chain for {language}: {missing}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    need(case["task"]["options"]["language"])
    (judged,) = grade(sandboxes, case["task"])
    expected = case["expected"]
    if "error" in expected:
        assert isinstance(judged, Failure), case["why"]
        assert (judged.kind, expected["says"] in judged.message) == (expected["error"], True)
    else:
        assert isinstance(judged, Judgement), judged
        assert {name: getattr(judged, name) for name in expected} == expected, (case["why"], judged)


def test_cases_are_many_and_named_once() -> None:
    ids = [case["id"] for case in CASES]
    assert len(ids) == len(set(ids)) >= 50


@pytest.mark.parametrize("file", REAL)
def test_humaneval_x(file: str, shared_data: Path, sandboxes: LocalSandboxes) -> None:
    language, empty = REAL[file]
    need(language)
    with gzip.open(shared_data / "humaneval-x" / f"humaneval_{file}.jsonl.gz", "rt", encoding="utf-8") as lines:
        problems = [json.loads(line) for line in lines]
    assert len(problems) == 164
    chosen = [p for n, p in enumerate(problems) if n % EVERY == 0 or (file == "js" and p["task_id"] in BROKEN)]
    for of_body, right in ((lambda p: p["canonical_solution"], 1.0), (lambda _: empty, 0.0)):
        tasks = [
            {
                "completion": of_body(problem),
                "reference": {"style": "assert", "prompt": problem["prompt"], "code": problem["test"]},
                "options": {"language": language, "extract": "raw"},
            }
            for problem in chosen
        ]
        for problem, judged in zip(chosen, grade(sandboxes, *tasks), strict=True):
            assert isinstance(judged, Judgement), (problem["task_id"], judged)
            is_broken = problem["task_id"] in BROKEN
            assert judged.accuracy == (0.0 if is_broken else right), (problem["task_id"], judged)


def test_a_program_is_compiled_once(sandboxes: LocalSandboxes) -> None:
    need("cpp")
    code = "#include <cstdio>\nint main() { std::puts(__TIME__); }"
    shown = set()
    for _ in range(2):
        tests = [{"input": "", "output": "never"}]
        task = {"completion": f"```cpp\n{code}\n```", "reference": {"style": "stdin", "tests": tests}}
        judged = judge(sandboxes, {**task, "options": {"language": "cpp"}})
        shown.add(json.dumps(judged.details))
    assert len(shown) == 1
