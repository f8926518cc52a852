"""Parallel streams: a planted fall is found, and a network without one stays flat."""

import numpy as np
import pytest
from shown import words

import experiment
from analysis.experiments import parallel_streams
from analysis.statistics.judgement import FALLS_OFF, FLAT


@pytest.fixture(scope="module")
def stored():
    """The reference campaign."""
    return experiment.stored("parallel_streams", "emulated")


@pytest.mark.parametrize(
    ("lost", "answer", "verb"), [(0.0, FLAT, "stays flat"), (0.2, FALLS_OFF, "falls off")]
)
def test_a_planted_fall_is_found(stored, lost, answer, verb):
    """Sixteen streams that lose a fifth fall off, and such that lose nothing stay flat."""
    is_last = (stored.streams == 16) & (stored.interconnect == "10gige")
    first = stored.goodput.where((stored.streams == 1) & (stored.interconnect == "10gige"))
    scatter = 1 + 0.002 * np.sin(np.arange(stored.sizes["trial"]))
    planted = stored.assign(
        goodput=stored.goodput.where(~is_last, float(first.mean()) * (1 - lost) * scatter)
    )
    study = parallel_streams.analyse(planted)
    assert study.falls["10gige"].answer == answer
    assert f"**10GE {verb}** from 1 stream to 16" in words(parallel_streams, study)
    assert float(study.goodput.sel(interconnect="gige").max()) < 1.01 * study.limits["gige"]
