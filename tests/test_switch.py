"""TCP and frames over cable, switch and router: planted goodputs, costs, limits and losses come back."""

import numpy as np
import pytest
import synthetic_switch as planted
from executed import executed, stated, words
from shown import failed
from test_notebook_runs import lost

from analysis import paths, todays_run, wire
from analysis.tcp import goodput_over_mtu, points


def test_acknowledgements_take_their_part_of_a_full_wire_both_ways():
    """One way the share is 1; both ways it is what the acknowledgements leave."""
    shares = points(planted.over_mtu()).share.sel(path="switch_8996", block=1)
    np.testing.assert_allclose(shares.sel(direction=["forward", "reverse"]), 1)
    both = shares.sel(direction="both")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all()


def over_mtu(dataset=None, cost=None):
    """The notebook on the campaigns over the MTU."""
    given = {"tcp_mtu": planted.over_mtu() if dataset is None else dataset}
    return executed("10", **given | ({} if cost is None else {"tcp_cost": cost}))


@pytest.mark.parametrize(
    ("share", "stamp", "answer", "filled"),
    [
        (0.98, "host-bound", "no", 20),
        (0.995, "link-bound", "yes", 30),
        (1.03, "refused", "yes", 20),
    ],
)
def test_stamps_follow_the_share(share, stamp, answer, filled):
    """A path below 99 % is host-bound, one beyond the limit is the shaper's fault; others are untouched."""
    run = over_mtu(planted.over_mtu(share={"switch_8996": share}))
    text = words(run)
    assert stated(run, "TCP fills links with a set rate").words == answer
    each = {one.subject: one for one in run.statements if not one.primary}
    ways = {name: one.words for name, one in each.items() if not name.endswith("both")}
    assert len(ways) == 30 and sum(each == "link-bound" for each in ways.values()) == filled
    assert {one for name, one in ways.items() if "8996 switch" in name} == {stamp}
    assert not any("unshaped" in name for name in each)  # no rate, no limit
    assert ("the machine is the limit" in text) == (stamp == "host-bound")
    assert ("The shaper lets too much pass" in text) == (stamp == "refused")
    lowest = stated(run, "TCP fills links with a set rate").estimate
    assert lowest == pytest.approx(min(share, 1), rel=1e-3)


@pytest.mark.parametrize("keep", [1, 2])
def test_a_yes_of_every_point_needs_every_point(keep):
    """Of four ways only one or two were read: TCP fills all that were, and the statement names some of the others."""
    runs = planted.over_mtu(blocks=2)
    few = (runs.path.values == "crossover") & (runs.mtu.values == 1500)
    few &= np.isin(runs.direction.values, ["forward", "reverse"][:keep])
    one = stated(over_mtu(runs.assign(goodput=runs.goodput.where(few))), "TCP fills links")
    assert one.answer == "undecided" and one.estimate == pytest.approx(1)
    assert "no reading at crossover, " in str(one) and "more" in str(one)


def test_a_share_whose_interval_holds_both_is_open():
    """One block at 0.9 of a full wire among three: neither the link nor the machine is named as the limit."""
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
    """CPU time over all bytes of a machine, in every direction; with over 10 % nobody's neither end is known."""
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
    """Packets of more than a page that cost twice as much: no parts. No block with both ends: a reason."""
    for step, follows in ((1.0, True), (2.0, False)):
        run = over_mtu(planted.over_mtu(blocks=1), planted.cost(noise=0.005, step=step))
        parts = [one for one in run.statements if "packets take most" in one.subject]
        assert [one.estimate is not None for one in parts] == [follows] * 2
        assert all(("misses its data" in one.reason) != follows for one in parts)
    run = over_mtu(cost=planted.cost(blocks=2, unattributed=0.3))
    costs = [one for one in run.statements if one.campaign == "tcp_cost"]
    assert len(costs) == 4 and all(one.estimate is None and not one.answer for one in costs)
    assert "none of 2 blocks is complete" in words(run)


def test_lost_trials_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    run = over_mtu(failed(planted.over_mtu(), "exit code 1"))
    assert {one.estimate for one in run.statements} == {None}
    assert stated(run, "TCP fills").answer == "undecided" and "exit code 1" in words(run)


