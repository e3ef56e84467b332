"""Group results and pass@k tables from verdicts and counts: the arithmetic between the wire models."""

from collections.abc import Sequence

from assay.advantages import deviation, group_advantages
from assay.groups import (
    CompletionGroup,
    GroupResult,
    GroupsRequest,
    GroupStatistics,
    OverlongSpec,
    PassAtK,
    PassAtKResponse,
    PromptCount,
)
from assay.passk import mean_pass_at_k
from assay.sampling import is_informative
from assay.shaping import soft_overlong_punishment
from assay.verdict import Verdict


def evaluate_group(
    group: CompletionGroup, name: str, verdicts: Sequence[Verdict], request: GroupsRequest
) -> GroupResult:
    """Return rewards, advantages, masks and statistics of one group.

    Args:
        group: the group as it was asked about; its lists are as long as its completions.
        name: the group's id.
        verdicts: one for each completion, in order.
        request: how to shape rewards and compute advantages.

    Raises:
        ValueError: lengths are needed, but missing.
    """
    plain = [verdict.reward for verdict in verdicts]
    accuracies = [verdict.accuracy for verdict in verdicts]
    finished = _finished(group, request.overlong)
    rewards = _shaped(plain, group, request.overlong)
    advantages = group_advantages(rewards, request.estimator, epsilon=request.epsilon)
    by_accuracy = request.keep_by == "accuracy" and any(accuracy is not None for accuracy in accuracies)
    ends = zip(advantages, finished, strict=True)
    return GroupResult(
        id=name,
        rewards=rewards,
        accuracies=accuracies,
        advantages=advantages,
        mask=[advantage is not None and (end or not request.mask_truncated) for advantage, end in ends],
        keep=is_informative(accuracies if by_accuracy else plain),
        statistics=_statistics(rewards, accuracies, verdicts, finished),
        verdicts=list(verdicts),
    )


def _finished(group: CompletionGroup, overlong: OverlongSpec | None) -> list[bool]:
    if group.finished is not None:
        return group.finished
    if group.lengths is None or overlong is None:
        return [True] * len(group.completions)
    return [length < overlong.max_length for length in group.lengths]


def _shaped(rewards: list[float | None], group: CompletionGroup, overlong: OverlongSpec | None) -> list[float | None]:
    if overlong is None:
        return rewards
    if group.lengths is None:
        raise ValueError("lengths are needed for the overlong punishment")
    return [
        None
        if reward is None
        else reward + overlong.factor * soft_overlong_punishment(length, overlong.max_length, overlong.cache)
        for reward, length in zip(rewards, group.lengths, strict=True)
    ]


def _statistics(
    rewards: Sequence[float | None],
    accuracies: Sequence[float | None],
    verdicts: Sequence[Verdict],
    finished: Sequence[bool],
) -> GroupStatistics:
    scored = [reward for reward in rewards if reward is not None]
    known = [accuracy for accuracy in accuracies if accuracy is not None]
    return GroupStatistics(
        size=len(rewards),
        scored=len(scored),
        errors=sum(verdict.error is not None for verdict in verdicts),
        truncated=finished.count(False),
        mean=sum(scored) / len(scored) if scored else None,
        std=deviation(scored) if scored else None,
        minimum=min(scored, default=None),
        maximum=max(scored, default=None),
        success_rate=sum(accuracy == 1.0 for accuracy in known) / len(known) if known else None,
    )


def evaluate_prompts(prompts: Sequence[PromptCount], ks: Sequence[int], confidence: float) -> PassAtKResponse:
    """Return pass@k over the prompts for each k, and how many prompts teach nothing.

    A prompt with fewer than k samples has no unbiased estimate and is left out for that k.

    Raises:
        ValueError: a k is less than 1, or the confidence is not strictly between 0 and 1.
    """
    counts = [(prompt.samples, prompt.correct) for prompt in prompts]
    return PassAtKResponse(
        estimates=[_estimate(counts, k, confidence) for k in ks],
        prompts=len(counts),
        never_solved=sum(correct == 0 for _, correct in counts),
        always_solved=sum(correct == samples for samples, correct in counts),
        success_rates=[correct / samples for samples, correct in counts],
    )


def _estimate(counts: Sequence[tuple[int, int]], k: int, confidence: float) -> PassAtK:
    enough = [(samples, correct) for samples, correct in counts if samples >= k]
    if not enough:
        return PassAtK(k=k, value=None, low=None, high=None, prompts=0)
    value, low, high = mean_pass_at_k(enough, k, confidence)
    return PassAtK(k=k, value=value, low=low, high=high, prompts=len(enough))
