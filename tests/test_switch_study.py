"""The switch tests: planted goodputs, costs, limits and losses come back, as numbers, figures and words."""

import re
from functools import cache

import numpy as np
import pytest
import synthetic_switch as planted

from analysis import cpu_account, published, style, wire, wording
from analysis.facts import switch as facts
from analysis.figures import switch as figures
from analysis.publish import to_html, to_pdf
from analysis.studies import frame_limits, mtu, packet_sizes, switch, tcp_cost
from analysis.tcp import points, stamps
from runners.record import FalloffError

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@cache
def full_study():
    """The study of all four campaigns."""
    return switch.analyse(planted.over_mtu(), planted.cost(), planted.frame_limits(), planted.packet_sizes())


@pytest.fixture(scope="module")
def drawn():
    """Every figure of all four campaigns."""
    return figures.draw(full_study())


def said(study):
    """The section's Markdown, hard spaces as spaces."""
    template = wording.templates().get_template("switch.md.j2")
    return template.render(switch=facts.collect(study)).replace("\u00a0", " ")


def test_a_full_wire_is_link_bound_in_every_direction():
    """One way the share is 1; both ways it is what the acknowledgements leave, and full all the same."""
    found = points(planted.over_mtu())
    assert found.total.dims == ("block", "path", "mtu", "direction")
    found = found.sel(path=["crossover", "switch_8996", "router"])
    np.testing.assert_allclose(found.share.sel(direction=["forward", "reverse"]), 1)
    both = found.share.sel(direction="both", block=1, path="switch_8996")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all() and (stamps(found) == "link-bound").all()


@pytest.mark.parametrize(("share", "stamp"), [(0.98, "host-bound"), (0.995, "link-bound"), (1.03, "shaper")])
def test_stamps_follow_the_share(share, stamp):
    """A path below 99 % is stamped host-bound, one beyond the limit is the shaper's fault; others are untouched."""
    found = stamps(points(planted.over_mtu(share={"switch_8996": share}))).sel(direction="forward")
    assert (found.sel(path="switch_8996") == stamp).all()
    assert (found.sel(path=["crossover", "router"]) == "link-bound").all()


def test_without_a_rate_there_is_no_stamp():
    """An unshaped path has no wire limit, so that nothing is said of what limits it."""
    assert (stamps(points(planted.cost(blocks=1))) == "").all()


def test_the_wire_both_ways_is_the_sources():
    """Through SMC 8505T at MTU 1500 each way reached 99 to 100 % of what acknowledgements leave, not of the wire."""
    flows = published.nemo_netperf().query("path == 'smc_8505t' and mtu == 1500 and direction == 'both'")
    goodput = mtu.KIBIBYTE * flows.goodput_kib_s
    assert (goodput / wire.wire_limit_both_ways(1e9, 1500)).between(0.99, 1).all()
    assert (goodput / wire.wire_limit(1e9, 1500) < 0.98).all()


def test_the_least_frames_per_second_are_ethernets():
    """64 bytes with the FCS: 1488095 a second at 1 Gbit/s, the usual number."""
    assert int(wire.packet_limit(1e9, 60)) == 1488095


def test_planted_costs_come_back_at_both_machines():
    """CPU time over all bytes of a machine, both ways together, in every direction."""
    found = points(planted.over_mtu()).isel(block=0, path=0)
    for end in ("local", "remote"):
        expected = planted.PER_BYTE[end] + planted.PER_PACKET[end] / wire.tcp_payload(found.mtu)
        for direction in ("forward", "both"):
            np.testing.assert_allclose(found[f"cost_{end}"].sel(direction=direction), expected)
        np.testing.assert_allclose(found[f"cpu_{end}"], found[f"cost_{end}"] * found.total / 8)


@pytest.mark.parametrize(("nobodys", "stated"), [(0.09, True), (0.11, False), (-0.11, False)])
def test_nobodys_cpu_time_silences_both_ends(nobodys, stated):
    """Beyond 10 % neither end's CPU or cost is known; goodput is."""
    dataset = planted.over_mtu(blocks=1, unattributed=nobodys)
    found = points(dataset)
    assert found.total.notnull().all()
    for name in ("cpu_local", "cpu_remote", "cost_local", "cost_remote"):
        assert found[name].notnull().all() == stated and found[name].isnull().all() != stated
    ends = sum(cpu_account.of_end(dataset, end) for end in cpu_account.ENDS)
    whole = ends + dataset.unattributed_cpu_time
    assert not stated or np.allclose(whole, dataset.host_cpu_time)


