"""HPL predicted from its links: planted latencies, errors and sensitivities come back, and gaps are said."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_prediction import (
    ALPHA,
    BETA,
    NODES,
    PER_SECOND,
    PER_SECOND_A_BYTE,
    analytic_share,
    as_modelled,
    emulated,
    modelled_share,
    share_by_blocks,
    surface_campaign,
    tokens,
)
from synthetic_smith import planted, smith_campaign

import experiment
from analysis import hpl_predictors, paths
from analysis.experiments import hpl_links, hpl_prediction
from analysis.experiments.hpl_prediction import MISLEADS, PREDICTS, UNDECIDED
from analysis.hpl_predictors import ANALYTIC, BY_BLOCKS, SIMULATED, surface
from analysis.models import hpl
from analysis.statistics.draws import over_draws, resampled_blocks
from runners.record import FalloffError

SURFACE = surface_campaign()


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    """Enough of them to find what is planted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hpl_links, "DRAWS", 200)
        yield


@cache
def planted_surface():
    """The surface of the simulated campaign."""
    return surface(SURFACE)


def analyse(ran=None, exchanged=None, simulated=SURFACE, **others):
    """The study of synthetic datasets, by default of exact tokens and of HPL as its analytic model has it."""
    exchanged = tokens(noise=0.01) if exchanged is None else exchanged
    ran = emulated() if ran is None else ran
    return hpl_prediction.analyse(exchanged, ran, simulated, **others)


def links(*arguments, **chance):
    """The links of synthetic tokens."""
    return hpl_links.analyse(tokens(*arguments, **chance))


def words(study):
    """Finding and captions, hard spaces as spaces; nothing in them is left unknown."""
    figures = hpl_prediction.figures(study).values()
    text = "\n".join([hpl_prediction.finding(study), *(figure.markdown for figure in figures)])
    assert not re.search(r"\b(nan|None)\b", text)
    return text.replace("\u00a0", " ")


@pytest.fixture(scope="module")
def whole():
    """HPL as the surface has it, with noise."""
    return analyse(emulated(as_modelled, noise=0.01))


def test_planted_latency_and_bandwidth_come_back():
    """Without noise alpha and beta are the truth on every network, and the times follow the model."""
    study = links()
    for network in ALPHA:
        at = study.fits.sel(interconnect=network).isel(draw=0)
        assert float(at.alpha) == pytest.approx(ALPHA[network], rel=1e-6)
        assert float(at.beta) == pytest.approx(BETA[network], rel=1e-6)
    assert (study.misfit < 1e-6).all() and study.straight.all()
    assert hpl_links.finding(study) == ""


def test_times_that_are_no_line_are_said():
    """Where one size takes twice as long, the line misses it, and the words say so beside the verdict."""
    bent = tokens(noise=0.01)
    slow = bent.token_round_trip.where(bent.token_bytes != 65536, 2 * bent.token_round_trip)
    study = analyse(exchanged=bent.assign(token_round_trip=slow))
    assert not study.links.straight.any() and (study.links.misfit > 0.2).all()
    assert "describe the links badly" in words(study)


def test_intervals_hold_the_planted_parameters():
    """Of several campaigns with noise of runs and blocks, nearly all 95 % intervals hold the truth."""
    held = []
    for seed in range(8):
        found = links(blocks=8, noise=0.1, block_effect=0.02, seed=seed).parameters
        for name, truth in (("alpha", ALPHA), ("beta", BETA)):
            ends = found.sel(parameter=name)
            true = xr.DataArray(list(truth.values()), {"interconnect": list(truth)}, "interconnect")
            held += ((ends.low <= true) & (true <= ends.high)).values.tolist()
    assert 0.8 < np.mean(held) <= 1


def test_blocks_are_resampled_too():
    """What differs between blocks alone, and not between their runs, is in the intervals."""
    alike, apart = (
        links(blocks=6, block_effect=effect).parameters.sel(parameter="beta") for effect in (0, 0.1)
    )
    assert alike.low.isnull().all() and (apart.high - apart.low > 0.05 * apart.value).all()


