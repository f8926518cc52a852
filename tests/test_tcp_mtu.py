"""TCP over the MTU: planted goodputs and costs come back, as numbers, words and marks."""

from functools import cache

import numpy as np
import pytest
import synthetic_switch as planted

from analysis import cpu_account, published, wire
from analysis.experiments import tcp_cost, tcp_mtu
from analysis.tcp import points, stamps


@cache
def whole():
    """The study of both campaigns."""
    return tcp_mtu.analyse(planted.over_mtu(), planted.cost())


def words(study):
    """The finding, with plain spaces."""
    return tcp_mtu.finding(study).replace("\u00a0", " ")


def tables(study):
    """Every table, as Markdown."""
    made = [tcp_mtu.shares_table(study), tcp_mtu.published_table(study), tcp_mtu.cost_table(study)]
    return "\n".join(table.markdown for table in made if table)


def marks(axes):
    """The ordinates of everything that is drawn."""
    return np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])


def test_a_full_wire_is_link_bound_in_every_direction():
    """One way the share is 1; both ways it is what the acknowledgements leave, and full all the same."""
    found = points(planted.over_mtu())
    assert found.total.dims == ("block", "path", "mtu", "direction")
    found = found.sel(path=["crossover", "switch_8996", "router"])
    np.testing.assert_allclose(found.share.sel(direction=["forward", "reverse"]), 1)
    both = found.share.sel(direction="both", block=1, path="switch_8996")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all() and (stamps(found) == "link-bound").all()


@pytest.mark.parametrize(
    ("share", "stamp"), [(0.98, "host-bound"), (0.995, "link-bound"), (1.03, "shaper")]
)
def test_stamps_follow_the_share(share, stamp):
    """A path below 99 % is host-bound, one beyond the limit is the shaper's fault; others are untouched."""
    found = tcp_mtu.analyse(planted.over_mtu(share={"switch_8996": share})).stamps
    found = found.sel(direction="forward")
    assert (found.sel(path="switch_8996") == stamp).all()
    assert (found.sel(path=["crossover", "router"]) == "link-bound").all()
    assert (found.sel(path="crossover_unshaped") == "").all()  # no rate, no limit


def test_the_wire_both_ways_is_the_sources():
    """Through SMC 8505T at MTU 1500 each way reached 99 to 100 % of what acknowledgements leave, not of the wire."""
    flows = published.nemo_netperf().query(
        "path == 'smc_8505t' and mtu == 1500 and direction == 'both'"
    )
    goodput = 8 * published.KIBIBYTE * flows.goodput_kib_s
    assert (goodput / wire.wire_limit_both_ways(1e9, 1500)).between(0.99, 1).all()
    assert (goodput / wire.wire_limit(1e9, 1500) < 0.98).all()


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
    assert not stated or np.allclose(ends + dataset.unattributed_cpu_time, dataset.host_cpu_time)


def test_a_failed_trial_is_unknown_and_leaves_the_others():
    """Neither a goodput nor a cost is made up; the mean is that of the blocks that are left."""
    study = tcp_mtu.analyse(planted.over_mtu(failed={(1, "router", 1500, "both")}))
    at = study.points.sel(block=1, path="router", mtu=1500, direction="both")
    assert at.total.isnull() and at.cost_local.isnull() and at.reason == "planted fault"
    assert study.points.total.isnull().sum() == 1
    assert study.shares.blocks.sel(path="router", mtu=1500, direction="both") == 2


def test_the_sources_tests_stand_beside_the_path_that_is_like_them():
    """Nine tests on three devices; both switches belong to the path with their frame limit."""
    found = whole().published
    devices = found.groupby("path").device.unique().map(list).to_dict()
    assert len(found) == 9
    assert devices == {"crossover": ["crossover"], "switch_8996": ["smc_8505t", "smc_8508t"]}
    both = found.query("device == 'smc_8505t' and mtu == 1500 and direction == 'both'").squeeze()
    assert both.total == pytest.approx(8 * 227.8e6, rel=1e-3)
    assert both.share == pytest.approx(0.968, abs=1e-3)
    assert both.cpu_local == pytest.approx(0.6932)
    assert both.cost_local == pytest.approx(0.6932 / 227.8e6, rel=1e-3)


@pytest.mark.parametrize(
    ("flooding", "paths"),
    [(0.0, set()), (0.001, set()), (0.9, {"switch_8996", "switch_unshaped"})],
)
def test_flooding_is_reported_with_its_path(flooding, paths):
    """Onlookers of both switches are read; what every node receives anyway is no flooding."""
    study = tcp_mtu.analyse(planted.over_mtu(blocks=1, flooding=flooding))
    found = study.onlookers
    assert found.readings == 2 * 2 * 15 and {path for path, _ in found.flooded} == paths
    assert found.largest == pytest.approx(flooding, rel=0.05)
    assert ("**Frames are flooded**" in tcp_mtu.conduct(study)) == bool(paths)


def test_the_cost_model_finds_both_parts_and_predicts():
    """In 20 campaigns with 2 % noise each interval holds its truth, and the MTU left out, at least 17 times."""
    hits = np.zeros((2, 5))
    for seed in range(20):
        cost = tcp_cost.cost_of(planted.cost(seed=seed))
        for row, (name, end) in enumerate(zip(("local", "remote"), cost.ends)):
            per_byte, per_packet = planted.PER_BYTE[name], planted.PER_PACKET[name]
            least, largest = (per_byte + per_packet / wire.tcp_payload(mtu) for mtu in cost.mtus)
            part = 1 - per_byte / least
            truths = (per_byte, per_packet, 0.0, part, largest / least)
            intervals = (
                *end.fitted.intervals.values(),
                end.held_out.interval,
                end.packet_part[1:],
                (end.left.low, end.left.high),
            )
            hits[row] += [low <= truth <= high for truth, (low, high) in zip(truths, intervals)]
    assert (hits >= 17).all()