def test_failed_trials_are_unknown():
    """Neither a goodput nor a cost is made up; the reason stays."""
    found = points(planted.over_mtu(failed={(1, "router", 1500, "both")}))
    at = found.sel(block=1, path="router", mtu=1500, direction="both")
    assert at.total.isnull() and at.cost_local.isnull() and at.reason == "planted fault"
    assert found.total.isnull().sum() == 1


def test_the_sources_tests_stand_beside_the_path_that_is_like_them():
    """Nine tests on three devices; both switches belong to the path with their frame limit."""
    found = full_study().mtu.published
    assert len(found) == 9 and found.groupby("path").device.unique().map(list).to_dict() == {
        "crossover": ["crossover"], "switch_8996": ["smc_8505t", "smc_8508t"]
    }  # fmt: skip
    both = found.query("device == 'smc_8505t' and mtu == 1500 and direction == 'both'").squeeze()
    assert both.total == pytest.approx(8 * 227.8e6, rel=1e-3) and both.share == pytest.approx(0.968, abs=1e-3)
    assert both.cpu_local == pytest.approx(0.6932) and both.cost_local == pytest.approx(0.6932 / 227.8e6, rel=1e-3)


@pytest.mark.parametrize(("flooding", "paths"), [(0.0, set()), (0.001, set()), (0.9, {"switch_8996", "switch_unshaped"})])
def test_flooding_is_reported_with_its_path(flooding, paths):
    """Onlookers of both switches are read; what every node receives anyway is no flooding."""
    found = mtu.onlookers(planted.over_mtu(blocks=1, flooding=flooding))
    assert found.readings == 2 * 2 * 15 and {path for path, _ in found.flooded} == paths
    assert found.largest == pytest.approx(flooding, rel=0.05)


def test_the_cost_model_finds_both_parts_and_predicts():
    """In 20 campaigns with 2 % noise each interval holds its truth, and the MTU left out, at least 17 times."""
    hits = np.zeros((2, 3))
    for seed in range(20):
        ends = tcp_cost.analyse(planted.cost(seed=seed)).ends
        for row, (end, found) in enumerate(zip(("local", "remote"), ends)):
            truths = (planted.PER_BYTE[end], planted.PER_PACKET[end], 0.0)
            intervals = (*found.fitted.intervals.values(), found.held_out.interval)
            hits[row] += [low <= truth <= high for truth, (low, high) in zip(truths, intervals)]
    assert (hits >= 17).all()


def test_instructions_take_the_place_of_cpu_time():
    """Where all trials have them the cost is theirs, whatever CPU time is nobody's; where one lacks them it is time."""
    counted = planted.cost(noise=0, unattributed=0.3, counted=True)
    found = tcp_cost.analyse(counted)
    assert found.instructions
    for end, name in zip(found.ends, ("local", "remote")):
        assert end.fitted.estimates["per_packet"] == pytest.approx(planted.INSTRUCTIONS * planted.PER_PACKET[name])
    known = switch.analyse(planted.over_mtu(1), counted)
    assert "a packet 2000 instructions" in said(known) and "CPU time per byte over the MTU" not in said(known)
    partly = counted.assign(instructions=counted.instructions.where(counted.trial > 0))
    assert not tcp_cost.analyse(partly).instructions


def test_a_step_in_the_cost_is_not_predicted():
    """Packets of more than a page that cost 1.5 times as much: the left-out MTU lies outside of the interval."""
    known = facts.collect(switch.analyse(planted.over_mtu(), planted.cost(step=1.5)))
    assert [end["predicted"] for end in known["cost"]["ends"]] == [False, False]
    assert "not predicted" in wording.finding("switch", known)


def test_an_unattributed_campaign_has_no_cost_model():
    """No block speaks of its ends: the model is refused with the reason, and the section says how many trials."""
    study = switch.analyse(planted.over_mtu(), planted.cost(blocks=2, unattributed=0.3))
    assert study.cost.unattributed == 12 and all(end.fitted is None and end.refused for end in study.cost.ends)
    assert "12 of 12 trials make no statement" in said(study)


