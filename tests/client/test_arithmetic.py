"""The arithmetic of rewards against numbers worked out by hand, as written beside them."""

import math
from itertools import combinations

import pytest
from assay import (
    DynamicSampler,
    cosine_length_reward,
    group_advantages,
    group_length_rewards,
    is_informative,
    is_mean_within,
    language_consistency,
    mean_pass_at_k,
    overlong_mask,
    pass_at_k,
    repetition_penalty,
    soft_overlong_punishment,
    success_rate,
)
from assay.advantages import Estimator


def about(expected: object) -> object:
    return pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("rewards", "estimator", "ddof", "expected"),
    [
        # mean 0.5, squared distances 4 · 0.25 = 1: s = √(1/3) with ddof 1, 1/2 with ddof 0
        ([1, 0, 0, 1], "grpo", 1, [math.sqrt(3) / 2, -math.sqrt(3) / 2, -math.sqrt(3) / 2, math.sqrt(3) / 2]),
        ([1, 0, 0, 1], "grpo", 0, [1, -1, -1, 1]),
        # mean 1/4, squared distances 9/16 + 3/16 = 3/4: s = 1/2 with ddof 1
        ([1, 0, 0, 0], "grpo", 1, [1.5, -0.5, -0.5, -0.5]),
        ([1, 0, 0, 0], "dr_grpo", 1, [0.75, -0.25, -0.25, -0.25]),
        # 1 - 0/3, and 0 - 1/3
        ([1, 0, 0, 0], "leave_one_out", 1, [1, -1 / 3, -1 / 3, -1 / 3]),
        ([-1.0, 1.2, 0.4], "dr_grpo", 1, [-1.2, 1.0, 0.2]),
        ([-1.0, 1.2, 0.4], "leave_one_out", 1, [-1.8, 1.5, 0.3]),
        # a missing reward is in no mean: the rest is [1, 0] with s = √(1/2)
        ([1, None, 0], "grpo", 1, [math.sqrt(0.5), None, -math.sqrt(0.5)]),
        ([1, None, 0], "leave_one_out", 1, [1, None, -1]),
        ([0.1, 0.1, 0.1], "grpo", 1, [0, 0, 0]),
        ([None, 1, None], "grpo", 1, [None, 0, None]),
        ([None, None], "dr_grpo", 1, [None, None]),
        ([], "grpo", 1, []),
    ],
)
def test_group_advantages(rewards: list[float], estimator: Estimator, ddof: int, expected: list[float]) -> None:
    assert group_advantages(rewards, estimator, ddof=ddof, epsilon=0.0) == about(expected)  # type: ignore[arg-type]


def test_epsilon_is_added_to_the_deviation() -> None:
    assert group_advantages([1, 0, 0, 0], epsilon=0.5) == about([0.75, -0.25, -0.25, -0.25])


def test_rewards_of_any_size_have_advantages() -> None:
    assert group_advantages([1e12 + 1, 1e12], epsilon=0.0) == about([math.sqrt(0.5), -math.sqrt(0.5)])
    assert group_advantages([1e-12, 0.0], epsilon=0.0) == about([math.sqrt(0.5), -math.sqrt(0.5)])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rewards_that_are_no_numbers_are_refused(bad: float) -> None:
    for function in (group_advantages, is_informative, is_mean_within, DynamicSampler(1).add):
        with pytest.raises(ValueError, match="must be finite"):
            function([0.0, bad, 1.0])


def test_an_unknown_estimator_is_refused_even_where_it_would_not_matter() -> None:
    with pytest.raises(ValueError, match="unknown estimator"):
        group_advantages([1.0], "ppo")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "expected"),
    # L_max 100, L_cache 20: 80 is free, 90 is half the way, 100 is all of it, as is everything beyond
    [(0, 0), (80, 0), (81, -0.05), (90, -0.5), (100, -1), (101, -1), (10**9, -1)],
)
def test_soft_overlong_punishment(length: int, expected: float) -> None:
    assert soft_overlong_punishment(length, 100, 20) == about(expected)


def test_overlong_mask() -> None:
    assert overlong_mask([5, 9, 10, 11], 10) == [True, True, False, False]
    assert overlong_mask([5, 10, 10, 11], 10, finished=[False, True, False, True]) == [False, True, False, False]
    with pytest.raises(ValueError, match="finished has 1"):
        overlong_mask([1, 2], 10, finished=[True])


