"""Dynamic sampling: which groups teach anything, and how many more prompts to draw until a batch is full of them."""

import math

from assay.advantages import Rewards, scored_rewards


def is_informative(rewards: Rewards, tolerance: float = 1e-9) -> bool:
    """Say whether a group's rewards differ, so that its advantages are not all 0.

    The constraint 0 < number of right completions < G of DAPO (arXiv 2503.14476, equation 11), for rewards of any kind:
    the largest and the smallest differ by more than `tolerance`. Missing rewards (None) are left out; fewer than two
    say nothing.

    Raises:
        ValueError: a reward is not finite.
    """
    scored = scored_rewards(rewards)
    return len(scored) >= 2 and max(scored) - min(scored) > tolerance


def is_mean_within(scores: Rewards, low: float = 0.0, high: float = 1.0) -> bool:
    """Say whether the mean of a group's scores lies strictly between two bounds, OpenRLHF's form of the filter.

    Missing scores (None) are left out; a group with fewer than two says nothing and is not kept.

    Raises:
        ValueError: a score is not finite.
    """
    scored = scored_rewards(scores)
    return len(scored) >= 2 and low < math.fsum(scored) / len(scored) < high


class DynamicSampler:
    """Counts groups until a batch is full of informative ones (DAPO, arXiv 2503.14476, section 3.2).

        sampler = DynamicSampler(groups=64)
        while sampler.next_draw:
            for group in rollout(prompts(sampler.next_draw)):
                if sampler.add(group.rewards):
                    batch.append(group)

    The batch may get a few groups more than asked for; `next_draw` never asks for more prompts than the budget has.
    """

    def __init__(self, groups: int, *, most_prompts: int | None = None) -> None:
        """Begin an empty batch.

        Args:
            groups: informative groups that make the batch full.
            most_prompts: prompts to draw at most; no bound when left out.

        Raises:
            ValueError: `groups` or `most_prompts` is less than 1.
        """
        if groups < 1 or (most_prompts is not None and most_prompts < 1):
            raise ValueError("groups and most_prompts must be 1 or more")
        self._groups = groups
        self._most_prompts = most_prompts
        self.kept = 0
        """Informative groups so far."""
        self.drawn = 0
        """Groups seen so far, with those that could not be graded."""
        self.ungraded = 0
        """Groups with fewer than two rewards because the grading failed; they say nothing of the kept share."""

    def add(self, rewards: Rewards) -> bool:
        """Count a group and say whether to keep it.

        Raises:
            ValueError: a reward is not finite.
        """
        graded = len(scored_rewards(rewards)) >= 2
        keep = is_informative(rewards)
        self.drawn += 1
        self.ungraded += not graded
        self.kept += keep
        return keep

    @property
    def missing(self) -> int:
        """Informative groups that the batch still lacks."""
        return max(0, self._groups - self.kept)

    @property
    def is_full(self) -> bool:
        """Whether the batch has all its groups."""
        return self.missing == 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the prompts' budget ended before the batch was full: go on with fewer groups, or stop."""
        return not self.is_full and self.next_draw == 0

    @property
    def kept_share(self) -> float:
        """Expected share of informative prompts, by Laplace's rule of succession: (kept + 1) / (graded + 2)."""
        return (self.kept + 1) / (self.drawn - self.ungraded + 2)

    @property
    def next_draw(self) -> int:
        """Prompts to draw now: what the batch lacks at first, then that divided by the kept share; 0 when to stop."""
        if self.is_full:
            return 0
        wanted = self._groups if self.drawn == 0 else math.ceil(self.missing / self.kept_share)
        return wanted if self._most_prompts is None else max(0, min(wanted, self._most_prompts - self.drawn))