def test_instructions_take_the_place_of_cpu_time():
    """Where all trials have them the cost is theirs, whatever CPU time is nobody's; where one lacks them it is time."""
    counted = planted.cost(noise=0, unattributed=0.3, counted=True)
    cost = tcp_cost.cost_of(counted)
    assert cost.instructions
    for end, name in zip(cost.ends, ("local", "remote")):
        truth = planted.INSTRUCTIONS * planted.PER_PACKET[name]
        assert end.fitted.estimates["per_packet"] == pytest.approx(truth)
    text = tcp_cost.table_of(cost).markdown
    assert "| a packet | 2000" in text and "CPU time" not in text and "[ns]" not in text
    partly = counted.assign(instructions=counted.instructions.where(counted.trial > 0))
    assert not tcp_cost.cost_of(partly).instructions


def test_a_model_that_misses_its_means_is_not_drawn():
    """Packets of more than a page that cost twice as much: no curve, no sentence on its parts, and the caption says so."""
    smooth, stepped = (
        tcp_cost.cost_of(planted.cost(noise=0.005, step=step)) for step in (1.0, 2.0)
    )
    assert [end.followed for end in smooth.ends] == [True, True]
    assert [end.followed for end in stepped.ends] == [False, False]
    for cost, curves in ((smooth, 1), (stepped, 0)):
        for axes in tcp_cost.cost_over_mtu(cost).axes:
            assert sum(line.get_gid() == "model" for line in axes.lines) == curves
        assert ("not drawn" in tcp_cost.exhibit_of(cost).caption) == (not curves)
        assert ("[@chase]" in " ".join(tcp_cost.sentences(cost))) == bool(curves)
    low, high = stepped.ends[0].held_out.interval
    assert not low <= 0 <= high


def test_an_unattributed_campaign_has_no_cost_model():
    """No block speaks of its ends: the model is refused with the reason, and the table says how many trials."""
    study = tcp_mtu.analyse(planted.over_mtu(), planted.cost(blocks=2, unattributed=0.3))
    assert study.cost.unattributed == 12
    assert all(end.fitted is None and end.refused for end in study.cost.ends)
    text = tables(study).replace("\u00a0", " ")
    assert "12 of 12 trials say nothing of an end" in text and "No model at the sending end" in text
    assert "sending end" not in words(study)


def test_the_quick_preset_can_be_fitted():
    """Two blocks of four MTUs give both parts, and a prediction with an interval."""
    for end in tcp_cost.cost_of(planted.cost(blocks=2, preset="quick")).ends:
        assert end.fitted and np.isfinite(end.held_out.interval).all()


def test_the_finding_follows_the_data():
    """A full wire, a machine that limits, a shaper at fault, and what larger frames save."""
    text = words(whole())
    assert "One way, TCP fills the wire at all 30 points" in text and "saves" in text
    assert "Both ways at once, TCP fills the wire at all 15 points" in text
    assert "SMC 8508T reached 79.4 % at MTU 8982" in text and "not emulated" in text
    bad = words(tcp_mtu.analyse(planted.over_mtu(share={"switch_8996": 0.9, "router": 1.05})))
    assert "fills the wire at 10 of 30 points" in bad and "the machine is the limit" in bad
    assert "The shaper lets too much pass at 15 points" in bad and "not emulated" not in bad
    assert "saves" not in bad
    everywhere = dict.fromkeys(("crossover", "switch_8996", "router"), 1.05)
    assert "at 0 of 30 points" in words(tcp_mtu.analyse(planted.over_mtu(share=everywhere)))


@pytest.mark.parametrize(("share", "same"), [(1.0, 45), (0.9, 30)])
def test_todays_run_is_compared_by_what_limits_it(share, same):
    """A path that the machine limits today and not in the reference is told."""
    study = tcp_mtu.analyse(
        planted.over_mtu(), today=planted.over_mtu(blocks=1, share={"router": share})
    )
    assert (study.today.points, study.today.same) == (45, same)
    assert f"{same} of 45 points limited by the same" in words(study)
    first = next(tcp_mtu.findings(study))
    assert first.today["answer"] == ("reproduced" if same == 45 else "not reproduced")


def test_figures_hold_every_run_every_published_point_and_the_limit():
    """Each is a mark of its path's panel; the limits of one way and both ways are lines."""
    study = whole()
    figures = tcp_mtu.figures(study)
    assert {label: shown.rests_on for label, shown in figures.items()} == tcp_mtu.FIGURES
    for axes, path in zip(figures["tcp_mtu"].figure.axes, study.paths):
        shown = marks(axes)
        runs = study.points.total.sel(path=path).values.ravel() / 1e9
        printed = study.published[study.published.path == path].total / 1e9
        limits = [ways * wire.wire_limit(1e9, 8982) / 1e9 for ways in (1, 2)]
        assert all(np.isclose(shown, value).any() for value in [*runs, *printed, *limits])
    for axes, end in zip(figures["tcp_cost"].figure.axes, study.cost.ends):
        assert np.isin(end.values.values.ravel() / 1e-9, marks(axes)).all()
