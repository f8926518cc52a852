"""Parallel streams: a planted fall is found, a network without one stays flat, and lost runs give
no number.
"""

from functools import cache

import numpy as np
import pytest
from executed import executed, stated, words
from shown import failed

from analysis import experiment
from analysis.statistics.judgement import FALLS_OFF, FLAT


@cache
def stored():
    """The reference campaign."""
    return experiment.stored("parallel_streams", "emulated")


def run(dataset):
    """The notebook on a campaign."""
    return executed("52", parallel_streams=dataset)


def planted(lost):
    """The reference, in which 16 streams on 10GE lose this share [1] of what one carries."""
    dataset = stored()
    is_last = (dataset.streams == 16) & (dataset.interconnect == "10gige")
    first = dataset.goodput.where((dataset.streams == 1) & (dataset.interconnect == "10gige"))
    scatter = 1 + 0.002 * np.sin(np.arange(dataset.sizes["trial"]))
    last = float(first.mean()) * (1 - lost) * scatter
    return dataset.assign(goodput=dataset.goodput.where(~is_last, last))


@pytest.mark.parametrize(("lost", "answer"), [(0.0, FLAT), (0.2, FALLS_OFF)])
def test_a_planted_fall_is_found(lost, answer):
    """Sixteen streams that lose a fifth fall off, and such that lose nothing stay flat; GigE does
    in either case.
    """
    made = run(planted(lost))
    fall = stated(made, "TCP's fall from 1 stream to 16 on 10GE")
    assert fall.words == answer and fall.primary and fall.n == 6
    assert fall.estimate == pytest.approx(lost, abs=0.02)
    assert stated(made, "TCP's fall from 1 stream to 16 on GigE").words == FLAT
    assert not stated(made, "TCP's fall from 1 stream to 16 on unlimited links").primary


def test_lost_runs_give_no_number():
    """Without a single reading, and with one block: no answer, and the reason beside each lost
    trial.
    """
    lost = run(failed(stored(), "exit code 1"))
    assert {one.estimate for one in lost.statements} == {None} and "exit code 1" in words(lost)
    first = run(stored().isel(trial=stored().block.values <= 1))
    assert {one.words for one in first.statements} == {"undecided"} and words(first)
    assert {one.interval for one in first.statements} == {None}
