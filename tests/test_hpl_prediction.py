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
from synthetic_simulations import LARGEST, REACHED, beyond_campaign
from synthetic_smith import planted, smith_campaign

import experiment
from analysis import hpl_predictors, paths
from analysis.experiments import hpl_links, hpl_prediction
from analysis.experiments.hpl_prediction import MISLEADS, PREDICTS, UNDECIDED
from analysis.hpl_predictors import ANALYTIC, BY_BLOCKS, SIMULATED, surface
from analysis.statistics.intervals import average
from analysis.statistics.draws import over_draws, resampled_blocks
from analysis.models import hpl
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
    """Finding, captions and tables, hard spaces as spaces; nothing in them is left unknown."""
    tables = [
        hpl_prediction.gain_table(study),
        hpl_prediction.errors_table(study),
        hpl_prediction.example_table(study),
        hpl_links.links_table(study.links),
    ]
    shown = [*hpl_prediction.figures(study).values(), *(table for table in tables if table)]
    said = [hpl_prediction.finding(study), *(each.markdown for each in shown)]
    text = "\n".join(said).replace("\u00a0", " ")
    assert not re.search(r"\b(nan|None)\b", text)
    return text


@pytest.fixture(scope="module")
def whole():
    """HPL as the surface has it, with noise, and the campaigns on the paper's cluster."""
    return analyse(
        emulated(as_modelled, noise=0.01),
        hpl_beyond=beyond_campaign(),
        hpl_sensitivity=smith_campaign("hpl_sensitivity"),
    )


def test_planted_latency_and_bandwidth_come_back():
    """Without noise alpha and beta are the truth on every network, and the times follow the model."""
    study = links()
    for network in ALPHA:
        at = study.fits.sel(interconnect=network).isel(draw=0)
        assert float(at.alpha) == pytest.approx(ALPHA[network], rel=1e-6)
        assert float(at.beta) == pytest.approx(BETA[network], rel=1e-6)
        assert float(study.shortest.sel(interconnect=network)) == pytest.approx(
            ALPHA[network], rel=1e-3
        )
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
    assert lost.errors.value.sel(interconnect="gige", nodes=[2, 4, 8]).isnull().all()
    assert lost.errors.value.sel(interconnect="10gige").notnull().all()
    assert "of 6 points" in words(lost)


def test_a_run_of_today_stands_beside_the_links():
    """Its rows come after the reference's; the predictions stay the reference's."""
    study = analyse(today=tokens(blocks=1, noise=0.02, seed=5))
    rows = hpl_links.links_table(study.links).rows
    assert [row[0] for row in rows] == [
        "GigE",
        "10GE",
        "control",
        "GigE, today",
        "10GE, today",
        "control, today",
    ]
    np.testing.assert_array_equal(study.errors.value, analyse().errors.value)


def test_the_time_under_load_is_drawn():
    """Every block of the stored campaign is a mark in the panel of its size."""
    dataset = experiment.stored("token_load")
    study = hpl_links.analyse(tokens(), dataset)
    load = study.load
    for axes, size in zip(
        hpl_links.figures(study)["token_load"].figure.axes, load.token_bytes.values
    ):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert np.isin(1e3 * load.sel(token_bytes=size).values, shown).all()
    assert hpl_links.figures(links()) == {}


def test_a_true_model_predicts():
    """HPL that does what its analytic model says is predicted by it within the margin, and not by another."""
    study = analyse()
    np.testing.assert_allclose(study.errors.value.sel(predictor=ANALYTIC), 0, atol=0.01)
    assert (study.kinds.sel(predictor=ANALYTIC) == PREDICTS).all()
    assert (study.kinds.sel(predictor=SIMULATED, nodes=8) == MISLEADS).all()


def test_a_true_simulation_predicts(whole):
    """HPL that does what the surface says, at parameters between its levels, is predicted by the simulation."""
    np.testing.assert_allclose(whole.errors.value.sel(predictor=SIMULATED), 0, atol=0.02)
    assert (whole.kinds.sel(predictor=SIMULATED) == PREDICTS).all()
    assert (whole.kinds.sel(predictor=ANALYTIC, nodes=8) == MISLEADS).all()


