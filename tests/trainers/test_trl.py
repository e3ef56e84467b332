"""`TrlReward` in TRL's own `GRPOTrainer`, installed in an environment of its own: `make trainers`."""

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from assay import Assay

PYTHON = os.environ.get("ASSAY_TEST_TRL_PYTHON")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs TRL in an environment of its own: make trainers")


def trained(tmp_path: Path, local: Assay, other_solution: str) -> dict[str, Any]:
    """Train one step of two prompts with eight completions each; a completion is one word."""
    assert PYTHON is not None
    key = local._client.configuration()["api_key"]
    done = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("grpo_step.py")), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "ASSAY_URL": local.url, "ASSAY_API_KEY": key, "OTHER_SOLUTION": other_solution},
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith('{"samples"')]
    result: dict[str, Any] = json.loads(line)
    return result


def group(result: dict[str, Any], wanted: int) -> tuple[list[float], list[float]]:
    """Return what the completions of one prompt are worth, and the advantages that TRL gave them."""
    own = [(text, advantage) for number, text, advantage in result["samples"] if number == wanted]
    assert len(own) == 8
    return [float(text == "\\boxed{4}") for text, _ in own], [advantage for _, advantage in own]


def test_rewards_become_advantages(tmp_path: Path, local: Assay) -> None:
    result = trained(tmp_path, local, "4")
    worth = []
    for number in (0, 1):
        rewards, advantages = group(result, number)
        mean = sum(rewards) / 8
        assert 0 < mean < 1, "choose another seed: this group has nothing to tell"
        deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / 7)
        assert advantages == pytest.approx([(reward - mean) / (deviation + 1e-4) for reward in rewards], rel=1e-4)
        worth += rewards
    assert result["log"]["rewards/assay/mean"] == pytest.approx(sum(worth) / 16)
    assert result["log"]["assay/accuracy"] == pytest.approx(sum(worth) / 16)
    assert result["log"]["assay/errors"] == 0.0


def test_what_could_not_be_graded_moves_nothing(tmp_path: Path, local: Assay) -> None:
    result = trained(tmp_path, local, "\\frac{")
    rewards, advantages = group(result, 0)
    assert any(advantages)
    assert group(result, 1)[1] == [0.0] * 8
    assert result["log"]["rewards/assay/mean"] == pytest.approx(sum(rewards) / 8)  # of the graded ones only
    assert result["log"]["assay/errors"] == 0.5