@pytest.mark.parametrize(
    ("length", "correct", "expected"),
    # cos 0 = 1, cos π/3 = 1/2, cos π/2 = 0, cos π = -1
    [
        (0, True, 1),
        (100, True, 0.875),
        (150, True, 0.75),
        (300, True, 0.5),
        (900, True, 0.5),
        (0, False, -1),
        (100, False, -0.875),
        (150, False, -0.75),
        (300, False, -0.5),
        (900, False, -0.5),
    ],
)
def test_cosine_length_reward(length: int, correct: bool, expected: float) -> None:
    assert cosine_length_reward(length, correct, max_length=300) == about(expected)


def test_group_length_rewards() -> None:
    # λ: 0.5, 0.25, -0.5; wrong ones do not gain
    assert group_length_rewards([10, 15, 30], [True, True, True]) == about([0.5, 0.25, -0.5])
    assert group_length_rewards([10, 15, 30], [False, False, False]) == about([0, 0, -0.5])
    assert group_length_rewards([7, 7], [True, False]) == [0, 0]
    assert group_length_rewards([], []) == []


@pytest.mark.parametrize(
    ("tokens", "ngram", "expected"),
    [
        ([1, 2, 3, 4], 3, 0),  # two trigrams, both new
        ([1, 1, 1, 1], 3, -0.5),  # two trigrams, one new
        ([1, 2, 1, 2, 1, 2], 2, -0.6),  # five bigrams, two new
        ([1, 2], 3, 0),
        ([], 1, 0),
        (["a", "a", "b", "a"], 1, -0.5),
    ],
)
def test_repetition_penalty(tokens: list[object], ngram: int, expected: float) -> None:
    assert repetition_penalty(tokens, ngram) == about(expected)
    assert repetition_penalty(tokens, ngram, max_penalty=-2.0) == about(2 * expected)


@pytest.mark.parametrize(
    ("text", "script", "expected"),
    [
        ("We add two and two", "latin", 1),
        ("We add 两 numbers", "latin", 0.75),  # three words of four
        ("我们 add them", "chinese", 0.5),  # two characters and two words
        ("Let $x = α + β$, so ```python\nprint(1)\n``` \\alpha", "latin", 1),  # only "Let" and "so" are words
        ("Решение: ответ x", "cyrillic", 2 / 3),
        ("naïve café, cafe\u0301", "latin", 1),  # accents of their own are part of their letter
        ("答えは四", "japanese", 1),
        ("42 = 6 · 7", "latin", 1),
        ("", "chinese", 1),
    ],
)
def test_language_consistency(text: str, script: str, expected: float) -> None:
    assert language_consistency(text, script) == about(expected)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: soft_overlong_punishment(1, 10, 0), "cache is 0"),
        (lambda: soft_overlong_punishment(1, 10, 11), "cache is 11"),
        (lambda: soft_overlong_punishment(-1, 10, 5), "a length is -1"),
        (lambda: overlong_mask([-2], 10), "a length is -2"),
        (lambda: cosine_length_reward(1, True, max_length=0), "max_length is 0"),
        (lambda: group_length_rewards([1], [True, False]), "correct has 2"),
        (lambda: repetition_penalty([1], 0), "ngram is 0"),
        (lambda: repetition_penalty([1], 1, 0.5), "must be 0 or less"),
        (lambda: language_consistency("a", "klingon"), "unknown script"),
        (lambda: group_advantages([1.0], epsilon=-1.0), "epsilon is -1"),
        (lambda: pass_at_k(3, 4, 1), "4 correct of 3"),
        (lambda: pass_at_k(3, 1, 4), "k is 4"),
        (lambda: pass_at_k(3, 1, 0), "k is 0"),
        (lambda: mean_pass_at_k([], 1), "no prompts"),
        (lambda: mean_pass_at_k([(1, 1)], 1, confidence=1.0), "confidence is 1"),
        (lambda: success_rate(0, 0), "0 correct of 0"),
        (lambda: DynamicSampler(0), "1 or more"),
        (lambda: DynamicSampler(1, most_prompts=0), "1 or more"),
    ],
)
def test_impossible_arguments_are_refused_with_their_names(call: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rewards", "informative", "within"),
    [
        ([0, 1, 0], True, True),
        ([0, 0, 0], False, False),
        ([1, 1], False, False),
        ([0.5, 0.5], False, True),
        ([None, 1, 0], True, True),
        ([None, 1], False, False),
        ([1], False, False),
        ([], False, False),
        ([0.1 + 0.2, 0.3], False, True),  # equal but for rounding
    ],
)
def test_which_groups_are_kept(rewards: list[float | None], informative: bool, within: bool) -> None:
    assert is_informative(rewards) is informative
    assert is_mean_within(rewards) is within