def test_the_figure_shows_every_run_and_what_nemo_printed():
    """On each path with a rate, its runs, and beside them the printed points of the devices like it."""
    dataset = planted.over_mtu()
    run, laid_out = over_mtu(dataset), points(dataset)
    panels = run.figures["tcp_mtu"].figure.axes
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
    marks = [[line.get_ydata() for line in one.lines if line.get_label() == "today"] for one in panels]  # fmt: skip
    shown = [float(y) for y in np.concatenate(marks[2]) if np.isfinite(y)]
    assert shown == pytest.approx([2e-9 / (1 / today.total.values.ravel()).sum()])
    assert not np.isfinite(np.concatenate(marks[0] + marks[1])).any()


@pytest.mark.few(1)
@pytest.mark.parametrize(("share", "verdict"), [(1.0, "reproduced"), (0.9, "not reproduced")])
def test_todays_run_is_compared_by_the_lowest_share(share, verdict):
    """A path that the machine limits today and not in the reference is told."""
    today = planted.over_mtu(blocks=3, share={"router": share})
    (file,) = paths.NOTEBOOKS.glob("10_*.ipynb")
    told = todays_run.compare(file, {"tcp_mtu": planted.over_mtu()}, "tcp_mtu", today)
    kinds = {one.statement.subject: one.kind for one in told.verdicts}
    assert kinds["TCP fills links with a set rate, one way (lowest point)"] == verdict
    assert kinds["TCP's share of the wire limit: router, MTU 1500, reverse"] == verdict


def in_frames(limits=None, sizes=None):
    """The notebook on the search for the largest frames, and on datagrams of all sizes if they are given."""
    given = {"frame_limits": planted.frame_limits() if limits is None else limits}
    return executed("11", **given | ({} if sizes is None else {"packet_sizes": sizes}))


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8996 behind the switch, silently; a router says so one way and is local the other."""
    run = in_frames()
    table = run.names["largest"]
    assert len(table) == 5 * 2 * 2 and table.exact.all()
    row = table.query("path == 'switch_8996' and load and way == 'reverse'").squeeze()
    assert (row.frame, row.expected, row.fault) == (8996, 8996, "silent")
    faults = table.query("path == 'router_1500' and not load").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}
    search = stated(run, "The search finds")
    assert (search.words, search.estimate, search.n) == ("yes", 1.0, 20)
    assert {one.words for one in run.statements if not one.primary} == {"as described"}
    assert {one.campaign for one in run.statements} == {"frame_limits"}  # no datagrams were given


@pytest.mark.parametrize("varying", [False, True])
def test_another_limit_than_described_is_not_exact(varying):
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as described."""
    limits = planted.frame_limits(varying=True) if varying else planted.frame_limits(limit=8978)
    run = in_frames(limits)
    exact, search = run.names["largest"].exact, stated(run, "The search finds")
    assert search.words == "no" and search.estimate == exact.mean() < 1
    if varying:
        assert (exact == ~run.names["largest"].load).all()
    else:
        assert exact.sum() == 16 and "on: 8996 switch." in words(run)
        differs = [one for one in run.statements if one.words == "differs"]
        assert len(differs) == 4 and all("8996 switch" in one.subject for one in differs)


@pytest.mark.parametrize(
    ("lost", "overrun", "answer"),
    [(0.0, 0.4, "the same"), (0.2, 0.0, "different"), (0.2, 0.4, "different")],
)
def test_a_switch_that_loses_small_packets_is_blocking(lost, overrun, answer):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not the switch's."""
    run = in_frames(sizes=planted.packet_sizes(lost={60: lost}, overrun=overrun))
    subject = "Share of datagrams delivered: 8996 switch over crossover"
    each = {one.subject: one for one in run.statements}
    assert each[subject].primary and each[subject].words == answer
    assert each[f"{subject}, frames of 60 B"].words == answer
    assert each[f"{subject}, frames of 60 B"].estimate == pytest.approx(1 - lost)
    assert each[f"{subject}, frames of 1514 B"].words == "the same"
    assert ("at 60 bytes, the worst" in words(run)) or not lost
    assert "Small frames do not load it fully" in words(run)


def test_lost_searches_and_datagrams_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    run = in_frames(*map(lost, (planted.frame_limits(), planted.packet_sizes())))
    assert {one.estimate for one in run.statements} == {None} and words(run)
