"""The test for two modes: what it finds, and how often it is wrong, by Monte Carlo with fixed seeds."""

import numpy as np
import pytest

from analysis.inference.modes import FEWEST, LEAST, _mixtures, _under_one_mode, modes


def found(samples):
    """The part of the rows in which two modes are found."""
    return np.mean([modes(sample).kind == "two modes" for sample in samples])


def mixture(random, samples, n=30, share=0.3, apart=4.0):
    """Rows of n values, each of the high mode with probability `share`, `apart` standard deviations away."""
    return random.normal(size=(samples, n)) + apart * (random.random((samples, n)) < share)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_planted_mixture_is_found_in_at_least_80_percent(sign):
    """70 and 30 %, 4 standard deviations apart, n = 30; the rare mode above or below."""
    assert found(sign * mixture(np.random.default_rng(1), 400)) >= 0.8


def test_normal_samples_have_false_alarms_in_at_most_5_percent():
    """n = 30; the margin is two standard deviations of the count."""
    assert found(np.random.default_rng(2).normal(size=(1500, 30))) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1500)


@pytest.mark.parametrize(("n", "least"), [(20, 0.55), (60, 0.95)])
def test_power_grows_with_the_number_of_repeats(n, least):
    """The same mixture in fewer and in more repeats."""
    assert found(mixture(np.random.default_rng(3), 300, n)) >= least


def test_skewed_samples_are_left_undecided():
    """An exponential sample is not normal, but one skewed mode explains it as well as two."""
    kinds = [modes(row).kind for row in np.random.default_rng(4).exponential(size=(300, 30))]
    assert kinds.count("undecided") > 4 * kinds.count("two modes")
    assert kinds.count("two modes") <= 0.15 * 300


def test_heavy_tails_are_no_modes():
    """Student's t with 3 degrees of freedom throws outliers, of which there are too few to be a mode."""
    assert found(np.random.default_rng(9).standard_t(3, size=(300, 30))) <= 0.1


def test_the_modes_are_described_in_the_unit_of_the_values():
    """Goodputs in bit/s: two means, their common spread and the low one's share."""
    random = np.random.default_rng(5)
    values = 1e9 * (3 + 0.1 * random.normal(size=60) - 1.5 * (np.arange(60) < 15))
    result = modes(random.permutation(values))
    assert result.kind == "two modes" and result.p < 0.01 and result.n == 60
    assert result.low == pytest.approx(1.5e9, rel=0.05) and result.high == pytest.approx(3e9, rel=0.05)
    assert result.sd == pytest.approx(1e8, rel=0.3) and result.share_low == pytest.approx(0.25)


def test_neither_unit_nor_order_nor_missing_values_matter():
    """p is the same of the values in another unit, shifted, mirrored, shuffled and with gaps."""
    values = mixture(np.random.default_rng(6), 1)[0]
    p = modes(values).p
    for same in (1e9 * values + 1e8, -values, values[::-1], np.insert(values, 3, np.nan)):
        assert modes(same).p == pytest.approx(p)


def test_outliers_are_no_mode():
    """Two values far away, of thirty, are no normal sample and fewer than make a mode."""
    values = np.random.default_rng(7).normal(size=30)
    values[: LEAST - 1] += 6
    assert modes(values).kind == "undecided"


@pytest.mark.parametrize("values", [[], [1.0] * (FEWEST - 1), np.arange(5)])
def test_too_few_values_are_undecided(values):
    """Nothing can be told of them, and that is the answer."""
    result = modes(values)
    assert result.kind == "undecided" and np.isnan(result.p) and result.n == len(values)


def test_equal_values_have_one_mode_and_two_values_two():
    """Rounded readings: all equal, or only two different ones."""
    assert modes([5.0] * 20).kind == "one mode"
    assert modes([5.0] * 12 + [7.0] * 8).kind == "two modes"


def test_expectation_and_maximisation_find_the_likelihood_of_the_truth():
    """At the estimates the sample is at least as likely as at the parameters that made it."""
    values = np.sort(mixture(np.random.default_rng(8), 1, n=200))
    standard = (values - values.mean()) / values.std()
    likelihood, share, low, high, sd = (part[0] for part in _mixtures(standard))
    truth = 0.7 * np.exp(-(values**2) / 2) + 0.3 * np.exp(-((values - 4) ** 2) / 2)
    of_truth = np.sum(np.log(truth * values.std() / np.sqrt(2 * np.pi)))
    assert likelihood >= of_truth
    density = sum(
        part * np.exp(-(((standard - mean) / sd) ** 2) / 2)
        for part, mean in ((share, low), (1 - share, high))
    )
    assert likelihood == pytest.approx(np.sum(np.log(density / (sd * np.sqrt(2 * np.pi)))))


def test_one_set_of_normal_samples_serves_a_size():
    """The same size is bootstrapped once, and the same way each time."""
    assert _under_one_mode(30) is _under_one_mode(30)
