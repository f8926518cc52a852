"""Where a faster network pays: planted gains against prices, and both uncertainties."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, words
from synthetic_smith import planted, smith_campaign

from analysis import payoff, prices, sensitivity
from runners.record import FalloffError

SMALLEST, LARGEST = 2, 256


@cache
def simulated(name):
    """One of the paper's campaigns as it is planted."""
    return smith_campaign(f"hpl_{name}")


@cache
def planted_gains():
    """The gains of all three campaigns."""
    return payoff.simulated_gains(simulated("paper"), simulated("sensitivity"), simulated("beyond"))


def study(premium=None, gains=None):
    """The synthetic gains at the shipped prices, or against a certain premium on a node of 1000 USD with its port."""
    listed = prices.read()
    if premium is not None:
        certain = {"server": 900, ("gige", "port"): 100, ("10gige", "port"): 100 + 1000 * premium}
        values = [certain.get(one.part, certain.get((one.of, one.part), 0)) for one in listed]
        listed = [replace(one, low=v, value=v, high=v) for one, v in zip(listed, values)]
    return payoff.priced(gains or planted_gains(), listed)


def varied(*parameters):
    """The sensitivity to these parameters alone."""
    levels = [f"{parameter}={side}" for parameter in parameters for side in ("low", "high")]
    return smith_campaign("hpl_sensitivity", {"vary": ["none", *levels]})


def shifts(parameter, nodes):
    """Draws of one parameter."""
    alone, chance = sensitivity.analyse(varied(parameter)), np.random.default_rng(3)
    return payoff.log_shifts(alone, np.array(nodes), 2000, chance)


def gain(nodes):
    """The planted gain of 10GE over GigE."""
    return planted("10gige", nodes) / planted("gige", nodes) - 1


@cache
def shipped():
    """The study of the planted gains at the prices that come with the program."""
    return study()


def test_it_pays_from_the_first_case_whose_gain_exceeds_the_premium():
    """Gains are the planted ones, on every case of both campaigns, each once; a premium between two is paid back at the
    larger case."""
    for less, first in ((0, 2), (2, 4), (6, 8)):
        premium = ((gain(less) if less else 0) + gain(first)) / 2
        found = study(premium=premium)
        assert found.from_nodes.value.item() == first
        assert found.premium.low == found.premium.high == pytest.approx(premium)
    assert found.nodes == sorted(set(found.nodes))
    assert (found.nodes[0], found.nodes[-1]) == (SMALLEST, LARGEST)
    np.testing.assert_allclose(found.gain.value, [gain(n) for n in found.nodes])


def test_never_and_always_are_said():
    """A premium beyond every gain is never paid back, none at all is paid back at once."""
    dear, free = study(premium=2), study(premium=0)
    assert np.isinf(dear.from_nodes.to_array()).all() and not dear.chance.any()
    assert "GigE gives cheaper HPL than 10GE up to 256 nodes" in spoken(payoff.pays_from(dear))
    assert (free.from_nodes.to_array() == SMALLEST).all() and (free.chance == 1).all()
    assert "10GE gives cheaper HPL than GigE from 2 nodes on" in spoken(payoff.pays_from(free))
    never = payoff.pays_from(dear)
    assert never.estimate is None and never.interval is None and never.answer == "no"
    assert payoff.pays_from(free).interval == (SMALLEST, SMALLEST)
    assert [each.answer for each in (dear, free, shipped())] == ["no", "yes", "likely"]


def spoken(one):
    """A statement in its own words, hard spaces as spaces."""
    return str(one).replace("\u00a0", " ")


def test_the_notebook_states_it_once():
    """On planted campaigns and the shipped prices: one primary statement, likely, with its figure and prices."""
    data = {f"hpl_{name}": simulated(name) for name in ("paper", "sensitivity", "beyond")}
    made = executed("61", **data)
    (one,) = made.statements
    assert one.primary and one.words == "likely" and one.n == payoff.DRAWS
    assert one.estimate == shipped().from_nodes.value.item() and "4 of 6 assumed" in words(made)
    assert set(made.figures) == {"payoff"} and len(made.tables) == 2


