"""Frames: planted limits and losses come back, as numbers, words and marks."""


import numpy as np
import pytest
import synthetic_switch as planted

from analysis import wire
from analysis.experiments import frames


def words(study):
    """The finding, with plain spaces."""
    return frames.finding(study).replace("\u00a0", " ")


def test_the_least_frames_per_second_are_ethernets():
    """64 bytes with the FCS: 1488095 a second at 1 Gbit/s, the usual number."""
    assert int(wire.packet_limit(1e9, 60)) == 1488095


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8954 -> 8982 -> 8996 behind the switch, silently; a router says so one way and is local the other."""
    study = frames.analyse(planted.frame_limits())
    found = study.limits.map
    assert len(found) == 5 * 2 * 2 == study.limits.exact
    row = found.query("path == 'switch_8996' and load and way == 'reverse'").squeeze()
    assert (row.payload, row.mtu, row.frame, row.fault) == (8954, 8982, 8996, "silent")
    faults = found.query("path == 'router_1500' and not load").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}
    assert "in 20 of 20 cases" in words(study)


def test_another_limit_than_described_is_not_exact():
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as described."""
    lower = frames.analyse(planted.frame_limits(limit=8978))
    assert lower.limits.exact == 16 and "in 16 of 20 cases" in words(lower)
    varying = frames.analyse(planted.frame_limits(varying=True))
    assert (varying.limits.map.alike == ~varying.limits.map.load).all()
    assert "which differ" in frames.limits_table(varying).body


@pytest.mark.parametrize(("limit", "same"), [(8982, 20), (8978, 16)])
def test_todays_limits_are_compared(limit, same):
    """A switch that drops earlier today than in the reference is told."""
    study = frames.analyse(planted.frame_limits(), today=planted.frame_limits(1, limit=limit))
    assert (study.today.limits, study.today.same) == (20, same)
    assert f"finds {same} of 20 limits" in words(study)
    judged = [found for found in frames.findings(study) if found.today]
    assert [found.today["answer"] == "reproduced" for found in judged] == [same == 20]


@pytest.mark.parametrize("overrun", [0.0, 0.4])
@pytest.mark.parametrize(("lost", "kind"), [(0.0, "holds"), (0.2, "violated")])
def test_a_switch_that_loses_small_packets_is_blocking(lost, kind, overrun):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not the switch's."""
    sizes = planted.packet_sizes(lost={60: lost}, overrun=overrun)
    study = frames.analyse(planted.frame_limits(), sizes)
    found = study.sizes
    assert found.blocking[60].kind == kind and found.blocking[1514].kind == "holds"
    at = found.points.sel(path="switch_8996", frame_bytes=60).mean("block")
    assert at.delivered.item() == pytest.approx(1 - lost)
    assert at.loss.item() == pytest.approx(1 - (1 - lost) * (1 - overrun))
    says = "does not deliver" if lost else "at all 8 frame sizes"
    assert says in words(study) and (found.worst == 60 or not lost)
    primary = [finding.answer for finding in frames.findings(study) if finding.primary]
    assert primary == ["different" if lost else "the same", ""]


def test_a_wire_that_is_not_full_is_said():
    """The sender offers 50,000 datagrams a second at most: 3 % of the wire's packets at 60 bytes, a full wire of large ones."""
    study = frames.analyse(planted.frame_limits(), planted.packet_sizes(noise=0))
    offered = study.sizes.offered.sel(path="switch_8996")
    assert offered.sel(frame_bytes=60).item() == pytest.approx(5e4 / 1488095, rel=1e-6)
    assert offered.sel(frame_bytes=8996).item() == pytest.approx(1)
    assert "3 % of the wire's packet rate at 60 bytes and 100 % at 8996 bytes" in words(study)
    assert "Small frames do not load it fully" in words(study)


def test_the_limits_alone_are_shown():
    """Without the datagrams there is neither their figure nor their table."""
    study = frames.analyse(planted.frame_limits())
    assert frames.figures(study) == {} and frames.sizes_table(study) is None
    assert "datagrams" not in words(study)


def test_the_figure_holds_every_run():
    """Each run's packets per second and loss is a mark."""
    study = frames.analyse(planted.frame_limits(), planted.packet_sizes(lost={60: 0.2}))
    exhibit = frames.figures(study)["packet_sizes"]
    assert exhibit.rests_on == frames.FIGURES["packet_sizes"]
    for axes, values in zip(
        exhibit.figure.axes, (study.sizes.points.sent, 100 * study.sizes.points.loss)
    ):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])
        assert np.isin(values.values.ravel(), shown).all()