def test_a_missing_trial_leaves_the_others():
    """One failed trial of several blocks is left out; a size that failed in all leaves the network unknown."""
    found = links(failed={(1, "gige", 4096)}).fits.alpha.sel(interconnect="gige", draw=0)
    assert float(found) == pytest.approx(ALPHA["gige"], rel=1e-6)
    lost = analyse(exchanged=tokens(blocks=2, noise=0.01, failed={(1, "gige", 4), (2, "gige", 4)}))
    assert lost.errors.value.sel(interconnect="gige").isnull().all()
    assert lost.errors.value.sel(interconnect="10gige").notnull().all()
    assert "of 6 points" in words(lost)


@pytest.mark.parametrize(
    ("share", "predictor", "error"),
    [
        (analytic_share, ANALYTIC, 0),
        (lambda *point: 0.75 * analytic_share(*point), ANALYTIC, 1 / 3),
        (share_by_blocks, BY_BLOCKS, 0),
        (as_modelled, SIMULATED, 0),
    ],
)
def test_a_true_model_predicts_and_another_misleads(share, predictor, error):
    """HPL that does what a predictor says is predicted by it within the margin; a slower one is missed everywhere."""
    study = analyse(emulated(share))
    np.testing.assert_allclose(study.errors.value.sel(predictor=predictor), error, atol=0.02)
    kind = MISLEADS if error else PREDICTS
    assert (study.kinds.sel(predictor=predictor) == kind).all()
    other = ANALYTIC if predictor == SIMULATED else SIMULATED
    assert (study.kinds.sel(predictor=other) == MISLEADS).any()
    assert f"{0 if error else 9} of 9 points" in words(study)