def test_uncertainties_are_told_apart():
    """With certain prices all of the variance is the model's, with a certain model all is the prices'."""
    certain = study(premium=0.1)
    assert certain.price_share == pytest.approx(0, abs=1e-12)
    assert (certain.gain.low < certain.gain.high).all()
    still = study(gains=payoff.simulated_gains(simulated("paper"), varied("strided_s")))
    np.testing.assert_allclose(still.gain.low, still.gain.high)
    assert still.price_share == pytest.approx(1) and still.premium.low < still.premium.high
    assert 0 < shipped().price_share < 1


def test_draws_of_a_number_stay_within_its_simulated_effects():
    """From its low end's to its high end's, beyond the simulated cases that of the last. A node's rates move both networks
    alike, so that their gain hardly changes; a link's bandwidths are each network's own."""
    nodes = [2, 4, 8, 36, 256]
    slow, fast = shifts("bandwidth", nodes).sel(nodes=36).transpose("interconnect", ...)
    assert abs(xr.corr(slow, fast, "draw")) < 0.1
    drawn = shifts("dgemm_flop_s", nodes)
    slow, fast = drawn.sel(nodes=36).transpose("interconnect", ...)
    assert xr.corr(slow, fast, "draw") > 0.99 and (fast - slow).std() < slow.std() / 2
    effect = payoff.effects(sensitivity.analyse(varied("dgemm_flop_s"))).isel(parameter=0)
    simulated_nodes = drawn.sel(nodes=[2, 8, 36])
    assert (simulated_nodes >= effect.sel(side="low") - 1e-12).all()
    assert (simulated_nodes <= effect.sel(side="high") + 1e-12).all()
    midway = (drawn.sel(nodes=2) + drawn.sel(nodes=8)) / 2
    np.testing.assert_allclose(drawn.sel(nodes=4), midway, rtol=1e-9)
    np.testing.assert_array_equal(drawn.sel(nodes=256), drawn.sel(nodes=36))


def test_a_lasting_gain_starts_after_the_last_loss():
    """From the node count that is found on all values are above 0."""
    values = xr.DataArray(
        [[-1, 1, 1], [1, -1, 1], [1, 1, 0], [1, 1, 1]], {"nodes": [1, 2, 4]}, ("case", "nodes")
    )
    assert payoff.lasting_from(values).values.tolist() == [2, 4, np.inf, 1]


def test_without_a_common_case_there_is_no_study():
    """Nothing is drawn from half of the data; a case that failed on one network is left out, and a number whose effect
    is not known everywhere stays at its value.
    """
    nodes = shipped().nodes
    lost = smith_campaign("hpl_paper", failed={(1, "gige", n) for n in nodes if n <= 36})
    with pytest.raises(FalloffError, match="no case that ran on both"):
        payoff.simulated_gains(lost, simulated("sensitivity"))
    failed = smith_campaign("hpl_paper", failed={(1, "gige", 8)})
    partial = smith_campaign("hpl_sensitivity", failed={(1, "gige", 8, "bandwidth=low")})
    nodes = payoff.simulated_gains(failed, partial).value.nodes.values
    assert 8 not in nodes and nodes[-1] == 36


@pytest.mark.parametrize("ends", [(5, 8, 14), (0, 0, 1), (2, 2, 2)])
def test_draws_stay_in_the_range_and_have_its_mean(ends):
    """No quantile leaves the range, they ascend, and their mean is that of a triangle, (low + value + high) / 3."""
    quantiles = payoff.triangular(*ends, np.linspace(0, 1, 2001))
    assert quantiles.min() >= ends[0] and quantiles.max() <= ends[2]
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles.mean() == pytest.approx(sum(ends) / 3, rel=1e-3)


def test_prices_are_ranges(monkeypatch, tmp_path):
    """Those that are shipped, and one upside down is refused by its name."""
    assert prices.total(prices.read(), "gige") == 105
    shipped = prices.FILE.read_text(encoding="utf-8")
    (tmp_path / "prices.toml").write_text(shipped.replace("low = 5000", "low = 15000"))
    monkeypatch.setattr(prices, "FILE", tmp_path / "prices.toml")
    with pytest.raises(FalloffError, match="node: server: must have"):
        prices.read()
