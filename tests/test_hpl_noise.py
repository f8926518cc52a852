"""HPL beside daemons: planted losses and amplifications come back, and few blocks decide nothing."""

from functools import cache

import numpy as np
import pytest
import shown
from synthetic import DAEMONS, TAKEN
from synthetic_studies import AMPLIFICATION, RARITY, noise_campaign

from analysis.experiments import hpl_noise
from runners.record import FalloffError

NODES = list(AMPLIFICATION)


@cache
def exact_study():
    """Two blocks without scatter."""
    return hpl_noise.analyse(noise_campaign(blocks=2, noise=0, block_effect=0.1))


@cache
def noisy_study():
    """Six blocks with scatter."""
    return hpl_noise.analyse(noise_campaign(blocks=6, noise=0.005, seed=2))


def words(study):
    return hpl_noise.finding(study).replace("\u00a0", " ")


def test_daemons_ascend_without_the_one_that_takes_nothing():
    """They are known by the share and the frequency that the trials were asked for, which the names only repeat."""
    found = [(daemon.share, daemon.frequency) for daemon in exact_study().daemons]
    assert found == [asked for name, asked in DAEMONS.items() if name != "none"]
    assert exact_study().daemons[-1].pause == pytest.approx(50e-6)


def test_planted_losses_come_back():
    """Without scatter, losses, taken shares and amplifications are the planted ones of every daemon."""
    for daemon in exact_study().daemons:
        times = np.array([AMPLIFICATION[n] * RARITY[daemon.frequency] for n in NODES])
        np.testing.assert_allclose(daemon.losses.taken, TAKEN * daemon.share)
        np.testing.assert_allclose(daemon.losses.ratio, (1 + TAKEN * daemon.share) ** -times)
        np.testing.assert_allclose(daemon.losses.amplification, times)


def test_intervals_hold_the_planted_amplification():
    """Of many noisy campaigns, Fieller's 95 % intervals miss few."""
    held = []
    for seed in range(4):
        study = hpl_noise.analyse(noise_campaign(blocks=4, noise=0.02, seed=seed))
        for daemon in study.daemons:
            low, high = daemon.losses.amplification_low.values, daemon.losses.amplification_high.values
            times = [AMPLIFICATION[n] * RARITY[daemon.frequency] for n in NODES]
            held += list((low <= times) & (times <= high))
    assert np.mean(held) > 0.9


def test_noise_that_adds_up_falls_off():
    """Sixteen nodes lose four and a half times what one loses, two nodes what one loses."""
    primary = next(daemon for daemon in noisy_study().daemons if daemon.name == noisy_study().primary)
    assert primary.name == "5 % at 100 Hz" and primary.growth.answer == "falls off"
    assert primary.growth.fall == pytest.approx(1 - 1.045**-3.5, abs=0.01)


def test_noise_that_does_not_add_up_is_flat():
    """Where HPL loses what one node loses, whatever their number, no daemon's loss grows."""
    same = dict.fromkeys(NODES, 1.0)
    study = hpl_noise.analyse(noise_campaign(blocks=6, noise=0.005, amplification=same))
    assert {daemon.growth.answer for daemon in study.daemons} == {"flat"}


def test_only_the_planned_statement_is_not_corrected():
    """Holm's procedure runs over the other daemons' growths."""
    corrected = {daemon.name: daemon.growth.p_holm is not None for daemon in noisy_study().daemons}
    assert corrected == {name: name != "5 % at 100 Hz" for name in DAEMONS if name != "none"}


def test_one_block_has_losses_and_no_interval():
    """A single block gives losses and amplifications, no interval and no verdict."""
    study = hpl_noise.analyse(noise_campaign(blocks=1))
    for daemon in study.daemons:
        assert daemon.growth.answer == "undecided"
        assert daemon.losses.ratio.notnull().all() and daemon.losses.low.isnull().all()
        assert daemon.losses.amplification.notnull().all() and daemon.losses.amplification_low.isnull().all()
    assert "interval" not in words(study) and "is open" in words(study)


def test_a_failed_run_is_left_out():
    """A run with a daemon costs it one block, a run without one costs every daemon one."""
    failed = {(1, "10gige", 16, "5 % at 10 Hz"), (2, "10gige", 4, "none")}
    blocks = {it.name: it.losses.blocks.values.tolist() for it in hpl_noise.analyse(noise_campaign(blocks=4, failed=failed)).daemons}
    assert blocks["1 % at 10 Hz"] == [4, 3, 4, 4] and blocks["5 % at 10 Hz"] == [4, 3, 4, 3]


def test_what_a_left_out_run_took_does_not_count():
    """The share taken is of the runs whose loss is known."""
    name = "5 % at 10 Hz"
    dataset = noise_campaign(blocks=2, failed={(1, "10gige", 16, name)})
    bad = (dataset.block == 1) & (dataset.nodes == 16) & (dataset.daemon == name)
    study = hpl_noise.analyse(dataset.assign(pace_paused=dataset.pace_paused.where(~bad, 1e6)))
    daemon = next(it for it in study.daemons if it.name == name)
    assert daemon.losses.taken.sel(nodes=16) == pytest.approx(TAKEN * 0.05)


def test_a_daemon_without_a_count_has_a_loss_and_no_amplification():
    """What was taken is not made up from what was asked for."""
    dataset = noise_campaign(blocks=3)
    study = hpl_noise.analyse(dataset.assign(pace_paused=np.nan * dataset.pace_paused))
    assert study.daemons[0].losses.ratio.notnull().all()
    assert study.daemons[0].losses[["taken", "amplification"]].to_array().isnull().all()
    assert "nan" not in hpl_noise.losses_table(study).body


def test_several_interconnects_are_refused():
    """The study is of one network; which one, it would not know."""
    dataset = noise_campaign(blocks=1)
    design = dataset.attrs["design"].replace('["10gige"]', '["gige", "10gige"]')
    with pytest.raises(FalloffError, match="single level of interconnect"):
        hpl_noise.analyse(dataset.assign_attrs(design=design))


def test_the_finding_follows_the_data():
    """The largest share on the most nodes at each frequency, and which pauses cost more."""
    said = words(exact_study())
    assert "takes 5 % of each node's computing in 10 pauses a second costs HPL 32.7 % of its rate on 16 nodes" in said
    assert "18.0 % in 100 pauses and 9.4 % in 1000 pauses" in said
    assert "Long rare pauses cost more" in said and "one delayed node delays all" in said
    other = hpl_noise.analyse(noise_campaign(blocks=4, noise=0.002, rarity={10: 0.2, 100: 0.3, 1000: 0.6}))
    assert "Short frequent pauses cost more" in words(other)
    little = noise_campaign(blocks=4, noise=0.002, amplification=dict.fromkeys(NODES, 0.3))
    assert "one delayed node delays all" not in words(hpl_noise.analyse(little))


def test_the_figure_shows_every_block_in_the_panel_of_its_share():
    """Each block's loss is a mark in the panel of the share that the daemon took."""
    figure = hpl_noise.figures(noisy_study())["noise"]
    for panel, share in enumerate(noisy_study().shares):
        marks = shown.heights(figure, panel)
        for daemon in noisy_study().with_share(share):
            losses = 100 * (1 - np.exp(daemon.log_ratio.values.ravel()))
            assert all(np.isclose(marks, loss).any() for loss in losses)
