"""Fits: certified and textbook values, refusals, fits over blocks, models compared, and whether a
curve may be drawn.
"""

import json
import re
import warnings

import nist
import numpy as np
import pytest
import xarray as xr
from command_line import run
from curves import HPL_X, TRUTHS, noisy
from scipy import stats
from statsmodels.regression.linear_model import OLS

from analysis.laws.block_fit import LEVEL, fit_blocks, follows
from analysis.laws.fit import combined, fit
from analysis.laws.model_comparison import HELD_OUT, PARAMETERS, compare, ranked_by
from analysis.laws.models import find, names
from analysis.laws.scaling_laws import LAWS, fit_each
from runners.records.record import FalloffError

NODES = np.array([1.0, 2, 4, 8])
CONSTANT, POWER_LAW, USL = (find(n) for n in ("constant", "power_law", "usl"))
CURVES = [CONSTANT, find("amdahl"), POWER_LAW, USL, find("segmented")]
SIXTEEN = np.array([1.0, 2, 4, 8, 16])


@pytest.mark.parametrize("start", [0, 1], ids=["start 1", "start 2"])
@pytest.mark.parametrize("name", nist.FUNCTIONS)
def test_nist_certified_values(name, start):
    """Estimates, their deviations and the residuals' deviation, from each of NIST's starts."""
    data = nist.read(name, start)
    found = fit(data.model, data.x, data.y)
    assert found.estimates == pytest.approx(data.estimates, rel=3e-6)
    assert found.standard_errors == pytest.approx(data.deviations, rel=2e-5)
    assert found.sigma == pytest.approx(data.sigma, rel=1e-8)


@pytest.mark.parametrize("name", ["specsdm91", "raytracer"])
def test_universal_scalability_as_the_r_package_usl_prints_it(name):
    """Coefficients, standard errors and residual error, up to a few units of the last printed
    digit.
    """
    lines = (nist.FOLDER / f"{name}.csv").read_text().splitlines()
    n, rate = np.loadtxt([line for line in lines if line[0].isdigit()], delimiter=",").T
    matches = [re.fullmatch(r"# ([a-z ]+) = ([\d. +-]+)", line) for line in lines]
    printed = {match[1]: match[2].split(" +- ") for match in matches if match}
    found = fit(USL, n, rate)
    mine = {name: (value, found.standard_errors[name]) for name, value in found.estimates.items()}
    mine["residual standard error"] = (found.sigma,)
    assert set(printed) == set(mine)
    for quantity, texts in printed.items():
        for value, text in zip(mine[quantity], texts):
            digit = 10.0 ** -len(text.partition(".")[2])
            assert value == pytest.approx(float(text), rel=1e-7, abs=3 * digit)
    assert found.at_bounds == (("kappa",) if float(printed["kappa"][0]) == 0 else ())


def test_the_constant_is_the_mean_with_its_t_interval_and_aicc():
    """Closed forms, and statsmodels' likelihood."""
    y, n, k = noisy(np.full(9, 5.0), 0.1), 9, 2
    found = fit(CONSTANT, np.arange(n), y)
    assert found.estimates["c"] == pytest.approx(y.mean())
    assert found.standard_errors["c"] == pytest.approx(stats.sem(y))
    interval = stats.t.interval(0.95, n - 1, y.mean(), stats.sem(y))
    assert found.intervals["c"] == pytest.approx(interval) and found.interval_kind == "t interval"
    likelihood = OLS(y, np.ones(n)).fit().llf
    aicc = -2 * likelihood + 2 * k + 2 * k * (k + 1) / (n - k - 1) - n * (1 + np.log(2 * np.pi))
    assert found.aicc == pytest.approx(aicc)
    # It needs more distinct x than parameters and one, and more points than that.
    for model, repeats, is_known in (
        (CONSTANT, 1, True),
        (POWER_LAW, 2, True),
        (POWER_LAW, 1, False),
        (USL, 6, False),
    ):
        x = np.tile(NODES, repeats)
        found = fit(model, x, noisy(4 * x**0.9, 0.02))
        assert (found.aicc is not None) == is_known == (not found.aicc_refused)