def test_the_sampler_draws_until_the_batch_is_full() -> None:
    sampler = DynamicSampler(groups=4)
    assert sampler.next_draw == 4
    assert [sampler.add(group) for group in ([0, 1], [0, 0], [1, 1], [0, 0])] == [True, False, False, False]
    assert sampler.missing == 3
    assert sampler.next_draw == 9  # kept share (1 + 1) / (4 + 2) = 1/3
    assert not sampler.add([None, 1])  # the grading failed, which says nothing of the share
    assert sampler.next_draw == 9
    for _ in range(3):
        assert sampler.add([1, 0])
    assert (sampler.is_full, sampler.next_draw, sampler.missing, sampler.is_exhausted) == (True, 0, 0, False)


def test_the_sampler_stops_at_the_end_of_its_budget() -> None:
    sampler = DynamicSampler(groups=2, most_prompts=3)
    sampler.add([0, 0])
    sampler.add([0, 0])
    assert sampler.next_draw == 1
    assert not sampler.is_exhausted
    sampler.add([0, 1])
    assert sampler.next_draw == 0
    assert sampler.is_exhausted


def test_pass_at_k_is_the_share_of_subsets_with_a_right_one() -> None:
    for samples in range(1, 8):
        for correct in range(samples + 1):
            for k in range(1, samples + 1):
                subsets = list(combinations(range(samples), k))
                share = sum(min(subset) < correct for subset in subsets) / len(subsets)
                assert pass_at_k(samples, correct, k) == about(share)


def test_pass_at_k_is_exact_where_factorials_are_not() -> None:
    exact = 1 - math.comb(99_990, 5_000) / math.comb(100_000, 5_000)  # Python's integers do not overflow
    assert pass_at_k(100_000, 10, 5_000) == pytest.approx(exact, rel=1e-12)
    assert pass_at_k(10**15, 1, 1) == pytest.approx(1e-15, rel=1e-9)
    assert pass_at_k(10, 0, 10) == 0.0
    assert pass_at_k(10, 1, 10) == 1.0


def test_mean_pass_at_k_and_its_interval() -> None:
    # 0 and 1 in equal parts: variance 4 · 0.25 / 3 = 1/3 is more than 1/4, so the size stays 4; with z = 1.959964:
    # centre 0.5, half width z / (1 + z²/4) · √(1/16 + z²/64) = 0.35 (Wilson's interval for 2 of 4)
    value, low, high = mean_pass_at_k([(1, 1), (1, 0), (1, 1), (1, 0)], 1)
    assert value == 0.5
    assert [low, high] == pytest.approx([0.15004, 0.84996], abs=1e-5)
    never = mean_pass_at_k([(8, 0)] * 10, 8)
    assert never.value == never.low == 0.0
    assert never.high == pytest.approx(0.27753, abs=1e-5)  # z² / (10 + z²)
    assert mean_pass_at_k([(8, 8)] * 10, 8).low == pytest.approx(1 - 0.27753, abs=1e-5)


def test_prompts_that_agree_give_a_narrower_interval() -> None:
    apart = mean_pass_at_k([(8, 0), (8, 8)] * 10, 1)
    close = mean_pass_at_k([(8, 3), (8, 5)] * 10, 1)
    assert apart.value == close.value == 0.5
    assert close.high - close.low < 0.5 * (apart.high - apart.low)


def test_success_rate() -> None:
    rate = success_rate(4, 2)
    assert rate.value == 0.5
    assert rate.low == pytest.approx(0.15004, abs=1e-5)
