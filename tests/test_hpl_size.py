"""HPL over the order of the matrix: planted costs come back, and what cannot be known is said."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import NODE_RATE
from synthetic_studies import COSTS, size_campaign

from analysis import models
from analysis.experiments import hpl_size as size
from analysis.fitting.batch import refit
from analysis.statistics.intervals import t_interval
from analysis.models.hpl import hpl
from runners.record import FalloffError

LINK = {"GigE": 1e9, "10GE": 1e10}  # bit/s


@cache
def exact_study():
    """Three blocks without scatter."""
    return size.analyse(size_campaign(blocks=3, noise=0, block_effect=0))


@cache
def noisy_study():
    """Eight blocks with scatter."""
    return size.analyse(size_campaign(blocks=8, noise=0.015, seed=4))


def words(study):
    return size.finding(study).replace("\u00a0", " ")


def shown(study):
    """Everything that the study says, hard spaces as spaces."""
    tables = (size.shares_table(study), size.model_table(study), size.foretold_table(study))
    return " ".join([words(study), *(table.markdown for table in tables if table)]).replace(
        "\u00a0", " "
    )


def of(study, interconnect):
    return next(curve for curve in study.curves if curve.interconnect == interconnect)


@pytest.mark.parametrize("interconnect", COSTS)
def test_planted_costs_come_back(interconnect):
    """Without noise, alpha, beta, gamma and the limit are the planted ones, up to DGEMM's own scatter."""
    curve, planted = of(exact_study(), interconnect), COSTS[interconnect]
    for name, tolerance in (("alpha", 0.02), ("beta", 0.1), ("gamma", 0.02)):
        assert curve.blocks.estimates[name] == pytest.approx(planted[name], rel=tolerance)
    assert curve.asymptotes.mean() == pytest.approx(1 / planted["gamma"], rel=0.02)


def test_intervals_hold_the_planted_costs():
    """Of many noisy campaigns, the 95 % intervals miss as few as they say; with costs cut off at 0, more."""
    planted = COSTS["10gige"]
    x = size.settings(exact_study().points, exact_study().points.N)
    scatter = np.random.default_rng(5).normal(0, 0.03, (500 * 8, x.shape[1]))
    table = hpl(x, **planted) * np.exp(scatter)

    def coverage(model):
        by_block = refit(model, x, table).estimates.reshape(500, 8, 3)
        _, _, low, high = t_interval(np.swapaxes(by_block, 0, 1))
        truth = np.array(list(planted.values()))
        return np.mean((low <= truth) & (truth <= high), axis=0)

    assert ((coverage(size.HPL) > 0.92) & (coverage(size.HPL) < 0.98)).all()
    assert coverage(models.find("hpl")).min() < 0.9


def test_the_same_limit_is_recognised():
    """Both networks' limits are planted the same: the ratio's interval holds 1, whatever they cost before."""
    exact = exact_study().agreement
    assert exact.kind == "holds" and exact.ratio == pytest.approx(1, abs=0.01)
    assert noisy_study().ratios.ratio.min() < 0.95


def test_another_limit_is_recognised():
    """A network that slows every operation has another limit, and the agreement is violated."""
    costs = {**COSTS, "gige": {**COSTS["gige"], "gamma": 1.5}}
    study = size.analyse(size_campaign(blocks=6, noise=0.003, costs=costs))
    assert study.agreement.kind == "violated"
    assert study.agreement.ratio == pytest.approx(1.15 / 1.5, rel=0.05)


def test_ratios_are_those_of_the_planted_rates():
    """At every N the ratio is the planted one, and a block's own speed does not matter."""
    study = size.analyse(size_campaign(blocks=3, noise=0, block_effect=0.2))
    x = size.settings(study.points, study.ratios.N)
    wanted = hpl(x, **COSTS["gige"]) / hpl(x, **COSTS["10gige"])
    np.testing.assert_allclose(study.ratios.ratio, wanted, rtol=1e-9)


costs = st.tuples(st.floats(1e3, 1e9), st.floats(0, 1e3), st.floats(0.5, 3))


@settings(deadline=None)
@given(costs, st.floats(0.3, 0.97), st.sampled_from([(64, 1, 4), (128, 2, 4), (96, 3, 3)]))
def test_order_of_part_is_where_the_curve_is(planted, part, grid):
    """At the order found, the model has that part of its limit."""
    NB, P, Q = grid
    order = float(size.order_of_part(part, *planted, NB, P, Q))
    reached = hpl(np.array([[order], [NB], [P], [Q]]), *planted).item() * planted[2] / (P * Q)
    assert reached == pytest.approx(part, rel=1e-6)


def test_a_network_that_costs_nothing_is_always_near_its_limit():
    """Without a cost of messages and elements there is no such order, and none is made up."""
    assert size.order_of_part(0.9, 0.0, 0.0, 1.1, 64, 1, 4) == 0


def test_hpls_model_foretells_the_largest_size_better_than_a_power_law():
    """The held-out error is small for the model that made the data, and large for the others."""
    errors = {c.model.name: abs(c.held_out.error) for c in of(noisy_study(), "gige").comparisons}
    assert errors["hpl"] < 0.03 < errors["power_law"] < errors["constant"]