def test_negative_coherency_puts_kappa_on_its_bound_and_says_so():
    """Growth of the rate per node asks for kappa below 0; the fit is then Amdahl's law, and its
    interval ends there.
    """
    x = np.repeat(NODES, 6)
    y = noisy(USL.function(x, 4.0, 0.1, -0.002), 0.001)
    found, amdahl = fit(USL, x, y), fit(find("amdahl"), x, y)
    assert found.at_bounds == ("kappa",) and found.as_json()["at_bounds"] == ["kappa"]
    assert found.estimates["kappa"] == found.intervals["kappa"][0] == 0 and amdahl.at_bounds == ()
    assert found.estimates == pytest.approx({**amdahl.estimates, "kappa": 0.0}, rel=1e-6)
    # A coherency that noise does not hide is reported, however small.
    found = fit(USL, x, noisy(USL.function(x, 4.0, 0.05, 1e-4), 1e-5))
    assert found.at_bounds == () and found.estimates["kappa"] == pytest.approx(1e-4, rel=0.1)
    # Perfect linear scaling has neither contention nor coherency, no interval and no likelihood.
    found = fit(USL, np.repeat(NODES, 2), np.repeat(4 * NODES, 2))
    assert found.estimates == {"gamma": pytest.approx(4.0), "sigma": 0.0, "kappa": 0.0}
    assert found.at_bounds == ("sigma", "kappa") and found.aicc is None and found.aicc_refused
    assert found.interval_kind == "none: the model is exact"


@pytest.mark.parametrize(
    ("model", "x", "y", "message"),
    [
        (USL, np.tile([2, 4], 10), np.tile([7, 13], 10), "at least 3 distinct x.*have 2"),
        (CONSTANT, NODES, [1, 2, np.nan, 4], "1 of 4 points"),
        (find("hpl"), NODES, NODES, "four rows: N, NB, P and Q"),
    ],
)
def test_what_the_data_cannot_carry_is_refused(model, x, y, message):
    with pytest.raises(FalloffError, match=message):
        fit(model, x, y)


@pytest.mark.parametrize(("n", "rate"), [([2, 4, 8], [10, 4, 2]), ([2, 4, 8, 16], [10, 4, 2, 1])])
def test_parameters_that_run_away_together_are_refused(n, rate):
    """These ask for an infinite gamma; how far the solver goes hangs on the last digits, the
    refusal does not.
    """
    for last_digits in np.random.default_rng(0).normal(0, 1e-12, (5, len(n))):
        with pytest.raises(FalloffError, match="do not tell the parameters .* apart"):
            fit(USL, n, rate * (1 + last_digits))


DEGENERATE = [
    ([], []),
    ([1], [4]),
    ([2, 2, 2], [3, 4, 5]),
    ([1, 2, 4, 8], [4, 8, 16, 32]),
    ([1, 2, 4, 8], [0, 0, 0, 0]),
    ([1, 2, 4, 8], [4, -1, 3, 2]),
    ([1, 2, 4], [4, 7, 13]),
    ([0, 1, 2, 3], [0, 1, 2, 2.9]),
    ([-1, 1, 2, 3], [1, 1, 2, 2.9]),
    ([1, 2, 4, np.inf], [4, 8, 16, 32]),
]


@pytest.mark.parametrize("name", names())
def test_degenerate_data_give_a_result_or_a_refusal(name):
    """Neither a crash nor a warning, and what is not known is null in JSON."""
    for x, y in DEGENERATE:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = fit(find(name), x, y)
            except FalloffError as refusal:
                assert str(refusal)
            else:
                json.dumps(found.as_json(), allow_nan=False)


def test_degenerate_tables_give_a_result_or_a_refusal():
    """Nothing known, nothing measured, no noise, a single block."""
    linear = 2 * SIXTEEN
    for values in np.full((3, 5), np.nan), np.zeros((4, 5)), np.tile(linear, (4, 1)), [linear]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for one in compare(CURVES, SIXTEEN, values):
                assert one["refused"] or one["interval_kind"]


def test_blocks_are_the_unit_of_repetition():
    """The t interval of the whole blocks' means; a single block has none, and without a whole one
    nothing is fitted.
    """
    table = noisy(np.full((7, 4), 5.0), 0.1)
    table[2, 3] = np.nan
    found, means = fit_blocks(CONSTANT, NODES, table), np.delete(table, 2, axis=0).mean(axis=1)
    interval = stats.t.interval(0.95, 5, means.mean(), stats.sem(means))
    assert found.blocks == 6
    assert found.parameter("c", "cost") == pytest.approx((means.mean(), *interval))
    alone = fit_blocks(POWER_LAW, NODES, [4 * NODES**0.9])
    assert alone.parameter("b", "cost") == pytest.approx((0.9, np.nan, np.nan), nan_ok=True)
    with pytest.raises(FalloffError, match="none of 2 blocks"):
        fit_blocks(CONSTANT, NODES, np.full((2, 4), np.nan))


def table(model, blocks, x=SIXTEEN, effect=0.03, noise=0.01, seed=0, truth=None):
    """Blocks of a model's own curve, each with an effect common to its points, on the log scale."""
    random = np.random.default_rng(seed)
    errors = random.normal(0, effect, (blocks, 1)) + random.normal(0, noise, (blocks, x.shape[-1]))
    return model.function(x, *(truth or TRUTHS[model.name])) * np.exp(errors)


