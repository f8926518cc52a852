"""TCP and frames over cable, switch and router: planted goodputs, costs, limits and losses come back."""

import numpy as np
import pytest
import synthetic_switch as planted
from shown import failed, words

from analysis import wire
from analysis.experiments import frames, tcp_mtu
from analysis.tcp import points


def test_acknowledgements_take_their_part_of_a_full_wire_both_ways():
    """One way the share is 1; both ways it is what the acknowledgements leave."""
    shares = points(planted.over_mtu()).share.sel(path="switch_8996", block=1)
    np.testing.assert_allclose(shares.sel(direction=["forward", "reverse"]), 1)
    both = shares.sel(direction="both")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all()


@pytest.mark.parametrize(
    ("share", "stamp", "says"),
    [
        (0.98, "host-bound", "fills the wire at 20 of 30 points"),
        (0.995, "link-bound", "fills the wire at all 30 points"),
        (1.03, "shaper", "The shaper lets too much pass"),
    ],
)
def test_stamps_follow_the_share(share, stamp, says):
    """A path below 99 % is host-bound, one beyond the limit is the shaper's fault; others are untouched."""
    study = tcp_mtu.analyse(planted.over_mtu(share={"switch_8996": share}))
    forward = study.stamps.sel(direction="forward")
    assert (forward.sel(path="switch_8996") == stamp).all() and says in words(tcp_mtu, study)
    assert (forward.sel(path=["crossover", "router"]) == "link-bound").all()
    assert (forward.sel(path="crossover_unshaped") == "").all()  # no rate, no limit


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
    cost = tcp_mtu.cost_of(planted.cost(noise=1e-6))
    for name, end in zip(("local", "remote"), cost.ends):
        per_byte, per_packet = planted.PER_BYTE[name], planted.PER_PACKET[name]
        least, largest = (per_byte + per_packet / wire.tcp_payload(mtu) for mtu in cost.mtus)
        assert end.packet_part[0] == pytest.approx(1 - per_byte / least, rel=1e-3)
        assert end.saved[0] == pytest.approx(1 - largest / least, rel=1e-3)


def test_a_cost_that_says_nothing_is_not_quoted():
    """Packets of more than a page that cost twice as much: no sentence on parts. No block with both ends: a reason."""
    for step, follows in ((1.0, True), (2.0, False)):
        study = tcp_mtu.analyse(planted.over_mtu(blocks=1), planted.cost(noise=0.005, step=step))
        assert [end.model.follows for end in study.cost.ends] == [follows] * 2
        assert ("[@chase]" in words(tcp_mtu, study)) == follows
    study = tcp_mtu.analyse(planted.over_mtu(), planted.cost(blocks=2, unattributed=0.3))
    assert "none of 2 blocks is complete" in words(tcp_mtu, study) and "sending end" not in words(
        tcp_mtu, study
    )


@pytest.mark.parametrize(("share", "same"), [(1.0, 45), (0.9, 30)])
def test_todays_run_is_compared_by_what_limits_it(share, same):
    """A path that the machine limits today and not in the reference is told."""
    today = planted.over_mtu(blocks=1, share={"router": share})
    study = tcp_mtu.analyse(planted.over_mtu(), today=today)
    assert f"{same} of 45 points limited by the same" in words(tcp_mtu, study)
    first = next(tcp_mtu.findings(study))
    assert first.answer == "yes" and "cannot repeat the 79.4 %" in words(tcp_mtu, study)
    assert first.today["answer"] == ("reproduced" if same == 45 else "not reproduced")


def test_todays_run_that_failed_is_told():
    """How many of its trials failed, and why."""
    today = failed(planted.over_mtu(blocks=1), "exit code 1")
    study = tcp_mtu.analyse(planted.over_mtu(), today=today)
    assert "Today's run failed" in words(tcp_mtu, study)
    assert next(tcp_mtu.findings(study)).today["answer"] == "failed"


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8996 behind the switch, silently; a router says so one way and is local the other."""
    study = frames.analyse(planted.frame_limits())
    table = study.limits
    assert len(table) == 5 * 2 * 2 and table.exact.all() and "datagrams" not in words(frames, study)
    row = table.query("path == 'switch_8996' and load and way == 'reverse'").squeeze()
    assert (row.frame, row.expected, row.fault) == (8996, 8996, "silent")
    faults = table.query("path == 'router_1500' and not load").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}


def test_another_limit_than_described_is_not_exact():
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as described."""
    lower = frames.analyse(planted.frame_limits(limit=8978))
    assert "in 16 of 20 cases" in words(frames, lower) and "on: 8996 switch." in words(
        frames, lower
    )
    varying = frames.analyse(planted.frame_limits(varying=True)).limits
    assert (varying.exact == ~varying.load).all()


@pytest.mark.parametrize(
    ("lost", "overrun", "kind"),
    [(0.0, 0.4, "holds"), (0.2, 0.0, "violated"), (0.2, 0.4, "violated")],
)
def test_a_switch_that_loses_small_packets_is_blocking(lost, overrun, kind):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not the switch's."""
    sizes = planted.packet_sizes(lost={60: lost}, overrun=overrun)
    study = frames.analyse(planted.frame_limits(), sizes)
    blocking = study.sizes.blocking
    assert blocking[60].kind == kind and blocking[1514].kind == "holds"
    at = study.sizes.points.sel(path="switch_8996", frame_bytes=60).mean("block")
    assert at.delivered.item() == pytest.approx(1 - lost)
    assert study.sizes.worst == 60 or not lost
    assert "Small frames do not load it fully" in words(frames, study)
    primary = [one.answer for one in frames.findings(study) if one.primary]
    assert primary == ["different" if lost else "the same", "yes"]
