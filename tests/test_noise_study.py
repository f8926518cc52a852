"""HPL beside a daemon: planted losses and amplifications come back, and few blocks decide nothing."""

from functools import cache

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from synthetic import TAKEN
from synthetic_studies import noise_campaign

from analysis import style
from analysis.facts import noise as facts
from analysis.figures import noise as figures
from analysis.studies import noise
from runners.record import FalloffError

PLANTED = {1: 1.0, 2: 1.5, 4: 2.5, 8: 4.5}


@cache
def exact_study():
    """Two blocks without scatter."""
    return noise.analyse(noise_campaign(blocks=2, noise=0, block_effect=0.1, amplification=PLANTED))


@cache
def noisy_study():
    """Six blocks with scatter."""
    return noise.analyse(noise_campaign(blocks=6, noise=0.01, seed=2))


def test_levels_ascend_without_the_one_that_has_no_daemon():
    """The control is what the others are compared with, not a level of its own."""
    assert [level.noise for level in exact_study().levels] == [0.01, 0.02, 0.05]


def test_planted_losses_come_back():
    """Without scatter, losses, taken shares and amplifications are the planted ones at every level."""
    for level in exact_study().levels:
        left = 1 - TAKEN * level.noise
        np.testing.assert_allclose(level.losses.taken, TAKEN * level.noise)
        np.testing.assert_allclose(level.losses.ratio, [left**times for times in PLANTED.values()])
        np.testing.assert_allclose(level.losses.amplification, list(PLANTED.values()))


def test_intervals_hold_the_planted_amplification():
    """Of many noisy campaigns, Fieller's 95 % intervals miss few."""
    held = []
    for seed in range(10):
        study = noise.analyse(noise_campaign(blocks=4, noise=0.02, seed=seed))
        for level in study.levels:
            low, high = level.losses.amplification_low.values, level.losses.amplification_high.values
            held += list((low <= list(PLANTED.values())) & (list(PLANTED.values()) <= high))
    assert np.mean(held) > 0.9


def test_noise_that_adds_up_falls_off():
    """Eight nodes lose four and a half times what one loses: 15 % beyond it at the highest level."""
    growth = noisy_study().levels[-1].growth
    assert growth.kind == "falls off" and growth.fall == pytest.approx(1 - 0.955**3.5, abs=0.02)


def test_noise_that_does_not_add_up_is_flat():
    """Where HPL loses what one node loses, whatever their number, the verdict is flat at every level."""
    same = dict.fromkeys(PLANTED, 1.0)
    study = noise.analyse(noise_campaign(blocks=6, noise=0.005, amplification=same))
    assert [level.growth.kind for level in study.levels] == ["flat"] * 3
    np.testing.assert_allclose(study.levels[-1].losses.amplification, 1, atol=0.2)


def test_the_curve_says_what_a_doubling_costs():
    """A ratio that is a power of the node count gives back its exponent as a loss with each doubling."""
    left = 1 - TAKEN * 0.05
    power = {n: 1 + 0.7 * np.log2(n) for n in PLANTED}
    study = noise.analyse(noise_campaign(blocks=2, noise=0, amplification=power))
    doubling = facts.collect(study)["levels"][-1]["doubling"]
    assert doubling["loss"] == pytest.approx(1 - left**0.7, rel=1e-4)


def test_one_block_has_losses_and_no_interval():
    """A single block gives losses and amplifications, no interval and no verdict."""
    known = facts.collect(noise.analyse(noise_campaign(blocks=1)))
    for level in known["levels"]:
        assert level["growth"]["kind"] == "undecided" and level["doubling"]["interval"] is None
        for point in level["points"]:
            assert point["loss"] is not None and point["interval"] is None
            assert point["amplification"] is not None and point["amplification_interval"] is None


def test_a_failed_run_is_left_out_with_its_reason():
    """A run with the daemon costs its own level one block, a run without it costs every level one."""
    study = noise.analyse(noise_campaign(blocks=4, failed={(1, "10gige", 8, 0.05), (2, "10gige", 4, 0.0)}))
    lowest, *_, highest = study.levels
    assert lowest.losses.blocks.values.tolist() == [4, 4, 3, 4]
    assert highest.losses.blocks.values.tolist() == [4, 4, 3, 3]
    assert highest.growth.blocks == 3 and lowest.growth.blocks == 4
    assert {trial["reason"] for trial in facts.collect(study)["faults"]["trials"]} == {"planted fault"}


def test_what_a_left_out_run_took_does_not_count():
    """The share taken is of the runs whose loss is known."""
    dataset = noise_campaign(blocks=2, failed={(1, "10gige", 8, 0.05)})
    bad = (dataset.block == 1) & (dataset.nodes == 8) & (dataset.noise == 0.05)
    study = noise.analyse(dataset.assign(noise_cpu_time=dataset.noise_cpu_time.where(~bad, 1e6)))
    assert study.levels[-1].losses.taken.sel(nodes=8) == pytest.approx(TAKEN * 0.05)


def test_a_daemon_without_a_count_has_a_loss_and_no_amplification():
    """What was taken is not made up from what was asked for."""
    dataset = noise_campaign(blocks=3)
    silent = noise.analyse(dataset.assign(noise_cpu_time=np.nan * dataset.noise_cpu_time))
    for point in facts.collect(silent)["levels"][0]["points"]:
        assert point["loss"] is not None and point["taken"] is None and point["amplification"] is None


def test_several_interconnects_are_refused():
    """The study is of one network; which one, it would not know."""
    dataset = noise_campaign(blocks=1)
    design = dataset.attrs["design"].replace('["10gige"]', '["gige", "10gige"]')
    with pytest.raises(FalloffError, match="single level of interconnect"):
        noise.analyse(dataset.assign_attrs(design=design))


def test_more_noise_is_darker():
    """Levels are told apart in black and white, in their order, by marker and by line."""
    looks = [style.look(f"noise {rank}") for rank in (1, 2, 3)]
    lightness = [np.dot(to_rgb(look.color), (0.299, 0.587, 0.114)) for look in looks]
    assert lightness == sorted(lightness, reverse=True) and min(-np.diff(lightness)) > 0.1
    assert len({look.marker for look in looks}) == len({look.line for look in looks}) == len(looks)


@pytest.mark.parametrize(
    "analysed", [noisy_study, lambda: noise.analyse(noise_campaign(blocks=1, drifting=(1,)))], ids=["six", "none"]
)
def test_figures_show_every_block(analysed):
    """Each block's loss is a mark; without a valid block the axes stay empty and nothing breaks."""
    study = analysed()
    drawn = figures.draw(study)
    shown = np.concatenate([np.asarray(line.get_ydata(), float) for line in drawn["noise"].axes[0].lines])
    for level in study.levels:
        losses = 100 * (1 - np.exp(level.log_ratio.values.ravel()))
        assert all(np.isclose(shown, loss).any() for loss in losses[np.isfinite(losses)])
    assert len(drawn["amplification"].legends[0].get_texts()) == 2 + len(study.levels)
