"""Repeats over a long path are judged by their variation; a slow state, few repeats and failures are said."""

import re
from functools import cache

import numpy as np
from synthetic_paths import long_path_campaign, without

from analysis.experiments import long_repeats


def repeated(blocks=30, **truth):
    """The study of a campaign of repeats."""
    return long_repeats.analyse(long_path_campaign(blocks, campaign="long_repeats", **truth))


@cache
def steady():
    """Thirty transfers that scatter by 2 %."""
    return repeated()


def words(study):
    """The finding, hard spaces as spaces."""
    return long_repeats.finding(study).replace("\u00a0", " ")


def kinds(study):
    return {series.judged.kind for series in study.series}


def test_steady_transfers_are_the_same_again():
    """All four series, in words and as data."""
    assert kinds(steady()) == {"reproducible"}
    assert "gives the same goodput again** for 4 of 4 combinations" in words(steady())
    found = list(long_repeats.findings(steady()))
    assert {(it.answer, it.n, it.n_of) for it in found} == {("reproducible", 30, "transfer")}


def test_a_slow_state_is_not_reproducible():
    """Transfers that sometimes stay at a third are not called reproducible, and the slowest is told."""
    study = repeated(slow=(0.3, 1 / 3))
    assert kinds(study) == {"not reproducible"}
    assert "does not give the same goodput again** for 4 of 4" in words(study)
    assert re.search(r"The slowest transfer reached 3\d % of the median", words(study))


def test_few_repeats_are_open():
    """Three steady transfers prove nothing: no maximum and no small variation makes them reproducible."""
    study = repeated(blocks=3)
    assert kinds(study) == {"undecided"} and "is open** for 4 combinations" in words(study)


def test_a_transfer_without_a_reading_is_told_beside_the_verdict():
    """With its reason; the series has one transfer less."""
    dataset = long_path_campaign(30, campaign="long_repeats")
    study = long_repeats.analyse(
        without(dataset, block=2, congestion_control="reno", direction="reverse")
    )
    assert "1 of 120 transfers gave no reading: planted fault." in words(study)
    assert [series.judged.sample.n for series in study.series] == [30, 30, 30, 29]


def test_the_figure_shows_every_transfer():
    """Each is a mark at its share of the wire limit."""
    exhibit = long_repeats.figures(steady())["long_path_repeats"]
    (axes,) = exhibit.figure.axes
    shown = np.concatenate([np.asarray(line.get_xdata(), float) for line in axes.lines])
    for series in steady().series:
        shares = 100 * np.array(series.judged.sample.values) / series.wire_limit
        assert all(np.isclose(shown, share).any() for share in shares)
    assert exhibit.rests_on == ("long_repeats",)
