"""TCP over the MTU: planted goodputs and costs come back, as numbers, words and marks."""

import numpy as np
import pytest
import synthetic_switch as planted

from analysis import published, wire
from analysis.experiments import tcp_mtu
from analysis.tcp import points, stamps

RATED = ["crossover", "switch_8996", "router"]


def words(study):
    """The finding, with plain spaces."""
    return tcp_mtu.finding(study).replace("\u00a0", " ")


def marks(axes):
    """The ordinates of everything that is drawn."""
    return np.concatenate([np.asarray(line.get_ydata(), float) for line in axes.lines])


def test_a_full_wire_is_link_bound_in_every_direction():
    """One way the share is 1; both ways it is what the acknowledgements leave, and full all the same."""
    laid_out = points(planted.over_mtu()).sel(path=RATED)
    np.testing.assert_allclose(laid_out.share.sel(direction=["forward", "reverse"]), 1)
    both = laid_out.share.sel(direction="both", block=1, path="switch_8996")
    assert both.sel(mtu=1500).item() == pytest.approx(2 * 1538 / (2 * 1538 + 90))
    assert (both.diff("mtu") > 0).all() and (stamps(laid_out) == "link-bound").all()


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
    assert (forward.sel(path="switch_8996") == stamp).all() and says in words(study)
    assert (forward.sel(path=["crossover", "router"]) == "link-bound").all()
    assert (forward.sel(path="crossover_unshaped") == "").all()  # no rate, no limit


def test_the_wire_both_ways_is_the_sources():
    """Through SMC 8505T at MTU 1500 each way reached 99 to 100 % of what acknowledgements leave, not of the wire."""
    flows = published.nemo_netperf().query(
        "path == 'smc_8505t' and mtu == 1500 and direction == 'both'"
    )
    goodput = 8 * published.KIBIBYTE * flows.goodput_kib_s
    assert (goodput / wire.wire_limit_both_ways(1e9, 1500)).between(0.99, 1).all()
    assert (goodput / wire.wire_limit(1e9, 1500) < 0.98).all()


@pytest.mark.parametrize(("nobodys", "stated"), [(0.09, True), (0.11, False), (-0.11, False)])
def test_planted_costs_come_back_unless_too_much_is_nobodys(nobodys, stated):
    """CPU time over all bytes of a machine, in every direction; with over 10 % nobody's neither end is known."""
    laid_out = points(planted.over_mtu(blocks=1, unattributed=nobodys)).isel(block=0, path=0)
    assert laid_out.total.notnull().all()
    for end in ("local", "remote"):
        expected = planted.PER_BYTE[end] + planted.PER_PACKET[end] / wire.tcp_payload(laid_out.mtu)
        for direction in ("forward", "both"):
            cost = laid_out[f"cost_{end}"].sel(direction=direction)
            np.testing.assert_allclose(cost, expected if stated else np.nan * expected)


def test_the_cost_model_finds_both_parts():
    """In 20 campaigns with 2 % noise each interval holds its truth at least 17 times."""
    hits = np.zeros((2, 4))
    for seed in range(20):
        cost = tcp_mtu.cost_of(planted.cost(seed=seed))
        for row, (name, end) in enumerate(zip(("local", "remote"), cost.ends)):
            per_byte, per_packet = planted.PER_BYTE[name], planted.PER_PACKET[name]
            least, largest = (per_byte + per_packet / wire.tcp_payload(mtu) for mtu in cost.mtus)
            truths = (per_byte, per_packet, 1 - per_byte / least, 1 - largest / least)
            intervals = (
                *end.fitted.intervals.values(),
                end.packet_part[1:],
                end.saved[1:],
            )
            hits[row] += [low <= truth <= high for truth, (low, high) in zip(truths, intervals)]
    assert (hits >= 17).all()


@pytest.mark.parametrize(("step", "followed"), [(1.0, True), (2.0, False)])
def test_a_model_that_misses_its_means_is_not_drawn(step, followed):
    """Packets of more than a page that cost twice as much: no curve, and no sentence on its parts."""
    study = tcp_mtu.analyse(planted.over_mtu(blocks=1), planted.cost(noise=0.005, step=step))
    assert [end.followed for end in study.cost.ends] == [followed] * 2
    for axes in tcp_mtu.cost_over_mtu(study.cost).axes:
        assert any(line.get_gid() == "model" for line in axes.lines) == followed
    assert ("[@chase]" in words(study)) == followed


def test_an_unattributed_campaign_has_no_cost_model():
    """No block speaks of its ends: the model is refused with the reason, and the caption says how many trials."""
    study = tcp_mtu.analyse(planted.over_mtu(), planted.cost(blocks=2, unattributed=0.3))
    assert all(end.fitted is None and end.refused for end in study.cost.ends)
    caption = tcp_mtu.figures(study)["tcp_cost"].caption.replace("\u00a0", " ")
    assert "12 of 12 trials say nothing of an end" in caption
    assert "No model at the sending end" in caption and "sending end" not in words(study)


@pytest.mark.parametrize(("share", "same"), [(1.0, 45), (0.9, 30)])
def test_todays_run_is_compared_by_what_limits_it(share, same):
    """A path that the machine limits today and not in the reference is told."""
    today = planted.over_mtu(blocks=1, share={"router": share})
    study = tcp_mtu.analyse(planted.over_mtu(), today=today)
    assert f"{same} of 45 points limited by the same" in words(study)
    first = next(tcp_mtu.findings(study))
    assert first.today["answer"] == ("reproduced" if same == 45 else "not reproduced")


def test_figures_hold_every_run_every_published_point_and_the_limit():
    """Each is a mark of its path's panel; both of the source's switches stand with the path of their frame limit."""
    study = tcp_mtu.analyse(planted.over_mtu(), planted.cost())
    devices = study.published.groupby("path").device.unique().map(list).to_dict()
    assert devices == {"crossover": ["crossover"], "switch_8996": ["smc_8505t", "smc_8508t"]}
    figures = tcp_mtu.figures(study)
    for axes, path in zip(figures["tcp_mtu"].figure.axes, study.paths):
        runs = study.points.total.sel(path=path).values.ravel() / 1e9
        printed = study.published[study.published.path == path].total / 1e9
        limits = [ways * wire.wire_limit(1e9, 8982) / 1e9 for ways in (1, 2)]
        shown = marks(axes)
        assert all(np.isclose(shown, value).any() for value in [*runs, *printed, *limits])
    for axes, end in zip(figures["tcp_cost"].figure.axes, study.cost.ends):
        assert np.isin(end.values.values.ravel() / 1e-9, marks(axes)).all()
