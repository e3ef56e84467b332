"""Advantages of a group: how much better each of a prompt's completions did than the others."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

Estimator = Literal["grpo", "dr_grpo", "leave_one_out"]
"""`grpo` divides by the group's standard deviation, `dr_grpo` does not, `leave_one_out` compares with
the others only."""

Rewards = Sequence[float | None]
"""One reward a completion of one prompt; None where the grading failed."""


def group_advantages(
    rewards: Rewards, estimator: Estimator = "grpo", *, ddof: Literal[0, 1] = 1, epsilon: float = 1e-6
) -> list[float | None]:
    """Return one advantage a reward.

    With mean m and standard deviation s over the n rewards that are there:

    - `grpo`: (r - m) / (s + epsilon), GRPO (DeepSeekMath, arXiv 2402.03300, section 4.1.2).
    - `dr_grpo`: r - m, without the deviation's bias towards easy and hard prompts (Dr. GRPO, arXiv 2503.20783).
    - `leave_one_out`: r - (sum of the others) / (n - 1), RLOO (Kool et al. 2019; Ahmadian et al., arXiv 2402.14740);
      equal to n / (n - 1) · (r - m).

    A missing reward (None) is in no mean and no deviation, and its advantage is None: mask that completion. When all
    rewards are equal, or only one is there, nothing is better than anything else and all advantages are 0.

    Args:
        rewards: the group.
        estimator: which of the three.
        ddof: 1 takes the sample's deviation (divisor n - 1), as TRL and verl do; 0 the population's.
        epsilon: added to the deviation; verl adds 1e-6, TRL 1e-4.

    Raises:
        ValueError: a reward is not finite, the estimator is unknown, or epsilon is negative.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"epsilon is {epsilon}; it must be 0 or more, and finite")
    scored = scored_rewards(rewards)
    if estimator not in get_args(Estimator):
        raise ValueError(f"unknown estimator {estimator!r}; known: {', '.join(get_args(Estimator))}")
    if len(scored) < 2 or min(scored) == max(scored):
        return [None if reward is None else 0.0 for reward in rewards]
    mean, scale = _mean(scored), _scale(scored, estimator, ddof, epsilon)
    return [None if reward is None else (reward - mean) * scale for reward in rewards]


def scored_rewards(rewards: Rewards) -> list[float]:
    """Return the rewards that are there.

    Raises:
        ValueError: one is NaN or infinite.
    """
    scored = [float(reward) for reward in rewards if reward is not None]
    for reward in scored:
        if not math.isfinite(reward):
            raise ValueError(f"a reward is {reward}; rewards must be finite, or None where the grading failed")
    return scored


def deviation(values: Sequence[float], ddof: Literal[0, 1] = 1) -> float:
    """Return the standard deviation with divisor n - ddof; 0 for fewer than two values or equal ones."""
    if len(values) < 2 or min(values) == max(values):
        return 0.0
    mean = _mean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - ddof))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _scale(scored: Sequence[float], estimator: Estimator, ddof: Literal[0, 1], epsilon: float) -> float:
    if estimator == "grpo":
        return 1.0 / (deviation(scored, ddof) + epsilon)
    if estimator == "leave_one_out":
        return len(scored) / (len(scored) - 1)
    return 1.0
