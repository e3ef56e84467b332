"""pass@k: the probability that at least one of k completions of a prompt is right."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple


class Estimate(NamedTuple):
    """A number between 0 and 1, and the interval that it lies in with the asked-for confidence."""

    value: float
    low: float
    high: float


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Return the unbiased estimate of pass@k for one prompt.

    Chen et al. (Codex, arXiv 2107.03374, equation 1): 1 - C(n - c, k) / C(n, k), computed as the product
    1 - Π (1 - k / i) for i from n - c + 1 to n, or the same with c and k exchanged where that is shorter, which neither
    overflows nor cancels.

    Args:
        samples: n, completions that were graded.
        correct: c, how many of them are right.
        k: completions that the imagined caller draws.

    Raises:
        ValueError: not 0 <= correct <= samples, or not 1 <= k <= samples: from fewer than k samples there is no
            unbiased estimate.
    """
    if not 0 <= correct <= samples:
        raise ValueError(f"{correct} correct of {samples} samples is impossible")
    if not 1 <= k <= samples:
        raise ValueError(f"k is {k}; it must be between 1 and the number of samples, which is {samples}")
    if samples - correct < k:
        return 1.0
    # log1p and expm1 keep the small results exact: 1 - (1 - 1e-18) would be 0.
    fewer, more = min(correct, k), max(correct, k)
    missed = math.fsum(math.log1p(-more / i) for i in range(samples - fewer + 1, samples + 1))
    return -math.expm1(missed)


def mean_pass_at_k(counts: Sequence[tuple[int, int]], k: int, confidence: float = 0.95) -> Estimate:
    """Return the mean of pass@k over prompts, with a confidence interval for other prompts of the same kind.

    The interval is Wilson's score interval (Wilson 1927) with the effective sample size of the variance between prompts
    (Korn and Graubard 1998): P / (s² / (m·(1 - m))) for P prompts with mean m and variance s². Unlike m ± z·s/√P it
    stays within 0…1 and does not shrink to a point when no prompt, or every one, was solved.

    Args:
        counts: (samples, correct) of each prompt.
        k: completions that the imagined caller draws.
        confidence: probability that the interval covers the true mean.

    Raises:
        ValueError: there are no prompts, one has fewer than k samples or impossible counts, or the confidence is not
            strictly between 0 and 1.
    """
    if not counts:
        raise ValueError("there are no prompts to estimate from")
    known = {pair: pass_at_k(*pair, k) for pair in set(counts)}
    values = [known[pair] for pair in counts]
    prompts = len(values)
    mean = min(1.0, math.fsum(values) / prompts)
    effective = float(prompts)
    if prompts > 1 and 0.0 < mean < 1.0:
        variance = math.fsum((value - mean) ** 2 for value in values) / (prompts - 1)
        # Values within 0…1 vary at most like 0s and 1s; equal ones by chance do not make the prompts certain.
        effective = prompts * max(1.0, min(mean * (1.0 - mean) / variance, prompts)) if variance > 0 else effective
    return Estimate(mean, *_wilson(mean, effective, confidence))


def success_rate(samples: int, correct: int, confidence: float = 0.95) -> Estimate:
    """Return the share of right completions of one prompt, with Wilson's score interval (Wilson 1927).

    Raises:
        ValueError: not 0 <= correct <= samples, no samples, or the confidence is not strictly between 0 and 1.
    """
    if samples < 1 or not 0 <= correct <= samples:
        raise ValueError(f"{correct} correct of {samples} samples is impossible")
    return Estimate(correct / samples, *_wilson(correct / samples, samples, confidence))


def _wilson(share: float, size: float, confidence: float) -> tuple[float, float]:
    z = _quantile(confidence)
    centre = (share + z * z / (2 * size)) / (1 + z * z / size)
    half = z / (1 + z * z / size) * math.sqrt(share * (1 - share) / size + z * z / (4 * size * size))
    low = 0.0 if share == 0.0 else max(0.0, centre - half)
    high = 1.0 if share == 1.0 else min(1.0, centre + half)
    return low, high


def _quantile(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}; it must be strictly between 0 and 1")
    return NormalDist().inv_cdf((1.0 + confidence) / 2.0)
