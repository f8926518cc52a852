"""Where a faster network pays: planted gains against prices, and both uncertainties apart."""

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from synthetic_smith import planted, smith_campaign

from analysis import model_draws, prices
from analysis.experiments import payoff, sensitivity
from runners.record import FalloffError

CERTAIN = {"gige.port": 100, "gige.cable": 0, "10gige.adapter": 0, "10gige.cable": 0}
SMALLEST, LARGEST = 2, 256


@cache
def simulated(name):
    """One of the paper's campaigns as it is planted."""
    return smith_campaign(f"hpl_{name}")


@cache
def planted_gains():
    """The gains of all three campaigns."""
    return payoff.simulated_gains(simulated("paper"), simulated("sensitivity"), simulated("beyond"))


def study(premium=None, gains=None, **typed):
    """The synthetic gains against a certain premium on a node of 900 USD and its port of 100, or typed prices."""
    given = typed
    if premium is not None:
        given = {**CERTAIN, "node.server": 900, "10gige.port": 100 + 1000 * premium}
    return payoff.priced(planted_gains() if gains is None else gains, prices.read(given))


def gain(nodes):
    """The planted gain of 10GE over GigE."""
    return planted("10gige", nodes) / planted("gige", nodes) - 1


def words(study):
    return payoff.finding(study).replace("\u00a0", " ")


def written(study):
    """All that is written of a study: the finding and every table."""
    tables = payoff.from_table(study), payoff.prices_table(study), payoff.points_table(study)
    return " ".join([words(study), *(table.markdown for table in tables)]).replace("\u00a0", " ")


@cache
def shipped():
    """The study of the planted gains at the prices that come with the program."""
    return study()


def test_gain_and_costs_are_the_planted_ones():
    """Gain, ratio and cost of a flop/s follow from planted efficiencies and typed prices by hand."""
    found = study(premium=0.1)
    n = found.gains.efficiency.nodes.values.tolist()
    assert n[0] == SMALLEST and n[-1] == LARGEST and len(n) == len(set(n))
    np.testing.assert_allclose(found.gain.value, [gain(it) for it in n])
    np.testing.assert_allclose(found.ratio.value, [(1 + gain(it)) / 1.1 for it in n])
    np.testing.assert_allclose(found.worth.value, [1000 * gain(it) for it in n])
    ratio = found.cost.sel(interconnect="gige") / found.cost.sel(interconnect="10gige")
    np.testing.assert_allclose(ratio, found.ratio.value)
    np.testing.assert_allclose(
        found.cost.sel(interconnect="gige"), [1000 / 44.8e9 / planted("gige", it) for it in n]
    )


@pytest.mark.parametrize(
    ("between", "first"), [((0, 2), 2), ((2, 4), 4), ((4, 6), 6), ((6, 8), 8)], ids=str
)
def test_it_pays_from_the_first_case_whose_gain_exceeds_the_premium(between, first):
    """A premium between the gains on two node counts is paid back at the larger one."""
    least, most = (gain(n) if n else 0 for n in between)
    assert study(premium=(least + most) / 2).from_nodes.value.item() == first


def test_never_and_always_are_said():
    """A premium beyond every gain is never paid back, none at all is paid back at once."""
    dear, free = study(premium=2), study(premium=0)
    assert np.isinf(dear.from_nodes.to_array()).all() and not dear.chance.any()
    assert "GigE gives cheaper HPL than 10GE up to 256 nodes" in words(dear)
    assert "| never |" in payoff.from_table(dear).body and "95 % range is" not in words(dear)
    assert (free.from_nodes.to_array() == SMALLEST).all() and (free.chance == 1).all()
    assert "10GE gives cheaper HPL than GigE already on 2 nodes" in words(free)
    (as_data,) = payoff.findings(dear)
    assert as_data.estimate is None and as_data.interval is None


def test_certain_prices_leave_the_models_uncertainty_alone():
    """With typed prices nothing but the model's numbers moves the ratio, and their share of its variance is all."""
    found = study(premium=0.1)
    assert found.premium.low == found.premium.high == found.premium.value == pytest.approx(0.1)
    by_prices, by_both = (found.ratio.sel(uncertain=kind) for kind in ("prices", "both"))
    np.testing.assert_allclose(by_prices.low, by_prices.high)
    assert (by_both.low < by_both.high).all()
    np.testing.assert_allclose(found.price_share, 0, atol=1e-12)
    assert "uncertainty" not in words(found) and "typed in" in words(found)


def test_a_certain_model_leaves_the_prices_uncertainty_alone():
    """Where no number of the model moves the efficiency, the gain is certain and the variance is the prices'."""
    idle = smith_campaign("hpl_sensitivity", {"vary": ["none", "strided_s=low", "strided_s=high"]})
    still = study(gains=payoff.simulated_gains(simulated("paper"), idle))
    np.testing.assert_allclose(still.gain.low, still.gain.high)
    np.testing.assert_allclose(still.price_share, 1)


def test_a_nodes_rates_cancel_and_a_links_do_not():
    """What slows both networks' nodes alike moves the gain less than it moves either efficiency."""

    def draws(parameter):
        levels = ["none", f"{parameter}=low", f"{parameter}=high"]
        varied = sensitivity.analyse(smith_campaign("hpl_sensitivity", {"vary": levels}))
        shifts = model_draws.log_shifts(
            varied, np.array([8, 36, 256]), 2000, np.random.default_rng(3)
        )
        return shifts.sel(interconnect="gige"), shifts.sel(interconnect="10gige")

    slow, fast = draws("dgemm_flop_s")
    assert xr.corr(slow, fast, "draw").min() > 0.99
    assert ((fast - slow).std("draw") < slow.std("draw") / 2).all()
    slow, fast = draws("bandwidth")
    assert abs(xr.corr(slow, fast, "draw")).max() < 0.1