def test_a_slower_node_misleads_everywhere():
    """HPL that is a quarter slower everywhere is missed by that everywhere."""
    study = analyse(emulated(lambda *point: 0.75 * analytic_share(*point)))
    np.testing.assert_allclose(study.errors.value.sel(predictor=ANALYTIC), 1 / 3, atol=0.015)
    assert (study.kinds.sel(predictor=ANALYTIC) == MISLEADS).all()


def test_whole_blocks_are_counted():
    """HPL that waits for panels and for the fullest node is predicted by the count of blocks, not by the even share."""
    even = analyse()
    uneven = {int(n): float(even.uneven.sel(nodes=n)) for n in NODES}
    study = analyse(emulated(lambda network, n: share_by_blocks(network, n)))
    np.testing.assert_allclose(study.errors.value.sel(predictor=BY_BLOCKS), 0, atol=0.01)
    assert (study.kinds.sel(predictor=BY_BLOCKS) == PREDICTS).all()
    assert uneven[1] == pytest.approx(0, abs=0.02) and uneven[8] > uneven[2] > 0.01
    assert float(study.errors.value.sel(predictor=ANALYTIC, interconnect="unshaped", nodes=8)) > 0


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
    values = xr.DataArray(
        np.random.default_rng(3).normal(0.7, 0.05, (12, 1000)), dims=("block", "case")
    )
    found = over_draws(resampled_blocks(values, 1000, 1, "cost"))
    assert 0.88 < float(((found.low <= 0.7) & (0.7 <= found.high)).mean()) < 0.97


@settings(max_examples=50)
@given(st.floats(1e-5, 1e-3), st.floats(5e7, 8e8), st.sampled_from(NODES))
def test_the_surface_is_right_between_its_levels(latency, bandwidth, nodes):
    """At any latency and bandwidth inside, it misses the planted share by no more than it says."""
    found, truth = (
        planted_surface().at(nodes, latency, bandwidth),
        modelled_share(nodes, latency, bandwidth),
    )
    assert abs(found / truth - 1) <= float(planted_surface().error.sel(nodes=nodes)) + 1e-9


def test_the_surfaces_error_is_seen():
    """It is small for a smooth truth, and not for a kink that a spline cannot follow."""
    assert (planted_surface().error < 0.03).all()
    kinked = surface(
        surface_campaign(lambda n, latency, bandwidth: 0.3 if bandwidth == 2e8 else 0.6)
    )
    assert (kinked.error > 0.3).all()


def test_the_surface_ends_where_the_simulations_do():
    """Beyond the levels nothing is said, on either axis, and the section says no number of it."""
    beyond = planted_surface().at(
        2, np.array([9e-6, 2e-3, 1e-4, 1e-4]), np.array([1e8, 1e8, 4e7, 9e8])
    )
    assert np.isnan(beyond).all() and np.isnan(planted_surface().elasticities(2, 9e-6, 1e8)).all()
    study = analyse(simulated=surface_campaign(latencies=(1e-3, 2e-3, 4e-3, 8e-3)))
    assert study.errors.value.sel(predictor=SIMULATED).isnull().all()
    assert "simulation at" not in words(study)


def test_a_node_count_with_a_missing_simulation_has_no_prediction():
    """A spline needs every point: the others stay."""
    lost = surface_campaign(failed={(1, "gige", 4, "latency=0.0001,bandwidth=1e+08")})
    errors = analyse(simulated=lost).errors.value.sel(predictor=SIMULATED)
    assert errors.sel(nodes=4).isnull().all() and errors.sel(nodes=[1, 2, 8]).notnull().all()


def test_the_shipped_campaigns_are_of_what_is_predicted():
    """The surface is a whole grid of the very points that HPL ran at, and the tokens use the same networks."""
    ran, exchanged, made = (
        experiment.read_toml(paths.CAMPAIGNS / f"{name}.toml", "campaign")
        for name in ("hpl_scaling", "token_nodes", "hpl_surface")
    )
    axes = [
        dict.fromkeys(level.split(",")[at] for level in made["factors"]["vary"]) for at in (0, 1)
    ]
    assert made["factors"]["vary"] == [",".join(pair) for pair in product(*axes)]
    assert [len(axis) > 5 for axis in axes] == [True, True]
    assert all(made[part] == ran[part] for part in ("settings", "levels"))
    assert exchanged["factors"]["interconnect"] == ran["factors"]["interconnect"]