def test_the_model_that_made_the_data_is_first():
    """The best AICc comes first, and predicts the largest configuration best."""
    found = compare(CURVES, SIXTEEN, table(USL, 8, effect=0.01))
    assert found[0]["model"] == "universal_scalability"
    ranked = [one["pooled"]["aicc"] for one in found if one["pooled"] and one["pooled"]["aicc"]]
    assert len(ranked) >= 4 and ranked == sorted(ranked)
    errors = {one["model"]: abs(one["held_out"]["error"]) for one in found if one["held_out"]}
    assert min(errors, key=errors.get) == "universal_scalability" and errors["constant"] > 0.5


def test_what_the_data_cannot_carry_is_last_with_its_reason():
    """Three node counts: nothing is estimated of a breakpoint, and no AICc where it would mean
    nothing. The constant, which alone has one, is not the best by it; the held-out error ranks."""
    found = compare(CURVES, SIXTEEN[:3], table(POWER_LAW, 5, SIXTEEN[:3]))
    assert ranked_by(found) == HELD_OUT and found[0]["model"] == "power_law"
    last, law = found[-1], next(one for one in found if one["model"] == "universal_scalability")
    assert last["model"] == "segmented" and last["refused"] and last["pooled"] is None
    constant = next(one for one in found if one["model"] == "constant")
    assert constant["pooled"]["aicc"] is not None and found.index(constant) > 0
    assert law["pooled"]["aicc"] is None and "3 distinct x" in law["pooled"]["aicc_refused"]
    assert law["held_out"] is None and "at least 3 distinct x" in law["held_out_refused"]


