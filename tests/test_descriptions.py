"""What a user writes wrongly in a campaign's or a testbed's file: all of it is said, a line each, with the key and a guess."""

import shutil

import pytest
from command_line import run

from analysis import paths

CAMPAIGN = paths.CAMPAIGNS / "hpl_size.toml"
TESTBED = paths.TESTBEDS / "example_ssh.toml"
EMULATED = paths.TESTBEDS / "scale_model.toml"


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """`edited(file, old, new, ...)`: a copy of it as mine.toml, with words replaced, where `falloff` looks for it."""

    def edit(file, *changes):
        kind = "CAMPAIGNS" if file is CAMPAIGN else "TESTBEDS"
        folder = shutil.copytree(file.parent, tmp_path / kind)
        text = file.read_text(encoding="utf-8")
        for old, new in zip(changes[::2], changes[1::2], strict=True):
            assert old in text
            text = text.replace(old, new, 1)
        (folder / "mine.toml").write_text(text, encoding="utf-8")
        monkeypatch.setattr(paths, kind, folder)

    return edit


def refused(*arguments):
    """The lines with which the command line refuses."""
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def test_six_faults_of_a_campaign_are_six_lines(edited):
    """Each with its key and what was probably meant; also those that only a preset or a testbed would meet."""
    edited(
        CAMPAIGN,
        'runner = "hpl"', 'runner = "hpll"',
        "seed = 20261125", "sed = 20261125",
        "blocks = 4", 'blocks = "four"',
        "[presets.full]", "[presets.full]\nbloks = 2",
        "margin = ", "margn = ",
    )  # fmt: skip
    first, *lines = refused("run", "mine")
    assert first == "falloff: campaign mine has 6 faults:"
    assert [line.strip() for line in lines] == [
        "seed is missing",
        "sed is unknown; did you mean seed?",
        "runner = hpll is unknown; did you mean hpl?",
        "stopping.bloks is unknown; did you mean blocks?",
        "stopping.blocks = 'four' must be a whole number from 1",
        "design.margn is unknown; did you mean margin?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("nodes = [4]", 'nodes = ["four"]', "factors.nodes = ['four'] must be whole numbers"),
        ("nodes = [4]", "nodes = 4", "factors.nodes = 4 must be a list of distinct levels"),
        ("nodes = [4]", "nodes = [[4], [4]]", "factors.nodes"),
        ('"gige", "10gige"]', '"gigee", "10gige"]', "interconnect gigee is unknown; did you mean gige?"),
        ("[settings]", "[[settings]]", "settings = [{"),
        ("[presets.quick]", "[presets]\nquick = 3\n[other]", "presets must be tables"),
        ("[[warm_up]]", "[warm_up]", "warm_up must be a list of tables: [[warm_up]]"),
        ("[stopping]", "[levels]\nnodes = 3\n[stopping]", "levels.nodes must be a table"),
        ("[factors]\n", "factors = {}\n[factor]\n", "factors is empty"),
    ],
)  # fmt: skip
def test_a_part_of_the_wrong_shape_is_named(edited, old, new, fault):
    """Whatever TOML allows there: a sentence, and no traceback."""
    edited(CAMPAIGN, old, new)
    assert fault in "\n".join(refused("run", "mine"))


def test_four_faults_of_a_testbed_are_four_lines(edited):
    """A wrong key in one table hides no wrong value in another."""
    edited(
        TESTBED,
        'launcher = "ssh"', 'launcher = "rsh"\nrank_per_node = 2',
        "rate_bit_s = 1e9", 'rate_bit_s = "1 Gbit"',
        "rate_bit_s = 10e9", "rate_bits = 10e9",
    )  # fmt: skip
    first, *lines = refused("run", "hpl_size", "--testbed", "mine")
    assert first == "falloff: testbed mine has 4 faults:"
    assert all(len(line) < 120 for line in lines)
    for line, part in zip(
        lines, ("launcher = 'rsh'", "ranks_per_node?", "'1 Gbit' must be bit/s", "rate_bit_s?")
    ):
        assert part in line


def test_every_kind_of_testbed_is_read_with_care(edited):
    """A rate in words and a kind that is none, of an emulated one."""
    edited(
        EMULATED,
        "rate_bit_s = 100e6",
        'rate_bit_s = "100 Mbit"',
        'kind = "emulated"',
        'kind = "emulatd"',
    )
    text = "\n".join(refused("run", "hpl_size", "--testbed", "mine"))
    assert "networks.gige.rate_bit_s = '100 Mbit' must be" in text
    assert "kind = 'emulatd' must be one of cluster, emulated, simulated" in text
