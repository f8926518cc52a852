"""`make fuzz`: the files of campaigns and testbeds, damaged in every way: each is accepted, or
refused in words.

FALLOFF_FUZZ is the number of damaged files; without it there are as many as a test suite can
afford.
"""

import os
import random
import re
import shutil

import pytest

from analysis import paths, planning
from runners.engine.campaign import commands_of
from runners.records.record import FalloffError

CASES = int(os.environ.get("FALLOFF_FUZZ", 150))
VALUES = [
    "5",
    "-1",
    "0",
    "1.5",
    "nan",
    "inf",
    "1e999",
    "9" * 30,
    '"x"',
    '""',
    "true",
    "[]",
    "[[]]",
    "{}",
    "[{}]",
    "[5, 5]",
    '["x"]',
    "{ x = 1 }",
    "2026-01-01",
    '"all"',
    '"\\u001b[31m"',
    '"../../etc"',
    "[1, 2, 40]",
    '[["gige"]]',
    '["mine"]',
]
WORDS = [
    "[[factors]]",
    "[factors.x]",
    "extends = 'mine'",
    "nodes = 3",
    "[design]",
    '"x y" = 5',
    "= 5",
    "\x00",
    "[x",
]


def damaged(chance, text):
    """One to three things of a file changed."""
    for _ in range(chance.randrange(1, 4)):
        lines = text.split("\n")
        where, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        kind = chance.randrange(8)
        if kind == 0:
            del lines[where]
        elif kind == 1:
            lines.insert(where, chance.choice(WORDS))
        elif kind == 2:
            lines.insert(where, lines[other])
        elif kind == 3:
            lines[where] = lines[where][: chance.randrange(len(lines[where]) + 1)]
        else:
            with_value = [
                number for number, line in enumerate(lines) if re.match(r'[\w".]+ = ', line)
            ]
            if with_value:
                where = chance.choice(with_value)
                key, _, value = lines[where].partition(" = ")
                whole = chance.choice([f"{key} = {chance.choice(VALUES)}", f"{key}s = {value}"])
                part = re.sub(r"\d+", lambda _: chance.choice(VALUES), lines[where], count=1)
                lines[where] = chance.choice([whole, part])
        text = "\n".join(lines)
    return text


@pytest.mark.parametrize("kind", ["CAMPAIGNS", "TESTBEDS"])
def test_a_damaged_description_is_refused_in_words(kind, tmp_path, monkeypatch):
    """Neither reading it nor planning with it, nor the commands that follow from that, end with a
    traceback.
    """
    source = getattr(paths, kind)
    folder = shutil.copytree(source, tmp_path / kind)
    monkeypatch.setattr(paths, kind, folder)
    files, mine = sorted(source.glob("*.toml")), folder / "mine.toml"
    for case in range(CASES // 2):
        chance = random.Random(f"{os.environ.get('FALLOFF_FUZZ', '')} {kind} {case}")
        file = chance.choice(files)
        content = damaged(chance, file.read_text(encoding="utf-8")).encode()
        if chance.random() < 0.05:
            content = content[:40] + b"\xff" + content[40:]
        mine.write_bytes(content)
        campaign, testbed = ("mine", "") if kind == "CAMPAIGNS" else ("hpl_size", "mine")
        try:
            commands_of(planning.plan_campaign(campaign, testbed))
        except FalloffError as error:
            assert str(error)
        except Exception as error:
            shutil.copy(mine, tmp_path.parent / f"{kind}-{case}.toml")
            raise AssertionError(
                f"case {case} of {kind}: {file.stem}, see {tmp_path.parent}"
            ) from error