@pytest.mark.parametrize("distinct", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("truth", ["amdahl", "power_law", "universal_scalability", "hockney"])
def test_a_rate_that_grows_is_no_constant(truth, distinct):
    """At any number of x a growing curve is not called a constant; with one or two x nothing is
    ranked.
    """
    x = np.array([1.0, 3.0, 4.0, 6.0, 9.0])[:distinct]
    values = table(find(truth), 4, x, truth={"hockney": (0.5, 1.0)}.get(truth))
    found = compare(CURVES, x, values)
    criterion = ranked_by(found)
    if distinct < 3:
        assert not criterion
    assert not criterion or found[0]["model"] != "constant"


def test_a_model_without_residuals_is_the_best():
    """Points that lie on a curve to the last digit have no AICc for it: it comes before all that
    miss them, and the law with the fewest parameters is chosen."""
    amdahl = find("amdahl").function(SIXTEEN, 3.0, 0.1)
    found = compare(CURVES, SIXTEEN, np.tile(amdahl, (3, 1)))
    assert ranked_by(found) == PARAMETERS and found[0]["model"] == "amdahl"
    share = xr.DataArray([[amdahl / SIXTEEN]] * 2, dims=["block", "interconnect", "nodes"])
    share = share.assign_coords(nodes=SIXTEEN, interconnect=["gige"])
    laws = fit_each(share, models=("constant", "universal_scalability", "amdahl"))
    assert laws.best("gige").model.name == "amdahl"


def test_a_law_is_chosen_only_where_others_could_be():
    """Of one to three node counts no law is named, none with as many parameters as node counts is
    drawn; of five, the true one."""
    for counts in (1, 2, 3, 5):
        x = SIXTEEN[:counts]
        share = xr.DataArray(
            [table(find("amdahl"), 4, x) / x], dims=["interconnect", "block", "nodes"]
        )
        laws = fit_each(share.assign_coords(nodes=x, interconnect=["gige"]), models=LAWS[:-1])
        best = laws.best("gige")
        assert (best is None) == (counts < 4)
        for law in laws.by_level["gige"]:
            assert not (law.follows and law.pooled.distinct_x <= len(law.pooled.estimates))


def test_a_sum_of_parameters_has_its_own_interval():
    """At the mean x a line's value is the mean y; also of points that do not tell its slope."""
    line, noise = find("hockney"), np.random.default_rng(2).normal(0, 0.1, 12)
    for x in (np.arange(1.0, 13), 5 + 1e-8 * np.arange(12)):
        y = 30 + 0.5 * x + noise
        value, low, high = combined(line, x, y, [1, x.mean()])
        residuals = y - np.polyval(np.polyfit(x, y, 1), x)
        assert value == pytest.approx(y.mean(), rel=1e-6)
        half = stats.t.ppf(0.975, 10) * np.sqrt(np.sum(residuals**2) / 10 / 12)
        assert (low, high) == pytest.approx((y.mean() - half, y.mean() + half), rel=0.01)
    with pytest.raises(FalloffError, match="apart"):
        fit(line, x, y)
    value, low, high = combined(line, x, y, [0, 1])
    assert high - low > 100 * abs(y.mean())


def test_no_rate_above_0_is_refused():
    """Zeros and negatives are no curve of a rate."""
    for values in (np.zeros(4), -NODES):
        with pytest.raises(FalloffError, match="above 0"):
            fit(find("amdahl"), NODES, values)


@pytest.mark.parametrize("values", ["0 0 0", "-3 4 7", "3 0 7"])
def test_what_is_no_rate_is_refused_in_a_line(values, tmp_path):
    """Zeros and negatives: no curve of a rate, no warning."""
    file = tmp_path / "t.csv"
    rows = [f"{n},{rate},1" for n, rate in zip((1, 2, 4), values.split())]
    file.write_text("\n".join(["nodes,rate,block", *rows]) + "\n")
    for words in (("amdahl", str(file)), ("usl", str(file)), (str(file), "--block", "block")):
        done = run("fit", *words, "--x", "nodes", "--y", "rate")
        assert done.returncode and not done.stdout and done.stderr.count("\n") == 1
        assert "'rate' has to be above 0" in done.stderr


def test_error_and_intervals_are_those_over_the_blocks():
    """Of the constant: the smaller configurations' mean against the largest, geometric over the
    blocks; t intervals. An incomplete block counts for the pooled fit only. HPL's model takes four
    quantities of each point."""
    values = table(CONSTANT, 7)
    values[6, 1] = np.nan
    (found,) = compare([CONSTANT], SIXTEEN, values)
    whole = values[:6]
    factors = np.log(whole[:, :-1].mean(axis=1) / whole[:, -1])
    assert found["pooled"]["n"] == 34 and found["held_out"]["blocks"] == 6
    assert found["held_out"]["error"] == pytest.approx(np.expm1(factors.mean()))
    expected = np.expm1(stats.t.interval(0.95, 5, factors.mean(), stats.sem(factors)))
    assert found["held_out"]["interval"] == pytest.approx(expected)
    means = whole.mean(axis=1)
    interval = stats.t.interval(0.95, 5, means.mean(), stats.sem(means))
    assert found["intervals_95"]["c"] == pytest.approx(interval)
    assert found["interval_kind"] == "t interval over 6 blocks"
    (hpl,) = compare([find("hpl")], HPL_X, table(find("hpl"), 6, HPL_X))
    assert hpl["pooled"]["aicc"] is not None and abs(hpl["held_out"]["error"]) < 0.1


def test_an_interval_holds_its_estimate_or_is_refused():
    """Noise lets a fit run away in some blocks, whose mean is then no estimate; without coherency
    an interval begins at 0."""
    noise, kinds = np.random.default_rng(3), []
    for _ in range(8):
        rates = SIXTEEN / (1 + 0.03 * (SIXTEEN - 1)) * noise.normal(1, 0.3, (3, 5)).clip(0.05)
        for one in compare([USL, find("amdahl"), POWER_LAW], SIXTEEN, rates):
            for name, (low, high) in one["intervals_95"].items():
                estimate = one["pooled"]["estimates"][name]
                slack = 2e-6 * max(abs(low), abs(high), abs(estimate))
                assert low - slack <= estimate <= high + slack
            kinds.append(one["interval_kind"])
    assert any("the blocks do not tell it" in kind for kind in kinds)
    assert any(kind.startswith("t interval") for kind in kinds)
    (linear,) = compare([USL], SIXTEEN, table(USL, 8, truth=(4.0, 0.05, 0.0)))
    assert linear["intervals_95"]["kappa"][0] == 0 < linear["intervals_95"]["kappa"][1]


X = np.arange(1.0, 8.0)


def runs(curve, noise, blocks=6, seed=1):
    return curve * (1 + noise * np.random.default_rng(seed).standard_normal((blocks, len(X))))


def straight(values):
    """The least-squares line of all runs."""
    return np.polyval(np.polyfit(np.tile(X, len(values)), values.ravel(), 1), X)


def test_a_true_line_is_drawn_and_one_through_a_bend_is_not():
    """The line is refused no more often than the test's level says."""
    refused = 0
    for seed in range(200):
        values = runs(10 + X, 0.1, seed=seed)
        refused += not follows(values, straight(values), 2)
    assert refused / 200 <= 3 * LEVEL
    values = runs(100 - 60 * np.exp(-X), 0.01)
    assert not follows(values, straight(values), 2)


def test_close_is_near_enough_without_scatter():
    """A simulation repeats itself: only the distance counts. Missing runs do not, and what was not
    fitted is not drawn.
    """
    exact = (10 + X)[None]
    assert follows(exact, 1.01 * (10 + X), 2) and not follows(exact, 1.05 * (10 + X), 2)
    assert not follows(exact, np.full(7, np.nan), 2)
    values = runs(10 + X, 0.001)
    values[2:, 3] = values[:, 6] = np.nan
    assert follows(values, 10 + X, 2)
