"""How an accuracy and a format score become the one reward that a trainer learns from."""

from typing import Literal

from pydantic import ConfigDict, Field

from assay._base import WireModel


class RewardSpec(WireModel):
    """Weights of the two scores and the way they are combined.

    `sum`: accuracy_weight·accuracy + format_weight·format, the two rule-based rewards of DeepSeek-R1 (arXiv
    2501.12948, section 2.2.2). `gate`: the same, but accuracy counts only when the format score is 1. A score that the
    task did not ask for (null) is left out.
    """

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"accuracy_weight": 1.0, "format_weight": 0.2, "combine": "gate"}]}
    )

    accuracy_weight: float = Field(default=1.0, ge=-1000, le=1000)
    """Weight of the accuracy score."""
    format_weight: float = Field(default=1.0, ge=-1000, le=1000)
    """Weight of the format score."""
    combine: Literal["sum", "gate"] = "sum"
    """`sum` adds the weighted scores; `gate` counts accuracy only where the format score is 1."""


def compose_reward(spec: RewardSpec, accuracy: float | None, format: float | None) -> float | None:
    """Return the reward for the scores (each in 0…1, or None where not asked for); None when there is no score."""
    if accuracy is None and format is None:
        return None
    reward = 0.0
    if format is not None:
        reward += spec.format_weight * format
    gate_closed = spec.combine == "gate" and format is not None and format < 1.0
    if accuracy is not None and not gate_closed:
        reward += spec.accuracy_weight * accuracy
    return reward
