"""TCP and frames over cable, switch and router: planted goodputs, costs, limits and losses come
back.
"""

import numpy as np
import pytest
import synthetic_switch as planted
from executed import executed, stated, words
from shown import failed

from analysis import paths
from analysis.dataset import wire
from analysis.subjects.mtu import goodput_over_mtu, points
from analysis.watch import todays_run


def test_acknowledgements_take_their_part_of_a_full_wire_both_ways():
    """One way the share is 1; both ways it is what the acknowledgements leave."""
    shares = points(planted.over_mtu()).share.sel(path="switch_8996", block=1)
    np.testing.assert_allclose(shares.sel(direction=["forward", "reverse"]), 1)
    both = shares.sel(direction="both")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all()


def over_mtu(dataset=None, cost=None):
    """The notebook on the campaigns over the MTU."""
    given = {"mtu": planted.over_mtu() if dataset is None else dataset}
    return executed("10", **given | ({} if cost is None else {"mtu_cpu": cost}))


@pytest.mark.parametrize(
    ("share", "stamp", "answer", "filled"),
    [
        (0.98, "host-bound", "no", 20),
        (0.995, "link-bound", "yes", 30),
        (1.03, "refused", "yes", 20),
    ],
)
def test_stamps_follow_the_share(share, stamp, answer, filled):
    """A path below 99 % is host-bound, one beyond the limit is the shaper's fault; others are
    untouched.
    """
    run = over_mtu(planted.over_mtu(share={"switch_8996": share}))
    text = words(run)
    assert stated(run, "TCP fills links with a set rate").words == answer
    each = {one.subject: one for one in run.statements if not one.primary}
    ways = {name: one.words for name, one in each.items() if not name.endswith("both")}
    assert len(ways) == 30 and sum(each == "yes" for each in ways.values()) == filled
    assert {one for name, one in ways.items() if "8996 switch" in name} == {
        "no" if stamp == "host-bound" else "refused" if stamp == "refused" else "yes"
    }
    assert not any("unshaped" in name for name in each)  # no rate, no limit
    assert ("The machine is the limit at 0 points" in text) == (stamp != "host-bound")
    assert ("the shaper lets more pass than the limit" in text) == (stamp == "refused")
    lowest = stated(run, "TCP fills links with a set rate").estimate
    assert lowest == pytest.approx(min(share, 1), rel=1e-3)


@pytest.mark.parametrize("keep", [1, 2])
def test_a_yes_of_every_point_needs_every_point(keep):
    """Of four ways only one or two were read: TCP fills all that were, and the statement names some
    of the others.
    """
    runs = planted.over_mtu(blocks=2)
    few = (runs.path.values == "crossover") & (runs.mtu.values == 1500)
    few &= np.isin(runs.direction.values, ["forward", "reverse"][:keep])
    one = stated(over_mtu(runs.assign(goodput=runs.goodput.where(few))), "TCP fills links")
    assert one.answer == "undecided" and one.estimate == pytest.approx(1)
    assert "no reading at crossover, " in str(one) and "more" in str(one)


def test_a_share_whose_interval_holds_both_is_open():
    """One block at 0.9 of a full wire among three: neither the link nor the machine is named as the
    limit.
    """
    runs = planted.over_mtu()
    slow = (runs.block.values == 1) & (runs.path.values == "switch_8996")
    made = over_mtu(runs.assign(goodput=runs.goodput.where(~slow, 0.9 * runs.goodput)))
    ways = [
        one for one in made.statements if "8996 switch" in one.subject and "forward" in one.subject
    ]
    assert ways and {one.answer for one in ways} == {"undecided"}
    assert stated(made, "TCP fills links with a set rate").answer == "undecided"


@pytest.mark.parametrize(("nobodys", "stated"), [(0.09, True), (-0.11, False)])
def test_planted_costs_come_back_unless_too_much_is_nobodys(nobodys, stated):
    """CPU time over all bytes of a machine, in every direction; with over 10 % nobody's neither end
    is known.
    """
    laid_out = points(planted.over_mtu(blocks=1, unattributed=nobodys)).isel(block=0, path=0)
    for end in ("local", "remote"):
        expected = planted.PER_BYTE[end] + planted.PER_PACKET[end] / wire.tcp_payload(laid_out.mtu)
        for direction in ("forward", "both"):
            cost = laid_out[f"cost_{end}"].sel(direction=direction)
            np.testing.assert_allclose(cost, expected if stated else np.nan * expected)