def test_the_quick_preset_can_be_fitted():
    """Two blocks of four MTUs give both parts, and a prediction with an interval."""
    for end in tcp_cost.analyse(planted.cost(blocks=2, preset="quick")).ends:
        assert end.fitted and np.isfinite(end.held_out.interval).all()


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8954 -> 8982 -> 8996 behind the switch, silently; a router says so one way and is local the other."""
    found = frame_limits.analyse(planted.frame_limits()).map
    assert len(found) == 5 * 2 * 2 and found.alike.all() and (found.frame == found.expected).all()
    row = found.query("path == 'switch_8996' and load and way == 'reverse'").squeeze()
    assert (row.payload, row.mtu, row.frame, row.fault) == (8954, 8982, 8996, "silent")
    faults = found.query("path == 'router_1500' and not load").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}


def test_another_limit_than_described_is_not_exact():
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as described."""
    lower = facts.collect(switch.analyse(planted.over_mtu(1), limits=planted.frame_limits(limit=8978)))["limits"]
    assert lower["exact"] == lower["count"] - 4
    varying = frame_limits.analyse(planted.frame_limits(varying=True)).map
    assert (varying.alike == ~varying.load).all()


@pytest.mark.parametrize("overrun", [0.0, 0.4])
@pytest.mark.parametrize(("lost", "kind"), [(0.0, "holds"), (0.2, "violated")])
def test_a_switch_that_loses_small_packets_is_blocking(lost, kind, overrun):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not the switch's."""
    found = packet_sizes.analyse(planted.packet_sizes(lost={60: lost}, overrun=overrun))
    assert found.blocking[60].kind == kind and found.blocking[1514].kind == "holds"
    at = found.points.sel(path="switch_8996", frame_bytes=60).mean("block")
    assert at.delivered.item() == pytest.approx(1 - lost)
    assert at.loss.item() == pytest.approx(1 - (1 - lost) * (1 - overrun))


def test_another_tools_campaign_is_refused():
    """The reason names the tool whose trials are missing."""
    with pytest.raises(FalloffError, match="holds no iperf3 trial"):
        points(planted.packet_sizes(blocks=1))
    with pytest.raises(FalloffError, match="holds no udp_sizes trial"):
        packet_sizes.analyse(planted.over_mtu(blocks=1))


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("unattributed", [0.02, 0.5])
def test_the_section_makes_no_number_up(blocks, unattributed):
    """With one block or several, with CPU time or without, no NaN or None is shown."""
    study = switch.analyse(
        planted.over_mtu(blocks, unattributed=unattributed),
        planted.cost(blocks, unattributed=unattributed),
        planted.frame_limits(blocks),
        planted.packet_sizes(blocks),
    )
    assert not re.search(r"\b(nan|None)\b", said(study))


def test_the_section_names_what_is_wrong():
    """Host-bound paths, a shaper at fault and flooding are all said."""
    text = said(switch.analyse(planted.over_mtu(share={"switch_8996": 0.9, "router": 1.05}, flooding=0.5)))
    assert "15 are host-bound" in text and "15 exceed the wire limit" in text and "**flooded**" in text


def test_the_section_becomes_both_forms(drawn, tmp_path):
    """Seven figures, the tables and their references, in HTML and in PDF."""
    style.save_all(drawn, tmp_path / "figures")
    page = to_html(FRONT + said(full_study()), tmp_path)
    assert page.count("<img") == len(drawn) == 7 and page.count("<table") == 5
    assert to_pdf(FRONT + said(full_study()), tmp_path, 0).startswith(b"%PDF-")


def test_figures_show_published_points_and_the_limit(drawn):
    """Every published total is a mark of its path's panel, and the limits of one way and both ways are lines."""
    panels = drawn["switch_throughput"].axes
    for column, path in enumerate(("crossover", "switch_8996", "router")):
        shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in panels[column].lines])
        wanted = full_study().mtu.published.query("path == @path").total / 1e9
        assert all(np.isclose(shown, value).any() for value in wanted)
        for ways in (1, 2):
            assert np.isclose(shown, ways * wire.wire_limit(1e9, 8982) / 1e9).any()


def test_figures_show_every_limit_and_every_packet_rate(drawn):
    """Each frame of the map and each run's packets per second is a mark."""
    (limits,) = drawn["frame_limits"].axes
    marks = {line.get_xdata()[0] for line in limits.lines if len(line.get_xdata()) == 1}
    assert set(full_study().limits.map.frame) <= marks
    rates = np.concatenate([np.asarray(line.get_ydata(), float) for line in drawn["packet_sizes"].axes[0].lines])
    assert np.isin(full_study().sizes.points.received.values.ravel(), rates).all()
