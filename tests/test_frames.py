"""Frames: planted limits and losses come back, as numbers, words and marks."""

import pytest
import synthetic_switch as planted

from analysis.experiments import frames


def words(study):
    """The finding, with plain spaces."""
    return frames.finding(study).replace("\u00a0", " ")


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8996 behind the switch, silently; a router says so one way and is local the other."""
    study = frames.analyse(planted.frame_limits())
    table = study.limits.map
    assert len(table) == 5 * 2 * 2 == study.limits.exact
    row = table.query("path == 'switch_8996' and load and way == 'reverse'").squeeze()
    assert (row.frame, row.expected, row.fault) == (8996, 8996, "silent")
    faults = table.query("path == 'router_1500' and not load").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}
    assert frames.figures(study) == {} and "datagrams" not in words(study)


def test_another_limit_than_described_is_not_exact():
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as described."""
    lower = frames.analyse(planted.frame_limits(limit=8978))
    assert lower.limits.exact == 16 and "in 16 of 20 cases" in words(lower)
    assert "on: 8996 switch." in words(lower)
    varying = frames.analyse(planted.frame_limits(varying=True))
    assert (varying.limits.map.alike == ~varying.limits.map.load).all()


@pytest.mark.parametrize("overrun", [0.0, 0.4])
@pytest.mark.parametrize(("lost", "kind"), [(0.0, "holds"), (0.2, "violated")])
def test_a_switch_that_loses_small_packets_is_blocking(lost, kind, overrun):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not the switch's."""
    sizes = planted.packet_sizes(lost={60: lost}, overrun=overrun)
    study = frames.analyse(planted.frame_limits(), sizes)
    blocking = study.sizes.blocking
    assert blocking[60].kind == kind and blocking[1514].kind == "holds"
    at = study.sizes.points.sel(path="switch_8996", frame_bytes=60).mean("block")
    assert at.delivered.item() == pytest.approx(1 - lost)
    assert at.loss.item() == pytest.approx(1 - (1 - lost) * (1 - overrun))
    assert study.sizes.worst == 60 or not lost
    primary = [one.answer for one in frames.findings(study) if one.primary]
    assert primary == ["different" if lost else "the same", "yes"]


def test_a_wire_that_is_not_full_is_said():
    """50,000 datagrams a second are 3 % of the wire's packets at 60 bytes, and a full wire of large ones."""
    study = frames.analyse(planted.frame_limits(), planted.packet_sizes(noise=0))
    assert "3 % of the wire's packet rate at 60 bytes and 100 % at 8996 bytes" in words(study)
    assert "Small frames do not load it fully" in words(study)
