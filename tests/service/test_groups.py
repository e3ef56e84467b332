"""`POST /v1/groups` and `POST /v1/pass_at_k` on a real server, against numbers worked out by hand."""

from typing import Any

import pytest
from assay.groups import GroupsResponse, PassAtKResponse

from tests.service.conftest import ServerProcess

MATH = {"verifier": "math", "reference": "4"}
RIGHT, WRONG = "So \\boxed{4}.", "So \\boxed{5}."


def groups(server: ServerProcess, *entries: dict[str, Any], **fields: Any) -> GroupsResponse:
    response = server.client.post("/v1/groups", json={"groups": list(entries), **fields})
    assert response.status_code == 200, response.text
    return GroupsResponse.model_validate_json(response.content)


def test_rewards_advantages_and_what_to_keep(server: ServerProcess) -> None:
    answer = groups(
        server,
        {"id": "half", "task": MATH, "completions": [RIGHT, WRONG, WRONG, WRONG]},
        {"task": MATH, "completions": [WRONG, WRONG]},
        {"task": {"verifier": "math", "reference": "\\frac{"}, "completions": [RIGHT, RIGHT]},
        epsilon=0,
    )
    half, lost, broken = answer.groups
    assert half.rewards == half.accuracies == [1.0, 0.0, 0.0, 0.0]
    assert half.advantages == pytest.approx([1.5, -0.5, -0.5, -0.5])  # mean 1/4, deviation 1/2
    assert (half.keep, lost.keep, broken.keep, answer.kept) == (True, False, False, 1)
    assert lost.advantages == [0.0, 0.0]
    assert lost.id == "1"
    assert broken.rewards == broken.advantages == [None, None]
    assert broken.mask == [False, False]
    assert broken.statistics.errors == 2
    assert broken.statistics.mean is None
    assert (half.statistics.mean, half.statistics.std, half.statistics.success_rate) == (0.25, 0.5, 0.25)
    assert [verdict.reason for verdict in half.verdicts] == ["equal", "different", "different", "different"]


def test_overlong_completions_are_punished_and_masked_but_do_not_make_a_group_informative(
    server: ServerProcess,
) -> None:
    (result,) = groups(
        server,
        {"task": MATH, "completions": [RIGHT] * 4, "lengths": [10, 80, 90, 100]},
        overlong={"max_length": 100, "cache": 20, "factor": 0.5},
        mask_truncated=True,
        estimator="dr_grpo",
    ).groups
    assert result.rewards == [1.0, 1.0, 0.75, 0.5]
    assert result.accuracies == [1.0] * 4
    assert result.advantages == pytest.approx([0.1875, 0.1875, -0.0625, -0.3125])  # mean 13/16
    assert result.mask == [True, True, True, False]
    assert result.statistics.truncated == 1
    assert not result.keep


def test_finished_decides_what_is_truncated(server: ServerProcess) -> None:
    (result,) = groups(
        server,
        {"task": MATH, "completions": [RIGHT, WRONG], "finished": [True, False]},
        mask_truncated=True,
        estimator="leave_one_out",
    ).groups
    assert result.mask == [True, False]
    assert result.advantages == [1.0, -1.0]


