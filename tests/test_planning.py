"""What a campaign costs and can say, in rows and in words."""

import pytest

from analysis.inference import planning, power
from analysis.inference.planning import Effort

EFFORT = Effort(block_s=180, survey_s=360, sd=0.04, margin=0.05)


def test_hours_count_the_survey_once():
    """Ten blocks of three minutes after six minutes of survey are 36 minutes."""
    assert EFFORT.hours(10) == pytest.approx(0.6)


def test_rows_hold_the_power_of_each_number_of_blocks():
    """In the order asked for, with the chances of `power`."""
    rows = planning.outlook(EFFORT, [12, 4])
    assert [row.blocks for row in rows] == [12, 4]
    assert rows[1].flat == pytest.approx(float(power.flat(0.0, 0.04, 4, 0.05)))
    assert rows[1].falls_off == pytest.approx(float(power.falls_off(planning.LARGE_FALL, 0.04, 4, 0.05)))
    assert rows[0].hours > rows[1].hours and rows[0].flat > rows[1].flat


def test_needed_blocks_have_the_power():
    """80 and 90 % for both claims; what cannot be had is None."""
    needs = planning.needed(EFFORT)
    assert [(n.claim, n.power) for n in needs] == [
        ("flat", 0.8), ("flat", 0.9), ("falls off", 0.8), ("falls off", 0.9)
    ]
    (row,) = planning.outlook(EFFORT, [needs[0].blocks])
    assert row.flat >= 0.8 and row.hours == needs[0].hours
    noisy = planning.needed(Effort(180, 360, sd=1.0, margin=0.05))
    assert noisy[0].blocks is None and noisy[0].hours is None


def test_the_text_has_a_line_for_each_row_and_need():
    """Numbers of blocks, hours and chances; blocks that cannot be planned are said, not shown as 0."""
    lines = planning.text(EFFORT, [4, 12]).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["4", "12"] and len(lines[2].split()) == 4
    assert len(lines) == 2 + 2 + 4
    blocks = planning.needed(EFFORT)[0].blocks
    assert f"{blocks} blocks" in lines[4] and "80 %" in lines[4] and "hours" in lines[4]
    assert "more blocks than can be planned" in planning.text(Effort(180, 360, 1.0, 0.05), [4])