def test_sensitivities_are_the_planted_ones(whole):
    """The surface's slopes are those of its formula, the analytic model's the shares of its time."""
    for network in ALPHA:
        found = whole.elasticities.value.sel(predictor=SIMULATED, interconnect=network, nodes=8)
        parts = {
            "latency": 7 * PER_SECOND * ALPHA[network],
            "bandwidth": 7 * PER_SECOND_A_BYTE * BETA[network],
        }
        for name, part in parts.items():
            assert float(found.sel(parameter=name)) == pytest.approx(
                part / (1 + sum(parts.values())), abs=0.02
            )
        analytic = whole.elasticities.value.sel(predictor=ANALYTIC, interconnect=network, nodes=8)
        computing = analytic_share(network, 1) / analytic_share(network, 8)
        sending = float(analytic.sel(parameter=["bandwidth", "latency"]).sum())
        assert sending == pytest.approx(1 - 1 / computing, rel=0.05)


@pytest.mark.parametrize(
    ("a_second", "a_byte", "bound"), [(2.0, 2e7, "bandwidth"), (8000.0, 2e4, "latency")]
)
def test_what_binds_follows_the_truth(a_second, a_byte, bound):
    """With dear bytes HPL is bandwidth-bound, with dear messages latency-bound."""

    def share(n, latency, bandwidth):
        return 0.9 / (1 + (n - 1) * (a_second * latency + a_byte / bandwidth))

    made = surface_campaign(share)
    study = analyse(simulated=made)
    assert (hpl_prediction.bound(study).sel(predictor=SIMULATED) == bound).all()


def test_what_a_faster_network_is_worth(whole):
    """Ratios of parameters and the gain of HPL are the planted ones, and so is the true predictor's gain."""
    gain = whole.gain
    assert float(gain.bandwidth.value) == pytest.approx(BETA["gige"] / BETA["10gige"], rel=0.02)
    assert float(gain.latency.value) == pytest.approx(ALPHA["10gige"] / ALPHA["gige"], rel=0.05)
    true = as_modelled("10gige", 8) / as_modelled("gige", 8) - 1
    assert float(gain.hpl.value.sel(nodes=8)) == pytest.approx(true, abs=0.02)
    assert float(gain.predicted.value.sel(nodes=8, predictor=SIMULATED)) == pytest.approx(
        true, abs=0.02
    )


def test_the_papers_example(whole):
    """More bandwidth and less latency gain less than the bandwidth by the analytic model, and as planted in the
    simulation."""
    example = whole.example
    assert example.bandwidth == pytest.approx(1.2) and example.latency == pytest.approx(1 / 3)
    assert (
        (0 < example.analytic) & (example.analytic < 0.2)
    ).all() and LARGEST in example.analytic.nodes
    np.testing.assert_allclose(example.simulated, REACHED["ddr_infiniband"] / REACHED["10gige"] - 1)
    assert analyse(hpl_beyond=beyond_campaign(networks=("gige", "10gige"))).example is None


def test_the_papers_sensitivities(whole):
    """They are the planted slopes from end to end of the ranges."""
    found = whole.paper_elasticities.sel(interconnect="gige", nodes=8)
    for name, sign, width in (("bandwidth", 1, np.log(117 / 90)), ("latency", -1, np.log(60 / 30))):
        ends = [planted("gige", 8, f"{name}={end}") for end in ("high", "low")]
        assert float(found.sel(parameter=name)) == pytest.approx(
            sign * np.log(ends[0] / ends[1]) / width
        )


def test_one_block_of_hpl_has_errors_without_intervals():
    """What a single block differs from another is not known: every error is undecided, and no number is made up."""
    study = analyse(emulated(blocks=1))
    assert study.errors.value.notnull().all() and study.errors.low.isnull().all()
    assert (study.kinds == UNDECIDED).all()
    said = words(study)
    assert (
        "95 % interval " not in hpl_prediction.finding(study)
        and "at 0 of 9 points, and 9 are open" in said
    )


