"""The json_schema verifier through its real sandbox: cases, field reports, the official suite, hostile input."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from assay.tasks import JsonSchemaTask

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers.structured_cases import CASES, Counting, assert_expected, facts, grade, load, task_of
from verifiers.base import Failure, Judgement
from verifiers.json_schema.verifier import JsonSchemaVerifier

DRAFTS = {f"draft{name}": name for name in ("3", "4", "6", "7", "2019-09", "2020-12")}


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


@pytest.mark.parametrize("case", load(CASES / "json_schema.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([task_of("json_schema", case)], sandboxes)
    assert_expected(case, verdict)


def test_cases_are_many_and_balanced() -> None:
    cases = load(CASES / "json_schema.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 100
    right = sum(case["expected"].get("accuracy") == 1 for case in cases)
    wrong = sum(case["expected"].get("accuracy") == 0 for case in cases)
    assert right >= 30
    assert wrong >= 40


def test_neighbours_change_nothing(sandboxes: LocalSandboxes) -> None:
    """All cases but those that break limits in one batch, backwards, and each alone: one verdict each."""
    cases = [case for case in load(CASES / "json_schema.jsonl") if not case.get("costly")]
    tasks = [task_of("json_schema", case) for case in cases]
    counting = Counting(sandboxes)
    together = list(reversed(grade(reversed(tasks), counting)))
    assert (counting.jobs, counting.cases) == (1, 1)
    for case, task, verdict in zip(cases[::4], tasks[::4], together[::4], strict=True):
        (alone,) = grade([task], sandboxes)
        assert facts(alone) == facts(verdict), case["id"]


def test_only_what_breaks_a_limit_pays(sandboxes: LocalSandboxes) -> None:
    schema = {"type": "string", "pattern": r"^(a|aa)+(?=b)b$"}
    tasks = [
        JsonSchemaTask(verifier="json_schema", completion=json.dumps(text), reference=schema)
        for text in ("aab", "a" * 60, "c")
    ]
    verdicts = grade(tasks, sandboxes)
    assert [(v.accuracy, v.reason) for v in verdicts if isinstance(v, Judgement)] == [
        (1.0, "valid"),
        (0.0, "cpu_timeout"),
        (0.0, "invalid"),
    ]


def test_example_is_graded_one(sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([JsonSchemaTask.model_validate(JsonSchemaVerifier.example)], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


def test_field_reports(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """Every line gets its verdict, those that hang on a policy too."""
    rows = [r for r in load(shared_data.parent / "cases" / "field_reports.jsonl") if r["verifier"] == "json_schema"]
    assert len(rows) >= 20
    for row in rows:
        source = row["input"]
        task = JsonSchemaTask(
            verifier="json_schema",
            completion=source["completion"],
            reference=source["schema"],
            options={"draft": source.get("draft", "auto")},
        )
        (verdict,) = grade([task], sandboxes)
        if row["expected"]["accuracy"] == "error:schema_ref":
            assert isinstance(verdict, Failure), row["id"]
            assert verdict.kind == "bad_reference"
            assert "schemas.example.com" in verdict.message
        else:
            assert isinstance(verdict, Judgement), (row["id"], verdict)
            assert verdict.accuracy == row["expected"]["accuracy"], (row["id"], verdict)


def test_field_reports_of_a_policy_the_other_way(sandboxes: LocalSandboxes) -> None:
    """The options that turn each policy round."""
    number = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    dated = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}}
    other: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
        ('{"day":"2023-02-30"}', dated, {"check_formats": False}, 1.0),  # J001, J002, J003
        ('{"a":1.0}', number, {"draft": "6"}, 1.0),  # J021
        ('{"a":1}\nHope this helps!', number, {"allow_trailing_text": True}, 1.0),  # J014
        ('{"a":1}\nHope this helps!', number, {"extract": "first"}, 1.0),
        ('```json\n{"a":1}\n```', number, {"extract": "whole"}, 0.0),  # J013
        ('Sure:\n```json\n{"a":1}\n```\nDone.', number, {"extract": "whole"}, 0.0),  # J015
    ]
    tasks = [
        JsonSchemaTask(verifier="json_schema", completion=text, reference=schema, options=options)
        for text, schema, options, _ in other
    ]
    verdicts = grade(tasks, sandboxes)
    assert [v.accuracy for v in verdicts if isinstance(v, Judgement)] == [accuracy for *_, accuracy in other]


def suite(shared_data: Path, draft: str) -> Iterator[tuple[str, bool, JsonSchemaTask]]:
    """Yield the tests of a draft: a name, whether the data is valid, the task."""
    root = shared_data / "json-schema-test-suite"
    remotes = {
        f"http://localhost:1234/{path.relative_to(root / 'remotes')}": json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((root / "remotes").rglob("*.json"))
        if draft != "draft3" or path.relative_to(root / "remotes").parts[0] in {draft, *_FOR_ALL}
    }
    for path in sorted((root / "tests" / draft).rglob("*.json")):
        name = str(path.relative_to(root / "tests" / draft))
        for group in json.loads(path.read_text(encoding="utf-8")):
            needs = "localhost" in json.dumps(group["schema"])
            for test in group["tests"]:
                yield (
                    f"{draft}/{name}: {group['description']}: {test['description']}",
                    test["valid"],
                    JsonSchemaTask(
                        verifier="json_schema",
                        completion=json.dumps(test["data"]),
                        reference=group["schema"],
                        schemas=remotes if needs else {},
                        options={
                            "draft": "auto" if "$schema" in str(group["schema"]) else DRAFTS[draft],
                            "check_formats": name.startswith("optional/format"),
                        },
                    ),
                )


# The remote documents without a draft of their own.
_FOR_ALL = {"baseUriChange", "baseUriChangeFolder", "baseUriChangeFolderInSubschema", "integer.json", "nested"}


@pytest.mark.parametrize("draft", DRAFTS)
def test_official_suite(draft: str, shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """Every test gets its answer, the optional ones too."""
    rows = list(suite(shared_data, draft))
    required = [row for row in rows if "/optional/" not in row[0]]
    assert len(required) > 400
    assert len(rows) > len(required)
    wrong = set()
    for start in range(0, len(rows), JsonSchemaVerifier.batch_size):
        batch = rows[start : start + JsonSchemaVerifier.batch_size]
        verdicts = grade([task for _, _, task in batch], sandboxes)
        for (name, valid, _), verdict in zip(batch, verdicts, strict=True):
            if isinstance(verdict, Failure) and "accepts every value" in verdict.message:
                assert valid, name  # refused here on purpose
            elif isinstance(verdict, Failure) or verdict.accuracy != float(valid):
                wrong.add(name)
    assert wrong == set()
