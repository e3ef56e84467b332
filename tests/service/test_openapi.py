"""What the service says about itself: OpenAPI, the catalogue of verifiers, the registry."""

from pathlib import Path
from typing import Any, get_args

import pytest
from assay import GradeRequest, Problem, Task, VerifierInfo
from pydantic import TypeAdapter

from tests.service.conftest import ServerProcess
from verifiers.registry import REGISTRY

TASK_TYPES = {get_args(member.model_fields["verifier"].annotation)[0]: member for member in get_args(get_args(Task)[0])}


@pytest.fixture(scope="module")
def schema(server: ServerProcess) -> dict[str, Any]:
    described: dict[str, Any] = server.client.get("/openapi.json").json()
    return described


def references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    if isinstance(node, list):
        return set().union(*map(references, node))
    return set()


def test_registry_and_task_union_agree() -> None:
    assert {name: verifier.task_type for name, verifier in REGISTRY.items()} == TASK_TYPES
    assert all(verifier.name == name for name, verifier in REGISTRY.items())


def test_every_reference_resolves(schema: dict[str, Any]) -> None:
    for reference in references(schema):
        assert reference.startswith("#/components/schemas/")
        assert reference.rpartition("/")[2] in schema["components"]["schemas"]


@pytest.mark.parametrize("path", ["/v1/grade", "/v1/jobs"])
def test_the_body_is_described(schema: dict[str, Any], path: str) -> None:
    body = schema["paths"][path]["post"]["requestBody"]
    assert body["required"] is True
    assert body["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/GradeRequest"}
    tasks = schema["components"]["schemas"]["GradeRequest"]["properties"]["tasks"]
    assert set(tasks["items"]["discriminator"]["mapping"]) == set(REGISTRY)


def test_models_have_their_examples(schema: dict[str, Any]) -> None:
    tasks = [task.__name__ for task in TASK_TYPES.values()]
    for name in ("GradeRequest", *tasks, "Verdict", "JobAccepted", "JobStatus", "Problem"):
        assert schema["components"]["schemas"][name]["examples"], name
    for example in schema["components"]["schemas"]["GradeRequest"]["examples"]:
        GradeRequest.model_validate(example)
    for example in schema["components"]["schemas"]["Problem"]["examples"]:
        Problem.model_validate(example)


def test_errors_are_described_as_problems(schema: dict[str, Any]) -> None:
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], (path, method, status)
    assert set(schema["paths"]["/v1/grade"]["post"]["responses"]) >= {"200", "400", "413", "415", "422", "429", "503"}


def test_the_catalogue_lists_every_verifier(server: ServerProcess) -> None:
    listed = TypeAdapter(list[VerifierInfo]).validate_json(server.client.get("/v1/verifiers").content)
    assert [info.name for info in listed] == list(REGISTRY)
    for info in listed:
        assert info.version == REGISTRY[info.name].version
        assert len(info.description) > 20
        assert info.task_schema["properties"]["verifier"]["const"] == info.name
        assert info.options_schema["type"] == "object"


def test_every_example_of_the_catalogue_is_graded_1(server: ServerProcess) -> None:
    examples = [info["example"] for info in server.client.get("/v1/verifiers").json()]
    response = server.client.post("/v1/grade", json={"tasks": examples})
    assert response.status_code == 200, response.text
    assert [verdict["reward"] for verdict in response.json()["verdicts"]] == [1.0] * len(examples)


def test_every_example_of_the_wire_models_is_graded_1(server: ServerProcess) -> None:
    examples = [example for task in TASK_TYPES.values() for example in task.model_json_schema()["examples"]]
    response = server.client.post("/v1/grade", json={"tasks": examples})
    assert [verdict["reward"] for verdict in response.json()["verdicts"]] == [1.0] * len(examples)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_verifier_has_its_page(name: str) -> None:
    page = Path("docs/verifiers") / f"{name}.md"
    assert page.is_file()
    options = TASK_TYPES[name].model_fields["options"].annotation
    assert options is not None
    text = page.read_text(encoding="utf-8")
    assert [option for option in options.model_fields if f"`{option}`" not in text] == []