def test_the_format_reward_is_composed_as_in_grade(server: ServerProcess) -> None:
    (result,) = groups(
        server,
        {"task": MATH, "completions": ["<think>a</think><answer>4</answer>", RIGHT]},
        format={},
        reward={"format_weight": 0.5},
    ).groups
    assert result.rewards == [1.5, 1.0]
    assert not result.keep  # both are right
    (result,) = groups(
        server,
        {"task": MATH, "completions": ["<think>a</think><answer>4</answer>", RIGHT]},
        format={},
        keep_by="reward",
    ).groups
    assert result.keep


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({}, "groups", "Field required"),
        ({"groups": []}, "groups", "at least 1"),
        ({"groups": [{"task": MATH, "completions": []}]}, "groups[0].completions", "at least 1"),
        (
            {"groups": [{"task": {"verifier": "x"}, "completions": ["a"]}]},
            "groups[0].task.verifier",
            "unknown verifier",
        ),
        (
            {
                "groups": [
                    {"task": MATH, "completions": ["a"]},
                    {"task": {"verifier": "math"}, "completions": ["a", "b"]},
                ]
            },
            "groups[1].task.reference",
            "required",
        ),
        ({"groups": [{"task": MATH, "completions": ["a", 3]}]}, "groups[0].completions[1]", "string"),
        ({"groups": [{"task": {**MATH, "id": "x"}, "completions": ["a"]}]}, "groups[0].task.id", "give the group"),
        (
            {"groups": [{"task": {**MATH, "completion": ""}, "completions": ["a"]}]},
            "groups[0].task.completion",
            "beside",
        ),
        ({"groups": [{"task": MATH, "completions": ["a"], "lengths": [1, 2]}]}, "groups[0].lengths", "2 entries for 1"),
        ({"groups": [{"task": MATH, "completions": ["a"], "lengths": [-1]}]}, "groups[0].lengths", "0 or more"),
        ({"groups": [{"id": "a", "task": MATH, "completions": ["a"]}] * 2}, "groups[1].id", "earlier group"),
        (
            {"groups": [{"task": MATH, "completions": ["a"]}], "overlong": {"max_length": 9, "cache": 3}},
            "groups[0].lengths",
            "required for `overlong`",
        ),
        ({"groups": [{"task": MATH, "completions": ["a"]}], "mask_truncated": True}, "groups[0].finished", "required"),
        (
            {"groups": [{"task": MATH, "completions": ["a"]}], "overlong": {"max_length": 9, "cache": 10}},
            "overlong",
            "cache is larger",
        ),
        ({"groups": [{"task": MATH, "completions": ["a"]}], "estimator": "ppo"}, "estimator", "grpo"),
        ({"groups": [{"task": MATH, "completions": ["a"]}], "epsilom": 1}, "epsilom", "unknown field"),
    ],
)
def test_wrong_fields_are_named_as_the_body_has_them(
    server: ServerProcess, body: dict[str, Any], field: str, says: str
) -> None:
    response = server.client.post("/v1/groups", json=body)
    assert response.status_code == 422
    assert field in [entry["field"] for entry in response.json()["fields"]], response.text
    assert says in response.text


@pytest.mark.parametrize("path", ["/v1/groups", "/v1/pass_at_k"])
def test_what_is_no_json_is_said_to_be_none(server: ServerProcess, path: str) -> None:
    for content in (b"{", b"\xff", b"[" * 100_000):
        response = server.client.post(path, content=content, headers={"content-type": "application/json"})
        assert response.status_code == 400, response.text
        assert response.headers["content-type"] == "application/problem+json"
    assert server.client.post(path, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415


def test_pass_at_k(server: ServerProcess) -> None:
    prompts = [{"samples": 4, "correct": 2}, {"samples": 4, "correct": 0}, {"samples": 2, "correct": 2}]
    response = server.client.post("/v1/pass_at_k", json={"prompts": prompts, "k": [1, 2, 4, 8]})
    assert response.status_code == 200, response.text
    answer = PassAtKResponse.model_validate_json(response.content)
    one, two, four, eight = answer.estimates
    assert one.value == pytest.approx((0.5 + 0 + 1) / 3)
    assert two.value == pytest.approx((5 / 6 + 0 + 1) / 3)  # of 6 pairs of 4, one has no right completion
    assert (four.value, four.prompts) == (0.5, 2)  # the third prompt has only two samples
    assert (eight.value, eight.low, eight.high, eight.prompts) == (None, None, None, 0)
    assert one.low is not None
    assert one.value is not None
    assert one.high is not None
    assert one.low < one.value < one.high
    assert (answer.never_solved, answer.always_solved) == (1, 1)
    assert answer.success_rates == [0.5, 0.0, 1.0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"prompts": [{"samples": 2, "correct": 3}]}, "3 correct of 2"),
        ({"prompts": []}, "prompts"),
        ({"prompts": [{"samples": 10**9, "correct": 10**8}], "k": [10**8]}, "send fewer prompts or ks"),
        ({"prompts": [{"samples": 2, "correct": 1}], "k": [0]}, "every k must be 1 or more"),
        ({"prompts": [{"samples": 2, "correct": 1}], "confidence": 1}, "confidence"),
    ],
)
def test_impossible_counts_are_refused(server: ServerProcess, body: dict[str, Any], says: str) -> None:
    response = server.client.post("/v1/pass_at_k", json=body)
    assert response.status_code == 422
    assert says in response.text


def test_a_large_reference_for_many_completions_is_refused_before_it_fills_the_memory(server: ServerProcess) -> None:
    task = {"verifier": "math", "reference": "4" * (8 << 20)}
    response = server.client.post("/v1/groups", json={"groups": [{"task": task, "completions": [""] * 9000}]})
    assert response.status_code == 413
    assert "repeated for each completion" in response.json()["detail"]
    many = {"groups": [{"task": MATH, "completions": [""] * 10_001}]}
    response = server.client.post("/v1/groups", json=many)
    assert response.status_code == 422
    assert response.json()["fields"][0]["field"] == "groups"