def test_draws_stay_within_the_simulated_effects():
    """One number's draws reach from its low end's effect to its high end's; larger cases have the last effect."""
    varied = sensitivity.analyse(
        smith_campaign(
            "hpl_sensitivity", {"vary": ["none", "dgemm_flop_s=low", "dgemm_flop_s=high"]}
        )
    )
    shifts = model_draws.log_shifts(
        varied, np.array([2, 4, 8, 36, 256]), 2000, np.random.default_rng(4)
    )
    effect = model_draws.effects(varied).sel(parameter="dgemm_flop_s")
    for n in (2, 8, 36):
        drawn, ends = shifts.sel(nodes=n), effect.sel(nodes=n)
        assert (drawn >= ends.sel(side="low")).all() and (drawn <= ends.sel(side="high")).all()
        assert (drawn.max("draw") > 0).all() and (drawn.min("draw") < 0).all()
    np.testing.assert_allclose(shifts.sel(nodes=4), (shifts.sel(nodes=2) + shifts.sel(nodes=8)) / 2)
    np.testing.assert_array_equal(shifts.sel(nodes=256), shifts.sel(nodes=36))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8))
def test_a_lasting_gain_starts_after_the_last_loss(values):
    """From the node count that is found on all values are above 0, and the one before it is not."""
    nodes = 2 ** np.arange(len(values))
    found = payoff.lasting_from(xr.DataArray(values, {"nodes": nodes}, ("nodes",))).item()
    later = [value for n, value in zip(nodes, values) if n >= found]
    earlier = [value for n, value in zip(nodes, values) if n < found]
    assert all(value > 0 for value in later) and (not earlier or earlier[-1] <= 0)


def test_both_uncertainties_together_are_wider_than_each_alone():
    """The shipped ranges: in the logarithm the variances of prices and model add up to that of both."""
    width = np.log(shipped().ratio.high / shipped().ratio.low)
    alone = width.sel(uncertain=["prices", "efficiency"])
    assert (width.sel(uncertain="both") > 0.99 * alone.max("uncertain")).all()
    assert ((shipped().price_share > 0) & (shipped().price_share < 1)).all()


def test_dearer_parts_lower_the_chance():
    """The dearer the faster network, the fewer draws in which it pays, at every node count."""
    cheap, dear = (
        study(**{"10gige.port": price}).chance.sel(uncertain="both") for price in (300, 900)
    )
    assert (cheap >= dear).all() and (cheap > dear).any()


def test_the_same_data_give_the_same_draws():
    """A report that is built twice says the same."""
    analysed = payoff.analyse(simulated("paper"), simulated("sensitivity"), simulated("beyond"))
    xr.testing.assert_identical(analysed.ratio, shipped().ratio)


def test_without_a_common_case_there_is_no_study():
    """Nothing is drawn from half of the data; without larger cases the paper's are compared."""
    cases = [2, 4, 6, 8, 10, 12, 16, 18, 20, 24, 25, 28, 30, 32, 36]
    lost = smith_campaign("hpl_paper", failed={(1, "gige", n) for n in cases})
    with pytest.raises(FalloffError, match="no case that ran on both"):
        payoff.analyse(lost, simulated("sensitivity"))
    alone = payoff.analyse(simulated("paper"), simulated("sensitivity"))
    assert alone.nodes[-1] == 36 and "36 nodes" in words(alone)


def test_nothing_is_made_up():
    """A case that failed on one network is left out; a number without a known effect is named."""
    failed = smith_campaign("hpl_paper", failed={(1, "gige", 8)})
    partial = smith_campaign("hpl_sensitivity", failed={(1, "gige", 8, "bandwidth=low")})
    found = payoff.analyse(failed, partial)
    assert 8 not in found.nodes and "No effect is known of: bandwidth" in written(found)
    for one in (found, shipped(), study(premium=0.1)):
        assert not re.search(r"\b(nan|inf|None)\b", written(one))


def test_the_finding_says_whose_prices_they_are():
    """The shipped ones, of which most are assumed, or a reader's own; and from where on, with the range."""
    assert "prices of 2005 to 2009, 4 of 6 assumed" in words(shipped())
    assert "prices that were typed in" in words(study(**{"gige.port": 50}))
    first = int(shipped().from_nodes.value)
    assert f"10GE gives cheaper HPL than GigE from {first} nodes on" in words(shipped())
    assert "10000 draws, simulated evidence" in words(shipped())


def test_the_figure_shows_gain_premium_and_chance():
    """The gain's marks with their bars, the premium's line, and the chance on every node count."""
    above, below = payoff.figures(shipped())["payoff"].figure.axes
    lines = {line.get_label(): line.get_ydata() for line in above.lines}
    np.testing.assert_allclose(lines["gain in HPL"], 100 * shipped().gain.value)
    np.testing.assert_allclose(lines["extra price of a node"], 100 * shipped().premium.value)
    (bars,) = [
        drawn for drawn in above.collections if len(drawn.get_paths()) == len(shipped().nodes)
    ]
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(
        ends, 100 * np.column_stack([shipped().gain.low, shipped().gain.high])
    )
    (chance,) = below.lines
    np.testing.assert_allclose(chance.get_ydata(), 100 * shipped().chance.sel(uncertain="both"))
