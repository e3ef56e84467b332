"""`TrlReward` called as TRL calls it; tests/trainers has TRL itself."""

import asyncio
import json
import pickle
from typing import Any

import pytest
from assay import Assay, Refused, RetryPolicy, ServiceFailure, Ungraded
from assay.trl import TrlReward

from tests.client.misbehaving import MisbehavingServer, reset


def reward_of(local: Assay, task: dict[str, Any], **arguments: Any) -> TrlReward:
    configuration = local._client.configuration()
    return TrlReward(task, url=configuration["url"], api_key=configuration["api_key"], **arguments)


def called(function: TrlReward, completions: list[Any], **batch: Any) -> list[float | None]:
    async def call() -> list[float | None]:
        try:
            return await function(
                prompts=[""] * len(completions), completions=completions, trainer_state=object(), **batch
            )
        finally:
            await function._client.aclose()

    return asyncio.run(call())


def test_columns_become_fields_and_metrics_are_logged(local: Assay) -> None:
    metrics: dict[str, float] = {}
    extra: dict[str, list[Any]] = {}
    function = pickle.loads(pickle.dumps(reward_of(local, {"verifier": "math"}, columns={"reference": "answer"})))
    rewards = called(
        function,
        ["\\boxed{4}", "\\boxed{5}", "\\boxed{1}", "\\boxed{1}"],
        answer=["4", "4", None, "\\frac{"],
        log_metric=metrics.__setitem__,
        log_extra=extra.__setitem__,
        completion_ids=[[1]] * 4,
    )
    assert rewards == [1.0, 0.0, None, None]  # the third has nothing to be graded against
    assert metrics == {"assay/accuracy": 0.5, "assay/errors": pytest.approx(1 / 3)}
    assert extra == {"assay_reason": ["equal", "different", "none", "error: bad_reference"]}
    assert function.__name__ == "assay"


def test_of_a_conversation_the_last_answer_counts(local: Assay) -> None:
    conversation = [
        {"role": "assistant", "content": "\\boxed{5}"},
        {"role": "tool", "content": "no"},
        {"role": "assistant", "content": [{"type": "text", "text": "\\boxed"}, {"type": "text", "text": "{4}"}]},
        {"role": "tool", "content": "\\boxed{5}"},
    ]
    function = reward_of(local, {"verifier": "math"})
    assert called(function, [conversation, [], [{"role": "assistant", "content": None}]], solution=["4"] * 3) == [
        1.0,
        0.0,
        0.0,
    ]


def test_tests_may_be_json_in_a_column_and_the_format_is_scored(local: Assay) -> None:
    tests = json.dumps({"style": "stdin", "tests": [{"input": "2\n", "output": "4\n"}]})
    function = reward_of(
        local,
        {"verifier": "code"},
        columns={"reference": "tests"},
        json_columns=["tests"],
        format={},
        reward={"format_weight": 0.5},
    )
    right = "<think>twice</think><answer>```python\nprint(2 * int(input()))\n```</answer>"
    assert called(function, [right], tests=[tests]) == [1.5]


def test_what_is_configured_wrongly_stops_the_training(local: Assay) -> None:
    with pytest.raises(ValueError, match="no column 'solution' for 'reference'; it has: answer"):
        called(reward_of(local, {"verifier": "math"}), ["a"], answer=["4"])
    with pytest.raises(ValueError, match="names no verifier"):
        reward_of(local, {})
    with pytest.raises(ValueError, match="leave it out"):
        reward_of(local, {"verifier": "math", "completion": ""})
    with pytest.raises(Refused, match="unknown verifier"):
        called(reward_of(local, {"verifier": "maths"}), ["a"], solution=["4"])


def test_policies(local: Assay) -> None:
    bad: dict[str, Any] = {"completions": ["a", "\\boxed{4}"], "solution": ["\\frac{", "4"]}
    assert called(reward_of(local, {"verifier": "math"}, on_error=-1.0), **bad) == [-1.0, 1.0]
    with pytest.raises(Ungraded, match="bad_reference"):
        called(reward_of(local, {"verifier": "math"}, on_error="raise"), **bad)
    gone: dict[str, Any] = {"retry": RetryPolicy(retries=1, first_pause_seconds=0.01)}
    numbers: dict[str, Any] = {"completions": ["1", "2"], "solution": ["1", "2"]}
    with MisbehavingServer(*[reset] * 10) as server:
        assert called(TrlReward({"verifier": "math"}, url=server.url, **gone), **numbers) == [None, None]
        with pytest.raises(ServiceFailure):
            called(TrlReward({"verifier": "math"}, url=server.url, on_error="raise", **gone), **numbers)


def test_the_ready_made_object_is_configured_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ASSAY_TRL", '{"task": {"verifier": "math"}, "name": "mine"}')
    from assay import trl

    assert trl.reward.__name__ == "mine"
    monkeypatch.delenv("ASSAY_TRL")
    with pytest.raises(ValueError, match="set ASSAY_TRL"):
        _ = trl.reward
    with pytest.raises(AttributeError):
        _ = trl.nothing
