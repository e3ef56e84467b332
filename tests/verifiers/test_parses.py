"""The parses verifier through its real sandbox."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from assay import ParsesTask, Task

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.structured_cases import CASES, Counting, assert_expected, facts, grade, load, task_of
from verifiers.base import Failure, Judgement
from verifiers.parses.verifier import ParsesVerifier


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


@pytest.mark.parametrize("case", load(CASES / "parses.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([task_of("parses", case)], sandboxes)
    assert_expected(case, verdict)


def test_cases_are_many() -> None:
    cases = load(CASES / "parses.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 50


def test_neighbours_change_nothing(sandboxes: LocalSandboxes) -> None:
    cases = [case for case in load(CASES / "parses.jsonl") if not case.get("costly")]
    tasks = [task_of("parses", case) for case in cases]
    counting = Counting(sandboxes)
    together = list(reversed(grade(reversed(tasks), counting)))
    assert (counting.jobs, counting.cases) == (1, 1)
    for case, task, verdict in zip(cases[::4], tasks[::4], together[::4], strict=True):
        (alone,) = grade([task], sandboxes)
        assert facts(alone) == facts(verdict), case["id"]


SOUP = {
    "sql": "SELECT FROM WHERE ( ) , ; * = 'a' \"b AS JOIN ON CASE WHEN END CAST :: OVER [ ] { ? : -> -- /* 1e5 \\",
    "python": "def return if else ( ) [ ] { } : , . = ** lambda x 1 2.5 'a' f'{x}' # import async yield _ := \\ !",
    "yaml": "a b : - ? | > & * ! % @ { } [ ] , # --- <<: &a *a !!int !!python/name:x !!binary !!set !!omap 2001-13-45",
    "toml": "a b = 1 'x' [ ] [[ ]] { } , . # true 1979-05-27 07:32:00 1e5 inf \"\"\" ''' \\",
    "xml": "<a> </a> <b/> <![CDATA[ ]]> <!-- --> &amp; &#0; &#x110000; & < > x='1' <x:a> <?p ?> <!DOCTYPE",
    "csv": 'a , " "" 1 ; | \x00',
    "json": '{ } [ ] , : "a" 1 -0 1e5 1e999 true null \\ " NaN \\ud800',
}


@pytest.mark.parametrize("language", SOUP)
def test_no_soup_of_tokens_breaks_a_parser(language: str, sandboxes: LocalSandboxes) -> None:
    """Whatever is written, the verdict is a score: never a failure of the check."""
    chance = random.Random(language)
    words = [*SOUP[language].split(" "), "\n", "\n  ", "\t"]
    reference = {"language": language} | ({"columns": 2} if language == "csv" else {})
    tasks: list[Task] = [
        ParsesTask.model_validate(
            {
                "verifier": "parses",
                "completion": " ".join(chance.choices(words, k=chance.randint(1, 12))),
                "reference": reference,
                "options": {"extract": "whole"},
            }
        )
        for _ in range(400)
    ]
    verdicts = grade(tasks, sandboxes)
    assert [verdict for verdict in verdicts if isinstance(verdict, Failure)] == []


def test_example_is_graded_one(sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([ParsesTask.model_validate(ParsesVerifier.example)], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0
