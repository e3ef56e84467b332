"""Groups of completions and what a trainer makes of them: bodies of `POST /v1/groups` and `POST /v1/pass_at_k`."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from assay._base import JsonObject, WireModel
from assay.advantages import Estimator
from assay.reward import RewardSpec
from assay.tasks import FormatSpec
from assay.verdict import Verdict


class OverlongSpec(WireModel):
    """Soft overlong punishment (DAPO, arXiv 2503.14476, equation 13), in tokens."""

    max_length: int = Field(ge=1)
    """L_max: from here on the punishment is full."""
    cache: int = Field(ge=1)
    """L_cache: the punishment grows over this many tokens before `max_length`."""
    factor: float = Field(default=1.0, ge=0, le=1000)
    """The punishment, between 0 and -1, is multiplied by this."""

    @model_validator(mode="after")
    def _refuse_a_cache_beyond_the_length(self) -> Self:
        if self.cache > self.max_length:
            raise ValueError("cache is larger than max_length")
        return self


class CompletionGroup(WireModel):
    """Completions of one prompt, all graded against the same."""

    id: str | None = Field(default=None, min_length=1, max_length=256)
    """The caller's name for this group; its position in the request when left out."""
    task: JsonObject
    """A task without `completion` and `id`: verifier, reference, options."""
    completions: list[str] = Field(min_length=1)
    """What the model wrote, one entry a sample."""
    lengths: list[int] | None = None
    """Tokens of each completion; needed for `overlong` and `mask_truncated`."""
    finished: list[bool] | None = None
    """Whether each completion ended by itself; when left out, one of `overlong.max_length` tokens or more did not."""


class GroupsRequest(WireModel):
    """Body of `POST /v1/groups`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "groups": [
                        {
                            "id": "p1",
                            "task": {"verifier": "math", "reference": "4"},
                            "completions": ["So \\boxed{4}.", "So \\boxed{5}."],
                            "lengths": [90, 40],
                        }
                    ],
                    "estimator": "grpo",
                    "overlong": {"max_length": 100, "cache": 20},
                }
            ]
        }
    )

    groups: list[CompletionGroup] = Field(min_length=1)
    """The groups; answers keep this order."""
    reward: RewardSpec = RewardSpec()
    """How scores become rewards."""
    format: FormatSpec | None = None
    """The form to score, for tasks that do not say so themselves."""
    deadline_seconds: float | None = Field(default=None, gt=0, le=86_400)
    """Tasks not started this long after the request's arrival end in an error of kind `deadline`."""
    estimator: Estimator = "grpo"
    """How advantages are computed."""
    epsilon: float = Field(default=1e-6, ge=0, le=1)
    """Added to the standard deviation: verl adds 1e-6, TRL 1e-4."""
    overlong: OverlongSpec | None = None
    """Punish long completions; the punishment is in `rewards` and `advantages`, not in `accuracies`."""
    mask_truncated: bool = False
    """Overlong filtering: leave completions that did not end by themselves out of the loss."""
    keep_by: Literal["accuracy", "reward"] = "accuracy"
    """What must differ within a group for it to be kept: its accuracies (rewards where it has none), or its rewards;
    both before the punishment, which would make every group seem informative."""


class GroupStatistics(WireModel):
    """One group at a glance; numbers are null when no completion was scored."""

    size: int
    scored: int
    """Completions with a reward."""
    errors: int
    """Completions whose grading failed."""
    truncated: int
    """Completions that did not end by themselves, as far as the request tells."""
    mean: float | None
    """Mean reward."""
    std: float | None
    """Standard deviation of the rewards, divisor n - 1."""
    minimum: float | None
    maximum: float | None
    success_rate: float | None
    """Share of accuracies that are 1."""


class GroupResult(WireModel):
    """What became of one group; lists have one entry a completion, in the request's order."""

    id: str
    rewards: list[float | None]
    """Rewards with the punishment; null where the grading failed."""
    accuracies: list[float | None]
    """Accuracies without any shaping."""
    advantages: list[float | None]
    """Null where the reward is."""
    mask: list[bool]
    """Which completions count in the loss: those with an advantage that are not filtered as truncated."""
    keep: bool
    """Whether dynamic sampling keeps this group."""
    statistics: GroupStatistics
    verdicts: list[Verdict]


class GroupsResponse(WireModel):
    """Answer of `POST /v1/groups`."""

    groups: list[GroupResult]
    kept: int
    """How many groups are kept."""


class PromptCount(WireModel):
    """How often one prompt was solved."""

    id: str | None = Field(default=None, max_length=256)
    samples: int = Field(ge=1, le=10**9)
    """Completions that were graded; leave errors out."""
    correct: int = Field(ge=0)
    """How many of them are right."""

    @model_validator(mode="after")
    def _refuse_more_correct_than_samples(self) -> Self:
        if self.correct > self.samples:
            raise ValueError(f"{self.correct} correct of {self.samples} samples is impossible")
        return self


class PassAtKRequest(WireModel):
    """Body of `POST /v1/pass_at_k`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prompts": [{"samples": 8, "correct": 2}], "k": [1, 8], "confidence": 0.95}]}
    )

    prompts: list[PromptCount] = Field(min_length=1, max_length=100_000)
    k: list[int] = Field(default=[1], min_length=1, max_length=20)
    """The ks to estimate for."""
    confidence: float = Field(default=0.95, gt=0, lt=1)

    @model_validator(mode="after")
    def _refuse_ks_below_one(self) -> Self:
        if min(self.k) < 1:
            raise ValueError("every k must be 1 or more")
        return self


class PassAtK(WireModel):
    """The estimate for one k."""

    k: int
    value: float | None
    """Mean over the prompts with at least k samples; null when there is none."""
    low: float | None
    high: float | None
    """The confidence interval."""
    prompts: int
    """Prompts that the estimate is of."""


class PassAtKResponse(WireModel):
    """Answer of `POST /v1/pass_at_k`."""

    estimates: list[PassAtK]
    prompts: int
    never_solved: int
    """Prompts without any right completion: they teach nothing until one is found."""
    always_solved: int
    """Prompts with only right completions: they teach nothing any more."""
    success_rates: list[float]
    """Share of right completions of each prompt, in the request's order."""
