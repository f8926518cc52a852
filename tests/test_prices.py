"""Prices: the shipped ones are whole, typed ones replace them, and every fault is named at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import prices
from analysis.statistics.draws import triangular
from runners.record import FalloffError

WHOLE = """
[node.server]
value = 1000
low = 900
high = 1200
unit = "USD"
source = "assumed"

[gige.port]
value = 10
low = 10
high = 10
unit = "USD"
source = "assumed"
"""


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(sorted), st.integers(0, 2**32 - 1))
def test_draws_stay_in_the_range_and_have_its_mean(ends, seed):
    """No quantile leaves the range, they ascend, and their mean is that of a triangle, (low + value + high) / 3."""
    quantiles = triangular(*ends, np.linspace(0, 1, 2001))
    slack = 1e-9 * (1 + ends[2])
    assert quantiles.min() >= ends[0] - slack and quantiles.max() <= ends[2] + slack
    assert (np.diff(quantiles) >= -slack).all()
    assert quantiles.mean() == pytest.approx(sum(ends) / 3, rel=1e-3, abs=slack)


def test_the_value_is_the_likeliest():
    """Most draws of a skewed range lie near its value, not in the middle of its ends."""
    drawn = triangular(0, 1, 10, np.random.default_rng(1).random(20_000))
    counts, edges = np.histogram(drawn, bins=10)
    assert edges[counts.argmax()] <= 1 <= edges[counts.argmax() + 1] + 0.01


def test_shipped_prices_are_whole():
    """Each is a range with a source, and a node and both of the paper's networks have parts."""
    shipped = prices.read()
    assert {price.of for price in shipped} == {prices.NODE, "gige", "10gige"}
    assert all(price.low <= price.value <= price.high and price.source for price in shipped)


def test_typed_prices_replace_those_of_the_file():
    """A number is certain, three are a range; what is not typed stays, and each says where it is from."""
    typed = {price.name: price for price in prices.read({"gige.port": 0, "10gige.port": [100, 200, 400.5]})}
    port, fast = typed["gige.port"], typed["10gige.port"]
    assert (port.low, port.value, port.high) == (0, 0, 0)
    assert (fast.low, fast.value, fast.high) == (100, 200, 400.5)
    assert port.source == fast.source == prices.TYPED != typed["node.server"].source


def test_every_fault_of_what_is_typed_is_named():
    """An unknown name, a negative price, a range upside down and a word are all in one message."""
    wrong = {"gige.prot": 1, "gige.port": -1, "10gige.port": [3, 2, 1], "node.server": "cheap", "gige.cable": True}
    with pytest.raises(FalloffError) as refused:
        prices.read(wrong)
    assert all(name in str(refused.value) for name in wrong) and "10gige.cable" in str(refused.value)


def test_a_node_that_costs_nothing_is_refused():
    """Its network would be all of the price, and the premium of a faster one without bound."""
    with pytest.raises(FalloffError, match="may not cost nothing"):
        prices.read({"node.server": 0})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('unit = "USD"', 'unit = "EUR"'), "EUR"),
        (("low = 900", "low = 1100"), "node.server = \\[1100, 1000, 1200\\]"),
        (('source = "assumed"', ""), "no source"),
        (("value = 1000", ""), "None"),
        (("value = 1000", "value = "), "not valid TOML"),
    ],
)
def test_faults_of_a_file_are_named(tmp_path, change, said):
    """What is wrong stands in the message, beside the part that it is wrong of."""
    file = tmp_path / "prices.toml"
    file.write_text(WHOLE, encoding="utf-8")
    assert prices.total(prices.read(file=file), prices.NODE, "gige") == 1010
    file.write_text(WHOLE.replace(*change), encoding="utf-8")
    with pytest.raises(FalloffError, match=said):
        prices.read(file=file)


def test_parts_are_drawn_on_their_own_and_added_for_their_owner():
    """A certain part adds its price to each draw of the others, and the mean is that of all parts together."""
    listed = prices.read({"10gige.port": 100, "10gige.cable": 20, "10gige.adapter": [400, 500, 600]})
    drawn = prices.draws(listed, 4000, np.random.default_rng(2))["10gige"]
    assert 520 <= drawn.min() < drawn.max() <= 720 and drawn.mean() == pytest.approx(620, rel=0.01)