def test_the_cost_model_finds_the_packets_part():
    """Without noise what is saved and the packet's part are the planted ones, at both ends."""
    run = over_mtu(planted.over_mtu(blocks=1), planted.cost(noise=1e-6))
    for name, end in (("local", "sending"), ("remote", "receiving")):
        per_byte, per_packet = planted.PER_BYTE[name], planted.PER_PACKET[name]
        least, largest = (per_byte + per_packet / wire.tcp_payload(mtu) for mtu in (1500, 9000))
        part = stated(run, f"At MTU 1500 packets take most of the {end} end's CPU time")
        assert part.estimate == pytest.approx(1 - per_byte / least, rel=1e-3)
        assert part.words == "yes" and part.primary == (end == "sending")
        (saved,) = (one for one in run.statements if one.subject.endswith(f"1500, {end} end"))
        assert saved.estimate == pytest.approx(1 - largest / least, rel=1e-3)
        assert saved.words == "yes"


def test_a_cost_that_says_nothing_is_not_quoted():
    """Packets of more than a page that cost twice as much: no parts. No block with both ends: a
    reason.
    """
    for step, follows in ((1.0, True), (2.0, False)):
        run = over_mtu(planted.over_mtu(blocks=1), planted.cost(noise=0.005, step=step))
        parts = [one for one in run.statements if "packets take most" in one.subject]
        assert [one.estimate is not None for one in parts] == [follows] * 2
        assert all(("misses its data" in one.reason) != follows for one in parts)
    run = over_mtu(cost=planted.cost(blocks=2, unattributed=0.3))
    costs = [one for one in run.statements if one.campaign == "mtu_cpu"]
    assert len(costs) == 4 and all(
        one.estimate is None and one.answer == "undecided" for one in costs
    )
    assert "none of 2 blocks is complete" in words(run)


def test_lost_trials_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    run = over_mtu(failed(planted.over_mtu(), "exit code 1"))
    assert {one.estimate for one in run.statements} == {None}
    assert stated(run, "TCP fills links").answer == "undecided" and "exit code 1" in words(run)


def test_the_figure_shows_every_run_and_what_nemo_printed():
    """On each path with a rate, its runs, and beside them the printed points of the devices like
    it.
    """
    dataset = planted.over_mtu()
    run, laid_out = over_mtu(dataset), points(dataset)
    panels = run.figures["mtu"].figure.axes
    nemo = run.names["nemo"]
    for path, axes in zip(("crossover", "switch_8996", "router"), panels, strict=True):
        drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        wanted = [*laid_out.total.sel(path=path).values.ravel(), *nemo[nemo.path == path].total]
        assert all(np.isclose(drawn, value / 1e9).any() for value in wanted)
    assert len(nemo) and set(nemo.path) == {"crossover", "switch_8996"}


def test_means_of_today_are_marks_where_today_ran():
    """The harmonic mean of each point that ran, and nothing on a path that did not."""
    dataset, today = planted.over_mtu(), points(planted.over_mtu(blocks=2, share={"router": 0.9}))
    today = today.sel(path=["router"], mtu=[1500], direction=["forward"])
    panels = goodput_over_mtu(dataset, points(dataset), over_mtu().names["nemo"], today).axes
    marks = [
        [line.get_ydata() for line in one.lines if line.get_label() == "today"] for one in panels
    ]
    shown = [float(y) for y in np.concatenate(marks[2]) if np.isfinite(y)]
    assert shown == pytest.approx([2e-9 / (1 / today.total.values.ravel()).sum()])
    assert not np.isfinite(np.concatenate(marks[0] + marks[1])).any()


@pytest.mark.few(1)
@pytest.mark.parametrize(("share", "verdict"), [(1.0, "reproduced"), (0.9, "not reproduced")])
def test_todays_run_is_compared_by_the_lowest_share(share, verdict):
    """A path that the machine limits today and not in the reference is told."""
    today = planted.over_mtu(blocks=3, share={"router": share})
    (file,) = paths.NOTEBOOKS.glob("10_*.ipynb")
    told = todays_run.compare(file, {"mtu": planted.over_mtu()}, "mtu", today)
    kinds = {one.statement.subject: one.kind for one in told.verdicts}
    assert kinds["TCP fills links with a set rate, one way (lowest point)"] == verdict
    assert kinds["TCP fills the wire: router, MTU 1500, reverse"] == verdict