def test_without_the_other_campaigns_there_is_no_simulation():
    """Only the analytic models are left, and what was not run is not told."""
    study = analyse(simulated=None)
    said = words(study)
    assert study.predictors == [ANALYTIC, BY_BLOCKS] and "the simulation" not in said
    assert "DDR" not in said and hpl_prediction.example_table(study) is None
    assert "It was settled with these runs in view" in said


def test_only_common_networks_are_predicted():
    """Tokens of one network predict that one; of none that HPL ran on, nothing can be predicted."""
    study = analyse(exchanged=tokens(noise=0.01, networks=("10gige",)))
    assert study.errors.interconnect.values.tolist() == ["10gige"] and study.gain is None
    assert hpl_prediction.gain_table(study) is None and "of 3 points" in words(study)
    with pytest.raises(FalloffError, match="no network in common"):
        analyse(exchanged=tokens(networks=("elsewhere",)))


@settings(max_examples=25)
@given(
    st.lists(st.floats(0.1, 10), min_size=2, max_size=6), st.sampled_from(["cost", "rate", "ratio"])
)
def test_resampled_means_lie_among_the_blocks(values, kind):
    """Draw 0 is the kind's mean, no draw is beyond the blocks, and a missing block is left out."""
    blocks = xr.DataArray([*values, np.nan], dims="block")
    found = resampled_blocks(blocks, 50, 1, kind)
    assert float(found[0]) == pytest.approx(average(values, kind)[0])
    known = found.dropna("draw")
    assert (known >= min(values) * (1 - 1e-9)).all() and (known <= max(values) * (1 + 1e-9)).all()


def test_the_figures_show_every_point(whole):
    """Each panel has all predictors' errors where messages are sent, and both elasticities."""
    figures = hpl_prediction.figures(whole)
    drawn = {
        "prediction": 100 * whole.errors.value.sel(nodes=[2, 4, 8]),
        "prediction_sensitivity": whole.elasticities.value.isel(predictor=-1).sel(
            parameter=["bandwidth", "latency"]
        ),
    }
    for name, values in drawn.items():
        for axes, network in zip(figures[name].figure.axes, whole.errors.interconnect.values):
            shown = np.concatenate([line.get_ydata() for line in axes.lines])
            assert np.isin(values.sel(interconnect=network), shown).all()


def test_the_finding_follows_the_data(whole):
    """The largest error with its place, how often each predictor is right, and what a slower node changes."""
    said = words(whole)
    worst = whole.errors.value.sel(predictor=ANALYTIC, nodes=[2, 4, 8]).max()
    assert f"misses its rate by up to {100 * float(worst):.1f} %**" in said and "too high" in said
    assert (
        "the simulation at 9 of 9" in said and "On the paper's cluster bandwidth helps more" in said
    )
    true = words(analyse(simulated=None))
    assert "It is within 5 % at 9 of 9 points." in true
    slow = words(analyse(emulated(lambda *point: 1.25 * analytic_share(*point))))
    assert "too low" in slow and "It is within 5 % at 0 of 9 points." in slow


def test_findings_are_every_error(whole):
    """As data, in the order of predictor, network and nodes, with the verdict and the interval."""
    found = list(hpl_prediction.findings(whole))
    assert [each.estimate for each in found] == whole.errors.value.transpose(
        "predictor", "interconnect", "nodes"
    ).values.ravel().tolist()
    assert {each.answer for each in found} <= {MISLEADS, PREDICTS, UNDECIDED}
    assert found[0].campaign == "token_nodes" and found[0].n == 6


def test_the_explorers_share_is_the_studys():
    """The analytic share of one pair of numbers is the study's own, without draws."""
    study = analyse()
    links = study.links.fits.isel(draw=[0])
    settings_ = study.emulated_points[["N", "NB", "P", "Q"]].max(["block", "interconnect"])
    known_rate = study.emulated_points.known_rate.isel(block=0, drop=True).expand_dims("draw")
    share = hpl_predictors.analytic_share(settings_, links, known_rate).isel(draw=0)
    np.testing.assert_allclose(share, study.shares.value.sel(predictor=ANALYTIC), rtol=1e-6)
