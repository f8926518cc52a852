"""Frames over cable, switch and router: planted limits and losses come back."""

import pytest
import synthetic_switch as planted
from executed import executed, stated, words
from test_notebook_runs import lost


def in_frames(limits=None, sizes=None):
    """The notebook on the search for the largest frames, and on datagrams of all sizes if they are
    given.
    """
    given = {"frame_size_limit": planted.frame_size_limit() if limits is None else limits}
    return executed("11", **given | ({} if sizes is None else {"frame_size_rate": sizes}))


def test_frame_limits_are_where_the_paths_descriptions_put_them():
    """8996 behind the switch, silently; a router says so one way and is local the other."""
    run = in_frames()
    table = run.names["largest"]
    assert len(table) == 5 * 2 * 2 and table.exact.all()
    row = table.query(
        "path == 'switch_8996' and load == 'under load' and way == 'reverse'"
    ).squeeze()
    assert (row.frame, row.expected, row.fault) == (8996, 8996, "silent")
    faults = table.query("path == 'router_1500' and load == 'idle'").set_index("way").fault
    assert faults.to_dict() == {"forward": "router", "reverse": "local"}
    search = stated(run, "The search finds")
    assert (search.words, search.estimate, search.n) == ("yes", 1.0, 20)
    assert {one.words for one in run.statements if not one.primary} == {"yes"}
    assert {one.campaign for one in run.statements} == {
        "frame_size_limit"
    }  # no datagrams were given


@pytest.mark.parametrize("varying", [False, True])
def test_another_limit_than_described_is_not_exact(varying):
    """A switch that drops 4 bytes earlier, always or in some blocks, is told from one as
    described.
    """
    limits = (
        planted.frame_size_limit(varying=True) if varying else planted.frame_size_limit(limit=8978)
    )
    run = in_frames(limits)
    exact, search = run.names["largest"].exact, stated(run, "The search finds")
    assert search.words == "no" and search.estimate == exact.mean() < 1
    if varying:
        assert (exact == (run.names["largest"].load == "idle")).all()
    else:
        assert exact.sum() == 16 and "largest frame on 8996 switch" in words(run)
        differs = [one for one in run.statements if one.words == "no" and one.unit == "B"]
        assert len(differs) == 4 and all("8996 switch" in one.subject for one in differs)


@pytest.mark.parametrize(
    ("lost", "overrun", "answer"),
    [(0.0, 0.4, "the same"), (0.2, 0.0, "no"), (0.2, 0.4, "no")],
)
def test_a_switch_that_loses_small_packets_is_blocking(lost, overrun, answer):
    """A fifth of the smallest frames is lost on the path or none is; what the socket loses is not
    the switch's.
    """
    run = in_frames(sizes=planted.frame_size_rate(lost={60: lost}, overrun=overrun))
    subject = "As many datagrams arrive over 8996 switch as over crossover"
    each = {one.subject: one for one in run.statements}
    assert each[subject].primary and each[subject].words == answer
    assert each[f"{subject}, frames of 60 B"].words == answer
    assert each[f"{subject}, frames of 60 B"].estimate == pytest.approx(1 - lost)
    assert each[f"{subject}, frames of 1514 B"].words == "the same"
    assert ("at 60 bytes, the worst" in words(run)) or not lost


def test_lost_searches_and_datagrams_leave_statements_without_numbers():
    """Nothing is judged, and nothing is made up."""
    run = in_frames(*map(lost, (planted.frame_size_limit(), planted.frame_size_rate())))
    assert {one.estimate for one in run.statements} == {None} and words(run)