@pytest.mark.parametrize(
    ("order", "block", "rows", "columns"), [(1200, 24, 1, 2), (1000, 64, 2, 3), (3408, 24, 4, 4)]
)
def test_blocks_are_dealt_out_as_hpl_deals_them(order, block, rows, columns):
    """The operations of the busiest process are those counted column by column and row by row."""
    owners = (np.arange(order) // block)[:, None] % np.array([rows, columns])
    counted = 0.0
    for first in range(0, order, block):
        wide = min(block, order - first)
        panel, below, right = (
            max(np.sum(owners[start:, axis] == process) for process in range(processes))
            for start, axis, processes in (
                (first, 0, rows),
                (first + wide, 0, rows),
                (first + wide, 1, columns),
            )
        )
        counted += wide**2 * (panel - wide / 3) + wide**2 * right + 2 * wide * below * right
    x = np.array([[order], [block], [rows], [columns]], float)
    assert hpl.times_by_blocks(x)[2].item() == pytest.approx(counted, rel=1e-9)


def test_intervals_over_blocks_hold_the_truth():
    """Of many means of 12 blocks, about as many 95 % intervals hold the true one as they say."""
    drawn = np.random.default_rng(3).normal(0.7, 0.05, (12, 1000))
    values = xr.DataArray(drawn, dims=("block", "case"))
    found = over_draws(resampled_blocks(values, 1000, 1, "cost"))
    assert 0.88 < float(((found.low <= 0.7) & (0.7 <= found.high)).mean()) < 0.97


@settings(max_examples=50)
@given(st.floats(1e-5, 1e-3), st.floats(5e7, 8e8), st.sampled_from(NODES))
def test_the_surface_is_right_between_its_levels(latency, bandwidth, nodes):
    """At any latency and bandwidth inside, it misses the planted share by no more than it says."""
    found, *_ = planted_surface().at(nodes, latency, bandwidth)
    truth = modelled_share(nodes, latency, bandwidth)
    assert abs(found / truth - 1) <= float(planted_surface().error.sel(nodes=nodes)) + 1e-9


def test_the_surfaces_error_is_seen():
    """It is small for a smooth truth, and not for a kink that a spline cannot follow."""
    assert (planted_surface().error < 0.03).all()
    kinked = surface_campaign(lambda n, latency, bandwidth: 0.3 if bandwidth == 2e8 else 0.6)
    assert (surface(kinked).error > 0.3).all()


def test_the_surface_ends_where_the_simulations_do():
    """Beyond the levels nothing is said, on either axis, nor of a node count with a missing simulation."""
    places = np.array([9e-6, 2e-3, 1e-4, 1e-4]), np.array([1e8, 1e8, 4e7, 9e8])
    assert np.isnan(planted_surface().at(2, *places)).all()
    study = analyse(simulated=surface_campaign(latencies=(1e-3, 2e-3, 4e-3, 8e-3)))
    assert study.errors.value.sel(predictor=SIMULATED).isnull().all()
    assert "simulation at" not in words(study)
    lost = surface_campaign(failed={(1, "gige", 4, "latency=0.0001,bandwidth=1e+08")})
    errors = analyse(simulated=lost).errors.value.sel(predictor=SIMULATED)
    assert errors.sel(nodes=4).isnull().all() and errors.sel(nodes=[2, 8]).notnull().all()


def test_the_shipped_campaigns_are_of_what_is_predicted():
    """The surface is a whole grid of the very points that HPL ran at, and the tokens use the same networks."""
    ran, exchanged, made = (
        experiment.read_toml(paths.CAMPAIGNS / f"{name}.toml", "campaign")
        for name in ("hpl_scaling", "token_nodes", "hpl_surface")
    )
    levels = [level.split(",") for level in made["factors"]["vary"]]
    axes = [list(dict.fromkeys(axis)) for axis in zip(*levels)]
    assert levels == [list(pair) for pair in product(*axes)]
    assert all(made[part] == ran[part] for part in ("settings", "levels"))
    assert exchanged["factors"]["interconnect"] == ran["factors"]["interconnect"]


def test_elasticities_are_the_planted_ones(whole):
    """The surface's slopes are those of its formula, and what is more by bandwidth is their difference."""
    for network in ALPHA:
        parts = {
            "latency": 7 * PER_SECOND * ALPHA[network],
            "bandwidth": 7 * PER_SECOND_A_BYTE * BETA[network],
        }
        latency, bandwidth = (part / (1 + sum(parts.values())) for part in parts.values())
        _, by_latency, by_bandwidth = planted_surface().at(8, ALPHA[network], 1 / BETA[network])
        assert by_latency == pytest.approx(latency, abs=0.02)
        assert by_bandwidth == pytest.approx(bandwidth, abs=0.02)
        found = whole.by_bandwidth.value.sel(interconnect=network, nodes=8)
        assert float(found) == pytest.approx(bandwidth - latency, abs=0.03)


@pytest.mark.parametrize(
    ("a_second", "a_byte", "bound"), [(2.0, 2e7, "bandwidth"), (8000.0, 2e4, "latency")]
)
def test_what_binds_follows_the_truth(a_second, a_byte, bound):
    """With dear bytes HPL is bandwidth-bound, with dear messages latency-bound."""

    def share(n, latency, bandwidth):
        return 0.9 / (1 + (n - 1) * (a_second * latency + a_byte / bandwidth))

    study = analyse(simulated=surface_campaign(share))
    assert (hpl_prediction.bound(study) == bound).all()


def test_the_papers_sensitivities():
    """They are the planted slopes from end to end of the ranges."""
    found = hpl_predictors.paper_elasticities(smith_campaign("hpl_sensitivity"))
    for name, sign, width in (("bandwidth", 1, np.log(117 / 90)), ("latency", -1, np.log(60 / 30))):
        high, low = (planted("gige", 8, f"{name}={end}") for end in ("high", "low"))
        slope = float(found.sel(parameter=name, interconnect="gige", nodes=8))
        assert slope == pytest.approx(sign * np.log(high / low) / width)


def test_only_common_networks_are_predicted():
    """Tokens of one network predict that one; of none that HPL ran on, nothing can be predicted."""
    study = analyse(exchanged=tokens(noise=0.01, networks=("10gige",)))
    assert study.errors.interconnect.values.tolist() == ["10gige"] and "of 3 points" in words(study)
    with pytest.raises(FalloffError, match="no network in common"):
        analyse(exchanged=tokens(networks=("elsewhere",)))


def test_the_figure_and_the_data_have_every_point(whole):
    """Each panel has all predictors' errors; the data have the verdicts, in order."""
    axes = hpl_prediction.figures(whole)["prediction"].figure.axes
    for panel, network in zip(axes, ALPHA, strict=True):
        shown = np.concatenate([line.get_ydata() for line in panel.lines])
        assert np.isin(100 * whole.errors.value.sel(interconnect=network), shown).all()
    found = list(hpl_prediction.findings(whole))
    errors = whole.errors.value.transpose("predictor", "interconnect", "nodes").values.ravel()
    assert [each.estimate for each in found] == errors.tolist()
    assert {each.answer for each in found} <= {MISLEADS, PREDICTS, UNDECIDED}