def test_one_block_has_estimates_and_no_interval():
    """A single block gives a curve and a limit, no interval, and the agreement is undecided."""
    study = size.analyse(size_campaign(blocks=1, noise=0.002))
    assert study.agreement.kind == "undecided" and study.agreement.interval is None
    assert all(
        curve.asymptotes.notnull().all() and np.isnan(curve.limit.low) for curve in study.curves
    )
    assert "Whether both tend to the same limit is open" in words(
        study
    ) and "interval" not in words(study)


def test_a_failed_run_costs_its_point_and_its_blocks_curve():
    """The ratio at that N has a block less, and the curve leaves the block out."""
    study = size.analyse(size_campaign(blocks=4, failed={(2, "gige", 4, 2560)}))
    assert study.ratios.blocks.sel(N=2560) == 3 and study.ratios.blocks.sel(N=3584) == 4
    assert (of(study, "gige").blocks.blocks, of(study, "10gige").blocks.blocks) == (3, 4)
    assert of(study, "gige").asymptotes.block.values.tolist() == [1, 3, 4]
    assert study.agreement.blocks == 3


def test_without_a_valid_block_everything_is_unknown():
    """Failures leave nothing: no number is made up, and the refusal says why."""
    failed = {(1, network, 4, N) for network in ("gige", "10gige") for N in (1280, 2560, 5056)}
    study = size.analyse(size_campaign(blocks=1, N=(1280, 2560, 5056), failed=failed))
    assert "cannot be said" in words(study) and not re.search(r"\b(nan|None)\b", shown(study))
    assert all("none of 1 blocks" in curve.refused for curve in study.curves)
    size.figures(study)


def test_two_sizes_cannot_carry_the_model():
    """Three costs from two sizes are refused in words, and the ratios remain."""
    study = size.analyse(size_campaign(blocks=3, N=(1280, 2560)))
    assert all(curve.blocks is None and "3" in curve.refused for curve in study.curves)
    assert study.ratios.ratio.notnull().all() and study.agreement.kind == "undecided"
    assert "gives no limit" in words(study)
    size.figures(study)


def test_a_rate_without_a_limit_is_refused():
    """Where messages are nearly all of the time, some block's rate grows without end: no limit is made up."""
    steep = {"alpha": 1e9, "beta": 0.0, "gamma": 1e-3}
    study = size.analyse(
        size_campaign(blocks=6, noise=0.05, costs={"gige": steep, "10gige": steep})
    )
    assert all("no limit in" in curve.refused for curve in study.curves)
    assert study.agreement.kind == "undecided" and study.agreement.ratio is None


def test_several_node_counts_are_refused():
    """The study is of one cluster; which one, it would not know."""
    dataset = size_campaign(blocks=1)
    dataset.attrs["design"] = dataset.attrs["design"].replace('"nodes": [4]', '"nodes": [2, 4]')
    with pytest.raises(FalloffError, match="single level of nodes, not 2, 4"):
        size.analyse(dataset)


def test_costs_are_told_in_seconds():
    """flop over a node's rate are seconds, and the wire's time of 8 bytes stands beside them."""
    rows = {row[0]: row for row in size.model_table(exact_study()).rows}
    for network, planted in zip(LINK, COSTS.values()):
        message, element, on_wire = (seconds(cell) for cell in rows[network][3:6])
        assert message == pytest.approx(planted["alpha"] / (NODE_RATE * 1e9), rel=0.03)
        assert element == pytest.approx(planted["beta"] / (NODE_RATE * 1e9), rel=0.1)
        assert on_wire == pytest.approx(64 / (0.94 * LINK[network]), rel=0.01)


def seconds(cell):
    """A time as a table writes it."""
    value, unit = cell.split(" (")[0].split("\u00a0")
    return float(value) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]


def test_the_finding_follows_the_data():
    """What the network costs at either end, whether the limits agree, and whether sizes foretell sizes."""
    said = words(size.analyse(size_campaign(blocks=4, noise=0.002)))
    assert re.search(
        r"GigE reaches \d\d\.\d % of 10GE's rate with a matrix of order 7168\*\* \(95 % interval",
        said,
    )
    assert (
        "both tend to the same limit, within 5 %" in said
        and "predict the largest within 5 %" in said
    )
    costs = {**COSTS, "gige": {**COSTS["gige"], "gamma": 1.5}}
    other = words(size.analyse(size_campaign(blocks=6, noise=0.003, costs=costs)))
    assert "GigE tends to another limit than 10GE" in other


def test_a_curve_that_misses_is_not_drawn():
    """Rates that jump at the largest sizes are not HPL's model: no curve, no limit, and the finding says so."""
    dataset = size_campaign(blocks=6, noise=0.002)
    jump = dataset.hpl_rate.where(dataset.N < 5000, 0.5 * dataset.hpl_rate)
    study = size.analyse(dataset.assign(hpl_rate=jump))
    assert not any(curve.follows for curve in study.curves)
    assert size.model_table(study) is None and "no limit" in words(study)
    figure = size.figures(study)["size"].figure
    assert not [line for line in figure.axes[0].lines if line.get_gid() == "model"]


def test_the_figure_shows_every_run():
    """Each valid share is a mark, and the curve of a model that follows is there."""
    figure = size.figures(noisy_study())["size"].figure
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for line in figure.axes[0].lines])
    for share in 100 * noisy_study().points.share.values.ravel():
        assert np.isclose(heights, share).any()
    assert len([line for line in figure.axes[0].lines if line.get_gid() == "model"]) == 2
