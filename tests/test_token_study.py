"""Token exchanges: what wires carry together is known; planted ratios come back, and answers and
figures follow the data.
"""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from executed import executed, stated, words
from shown import failed
from synthetic_token import CAMPAIGN, PATHS, token_campaign

from analysis.subjects.token_points import pairs_of, sum_limit

TWO = ("local_wire_10m", "bonded_shared_10m")
SLOW = (*TWO, "local_router_10m", "remote_switch_10m", "bonded_switch_10m")
CROWDED = (1, "local_wire_10m", 7, 8192)
LOCAL = "Local wire: about 4 times the dual net"


def run(dataset):
    """The notebook on a campaign."""
    return executed("20", token_exchange=dataset)


@cache
def noisy():
    """The notebook on the slow paths and two fast ones, with scatter."""
    return run(token_campaign(only=(*SLOW, "local_wire_100m", "bonded_shared_100m")))


@pytest.mark.parametrize(
    ("path", "pairs", "wires"),
    [
        ("shared_wire_10m", 7, 1),
        ("local_wire_10m", 3, 3),
        ("local_router_10m", 7, 7),
        ("remote_switch_10m", 3, 2),  # the second pair has a wire with each of the others
        ("remote_switch_10m", 7, 3.5),
        ("bonded_10m", 7, 14),
        ("bonded_switch_10m", 7, 4),
        ("bonded_shared_10m", 7, 2),
    ],
)
def test_what_wires_carry_together(path, pairs, wires):
    """Tokens and their returns share each wire, whoever sends: so many wires full is the most."""
    limit = sum_limit(PATHS[path], pairs_of(CAMPAIGN.settings, pairs))
    assert limit == pytest.approx(wires * 1e7 / 2)


@pytest.mark.more
def test_more_than_the_wire_is_left_out():
    """A trial whose pairs write ten times too much is no reading anywhere, and it is said."""
    made = run(token_campaign(only=TWO, excess={CROWDED}))
    points = made.names["points"]
    at = dict(zip(("block", "path", "pairs", "token_bytes"), CROWDED))
    assert points.excess.notnull().sum() == 1 and points.excess.sel(at) > 3
    assert points.runs.sel(at).isnull().all() and points.throughput.sel(at).isnull()
    assert stated(made, LOCAL).n == 2
    assert "1 wrote more than wires carry" in words(made)
    assert "0 wrote more than wires carry" in words(noisy())


def test_tokens_that_went_astray_are_left_out():
    """The places' counters tell it for every trial of a path; the described way of all others is
    confirmed.
    """
    made = run(token_campaign(only=TWO[:1], astray=TWO[:1]))
    assert (made.names["strays"] == 1).all() and made.names["points"].throughput.isnull().all()
    assert {one.estimate for one in made.statements} == {None} and words(made)
    assert not noisy().names["strays"].any() and "0 took another path" in words(noisy())
    some = words(run(token_campaign(only=SLOW, astray=SLOW[-1:])))
    assert "took another path" in some and " 0 took another path" not in some


def test_planted_ratios_have_their_answers():
    """Ratios inside and outside the ranges are told apart, at each rate."""
    local = stated(noisy(), f"{LOCAL} at 10 Mbit/s")
    assert local.words == "yes" and local.primary and local.n == 3
    assert local.estimate == pytest.approx(3.5, rel=0.03)
    switched = stated(noisy(), "Switched remote: about 2 times the dual net at 10 Mbit/s")
    assert switched.estimate == pytest.approx(1.75, rel=0.03)
    assert stated(noisy(), "Switched and routed local wires").words == "yes"
    assert stated(noisy(), "Bonded and switched").words == "no"
    fast = [one.subject for one in noisy().statements if "100 Mbit/s" in one.subject]
    assert fast == [f"{LOCAL} at 100 Mbit/s"]
    lossy = run(token_campaign(only=SLOW, use={"local_wire": 0.5, "bonded_switch": 0.6}))
    assert stated(lossy, LOCAL).words == "no"
    assert stated(lossy, "Bonded and switched").words == "yes"


@pytest.mark.parametrize(
    ("use", "busy_s", "answer"),
    [(0.5, 5.8, "refused"), (0.5, 3.0, "no"), (0.95, 5.8, "yes")],
)
def test_a_busy_machine_is_no_limit_of_wires(use, busy_s, answer):
    """Of two processors for three seconds nearly all taken, and half of what wires can: that says
    nothing of them.
    """
    dataset = token_campaign(only=TWO, use={"local_wire": use})
    busy = xr.full_like(dataset.host_cpu_time, busy_s)
    made = run(dataset.assign(host_cpu_time=busy))
    local = stated(made, LOCAL)
    assert local.words == answer and ("local wire" in local.reason) == (answer == "refused")


def test_what_was_not_run_is_said_and_one_block_decides_nothing():
    """The quick preset has two paths; from one block every ratio that was run is undecided."""
    quick = run(token_campaign(blocks=2, preset="quick"))
    missing = stated(quick, "Switched and routed local wires")
    assert (
        missing.answer == "undecided"
        and missing.reason == "not run at the study's rate: local router"
    )
    assert "rate: local router" in words(quick)
    single = run(token_campaign(blocks=1, only=SLOW))
    assert {one.answer for one in single.statements} == {"undecided"} and words(single)
    assert {one.interval for one in single.statements} == {None}


def test_the_figure_shows_every_block():
    """Each block's ratio is a mark."""
    blocks = stated(noisy(), f"{LOCAL} at 10 Mbit/s").values
    (axes,) = noisy().figures["token_claims"].figure.axes
    drawn = np.concatenate([np.asarray(line.get_xdata(), float) for line in axes.lines])
    assert len(blocks) == 3 and all(np.isclose(drawn, block).any() for block in blocks)


def test_lost_trials_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    made = run(failed(token_campaign(only=TWO), "no library"))
    assert {one.estimate for one in made.statements} == {None} and "no library" in words(made)
