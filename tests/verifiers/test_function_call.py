"""The function_call verifier through its real sandbox: cases, field reports, the Berkeley data and mutations of it."""

import json
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from assay import FunctionCallTask, contract_fingerprint
from pydantic import ValidationError

from sandboxes.pool import LocalSandboxes, SandboxConfig
from tests.verifiers import bfcl
from tests.verifiers.structured_cases import CASES, Counting, assert_expected, facts, grade, load, task_of
from verifiers.base import Failure, Judgement
from verifiers.function_call.verifier import FunctionCallVerifier

FAULTY: dict[str, str] = json.loads((CASES / "bfcl_faulty.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sandboxes() -> Iterator[LocalSandboxes]:
    pool = LocalSandboxes(SandboxConfig())
    yield pool
    pool.close()


def grade_all(tasks: list[FunctionCallTask], sandboxes: LocalSandboxes) -> list[Judgement | Failure]:
    size = FunctionCallVerifier.batch_size
    return [v for start in range(0, len(tasks), size) for v in grade(tasks[start : start + size], sandboxes)]


def task(completion: str, tools: list[Any], reference: list[Any], **options: Any) -> FunctionCallTask:
    return FunctionCallTask.model_validate(
        {
            "verifier": "function_call",
            "completion": completion,
            "tools": tools,
            "reference": reference,
            "options": options,
        }
    )


@pytest.mark.parametrize("case", load(CASES / "function_call.jsonl"), ids=lambda case: str(case["id"]))
def test_case(case: dict[str, Any], sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([task_of("function_call", case)], sandboxes)
    assert_expected(case, verdict)


def test_cases_are_many_and_balanced() -> None:
    cases = load(CASES / "function_call.jsonl")
    assert len({case["id"] for case in cases}) == len(cases) >= 80
    assert sum(case["expected"].get("accuracy") == 1 for case in cases) >= 25
    assert sum(case["expected"].get("accuracy") == 0 for case in cases) >= 35


def test_neighbours_change_nothing(sandboxes: LocalSandboxes) -> None:
    cases = [case for case in load(CASES / "function_call.jsonl") if not case.get("costly")]
    tasks = [task_of("function_call", case) for case in cases]
    counting = Counting(sandboxes)
    together = list(reversed(grade(reversed(tasks), counting)))
    assert (counting.jobs, counting.cases) == (1, 1)
    for case, one, verdict in zip(cases[::3], tasks[::3], together[::3], strict=True):
        (alone,) = grade([one], sandboxes)
        assert facts(alone) == facts(verdict), case["id"]


def test_example_is_graded_one(sandboxes: LocalSandboxes) -> None:
    (verdict,) = grade([FunctionCallTask.model_validate(FunctionCallVerifier.example)], sandboxes)
    assert isinstance(verdict, Judgement)
    assert verdict.accuracy == 1.0


def test_field_reports(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """Every line gets its verdict, those that hang on a policy too."""
    rows = [r for r in load(shared_data.parent / "cases" / "field_reports.jsonl") if r["verifier"] == "function_call"]
    assert len(rows) >= 11
    tasks = [task(row["input"]["completion"], row["input"]["tools"], row["input"]["gold"]) for row in rows]
    got = {row["id"]: verdict for row, verdict in zip(rows, grade(tasks, sandboxes), strict=True)}
    wrong = {row["id"]: got[row["id"]] for row in rows if got[row["id"]].accuracy != row["expected"]["accuracy"]}  # type: ignore[union-attr]
    assert wrong == {}


def test_field_reports_of_a_policy_the_other_way(sandboxes: LocalSandboxes) -> None:
    """A default that is written out (F007) can be refused; the types of F017, and the broken call of F013, cannot."""
    tools = [
        {"name": "f", "parameters": {"type": "object", "properties": {"b": {"type": "boolean", "default": False}}}}
    ]
    written = task('{"name": "f", "arguments": {"b": false}}', tools, [{"name": "f"}], defaults_may_be_written=False)
    (verdict,) = grade([written], sandboxes)
    assert isinstance(verdict, Judgement)
    assert (verdict.accuracy, verdict.reason) == (0.0, "extra_argument")


@pytest.mark.parametrize("category", bfcl.CATEGORIES)
def test_berkeley_answers_and_mutations(category: str, shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """Calls of the first possible answers get 1 in every syntax; each mutation of them gets 0."""
    right, wrong, kinds, faulty = [], [], [], []
    for number, (identifier, tools, answers) in enumerate(bfcl.rows(shared_data, category)):
        reference, calls = bfcl.reference_of(answers), bfcl.first_calls(answers)
        checks = identifier not in FAULTY
        right += [task(bfcl.written(calls, syntax), tools, reference, check_tools=checks) for syntax in bfcl.SYNTAXES]
        if not checks:
            faulty.append(task(bfcl.written(calls, "json"), tools, reference))
        syntax = bfcl.SYNTAXES[number % len(bfcl.SYNTAXES)]
        for kind, mutated in bfcl.mutations(calls, tools, reference):
            kinds.append(kind)
            text = bfcl.written(mutated, syntax) if mutated else "I cannot help with that."
            wrong.append(task(text, tools, reference, check_tools=checks))
    assert len(right) >= 800
    assert [v for v in grade_all(right, sandboxes) if isinstance(v, Failure) or v.accuracy != 1] == []
    assert all(isinstance(v, Failure) or v.accuracy == 0 for v in grade_all(faulty, sandboxes))
    tally = Tally(kinds)
    assert all(tally[kind] >= 190 for kind in ("wrong_name", "missing_argument", "unknown_argument", "call_missing"))
    assert tally["changed_value"] > 400
    assert tally["wrong_type"] > 400
    passed = [
        (kind, one.completion)
        for kind, one, verdict in zip(kinds, wrong, grade_all(wrong, sandboxes), strict=True)
        if isinstance(verdict, Failure) or verdict.accuracy != 0
    ]
    assert passed == []


def test_berkeley_irrelevance(shared_data: Path, sandboxes: LocalSandboxes) -> None:
    """No call gets 1; a call of any of the tools, in any syntax, or a broken one, gets 0."""
    rows = load(shared_data / "bfcl" / "BFCL_v4_irrelevance.json")
    assert len(rows) >= 239
    none = [task("None of the tools can do this; I would need another one.", row["function"], []) for row in rows]
    some = []
    for number, row in enumerate(rows):
        name = row["function"][0]["name"]
        arguments = dict.fromkeys(row["function"][0]["parameters"]["properties"], "x")
        text = bfcl.written([(name, arguments)], bfcl.SYNTAXES[number % len(bfcl.SYNTAXES)])
        some += [task(text, row["function"], []), task(f"{name}(", row["function"], [])]
    assert {v.accuracy for v in grade_all(none, sandboxes) if isinstance(v, Judgement)} == {1.0}
    assert {v.accuracy for v in grade_all(some, sandboxes) if isinstance(v, Judgement)} == {0.0}


TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Book a room.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "class": {"enum": ["a", "b"], "default": "a"},
                "description": {"type": "string"},
            },
            "required": ["city", "class"],
        },
    },
}


def changed(**parameters: Any) -> dict[str, Any]:
    function = TOOL["function"]
    return {"name": function["name"], "parameters": {**function["parameters"], **parameters}}


def test_fingerprint_of_a_contract() -> None:
    """Notes and orders without meaning do not count; everything that a call depends on does."""
    properties = TOOL["function"]["parameters"]["properties"]
    other = {"name": "other"}
    first = contract_fingerprint([TOOL, other])
    same = [
        [other, TOOL],
        [changed(), other],
        [changed(required=["class", "city"], description="Other words."), other],
        [changed(properties=dict(reversed(properties.items()))), other],
        [changed(properties={**properties, "city": {"type": "string"}}), other],
        [changed(properties={**properties, "class": {"enum": ["b", "a"], "default": "a"}}), other],
    ]
    assert {contract_fingerprint(tools) for tools in same} == {first}
    different = [
        [TOOL],
        [changed(required=["city"]), other],
        [changed(properties={**properties, "city": {"type": "integer"}}), other],
        [changed(properties={**properties, "class": {"enum": ["a", "b"], "default": "b"}}), other],
        [changed(properties={**properties, "class": {"enum": ["a"], "default": "a"}}), other],
        [changed(properties={name: properties[name] for name in ("city", "class")}), other],
        [changed(additionalProperties=True), other],
    ]
    prints = [contract_fingerprint(tools) for tools in different]
    assert len({first, *prints}) == len(prints) + 1


def test_a_changed_contract_is_a_broken_reference(sandboxes: LocalSandboxes) -> None:
    made_for = task('{"name": "book", "arguments": {"city": "Oslo", "class": "a"}}', [TOOL], [{"name": "book"}])
    right = made_for.model_copy(update={"reference": made_for.reference[:0], "fingerprint": "0" * 64})
    kept = FunctionCallTask.model_validate(FunctionCallVerifier.example)
    kept = kept.model_copy(update={"fingerprint": contract_fingerprint(kept.tools)})
    first, second, third = grade([right, kept, right], sandboxes)
    assert isinstance(second, Judgement)
    assert second.accuracy == 1.0
    for verdict in (first, third):
        assert isinstance(verdict, Failure)
        assert verdict.kind == "bad_reference"
        assert contract_fingerprint([TOOL]) in verdict.message


@pytest.mark.parametrize(
    "call",
    [
        {"name": "f", "arguments": {"a": 1}, "any_of": {"a": [1]}},
        {"name": "f", "optional": ["a"]},
        {"name": "f", "any_of": {"a": []}},
        {"name": ""},
    ],
)
def test_expected_calls_that_make_no_sense_are_refused(call: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        task("x", [{"name": "f"}], [call])
