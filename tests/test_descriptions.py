"""Campaigns' and testbeds' files: what is wrong in them is said, and a campaign is fitted to a
user's own cluster.
"""

import copy
import json
import shutil

import pytest
from command_line import run
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths, planning
from analysis.descriptions import testbeds, toml_tables
from analysis.descriptions.testbeds import Cluster, Peak

CAMPAIGN = paths.CAMPAIGNS / "hpl_size.toml"
TESTBED = paths.TESTBEDS / "example_ssh.toml"
EMULATED = paths.TESTBEDS / "scale_model.toml"


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """`edited(file, old, new, ...)`: a copy of it as mine.toml, with words replaced, where
    `falloff` looks for it.
    """

    def edit(file, *changes):
        kind = "CAMPAIGNS" if file.parent == paths.CAMPAIGNS else "TESTBEDS"
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


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "[factors]",
            '[factors]\ncolour = ["red", "blue"]',
            "neither hpl nor testbed scale_model reads the setting colour",
        ),
        (
            "[settings]",
            "[settings]\ntimout_s = 5",
            "reads the setting timout_s; did you mean timeout_s?",
        ),
        ("NB = 24", 'NB = "24"', "NB = '24' must be a whole number from 1"),
        ("[design]", "[design]\ncolour = 1", "design.colour is unknown; there are"),
    ],
)
def test_what_nothing_reads_is_refused_before_anything_runs(edited, old, new, fault):
    """A factor, a setting and a key of the design that no tool, testbed or experiment knows."""
    edited(CAMPAIGN, old, new)
    (line,) = refused("run", "mine", "--testbed", "scale_model")
    assert fault in line


@pytest.mark.parametrize(
    ("shaper", "fault"),
    [
        ("late_s = 1e-4", "burst_bytes and late_s need each other"),
        ("burst_bytes = 3100", "burst_bytes and late_s need each other"),
        ("burst_s = 1e-3\nburst_bytes = 3100\nlate_s = 1e-4", "burst_s or burst_bytes, not both"),
    ],
)
def test_a_shaper_says_one_thing(edited, shaper, fault):
    """Half of a rule, or two of them, never leave a trial to find out."""
    edited(EMULATED, "burst_s = 250e-6", shaper)
    (line,) = refused("run", "hpl_noise", "--testbed", "mine")
    assert fault in line


@pytest.mark.parametrize("setting", ["", '[settings]\ninterconnect = "unshaped"'])
def test_a_campaign_without_a_network_is_refused_before_anything_runs(edited, setting):
    """No factor names one on emulated nodes: that is said, and not each trial's own failure."""
    campaign = paths.CAMPAIGNS / "hpl_blas.toml"
    network = next(
        line for line in campaign.read_text().splitlines() if line.startswith("interconnect")
    )
    edited(campaign, network, "", "[settings]", setting or "[settings]")
    (line,) = refused("run", "mine")
    assert 'interconnect = ["unshaped"] where no network is measured' in line


def test_six_faults_of_a_campaign_are_six_lines(edited):
    """Each with its key and what was probably meant; also those that only a preset or a testbed
    would meet.
    """
    edited(
        CAMPAIGN,
        'runner = "hpl"',
        'runner = "hpll"',
        "seed = 20261125",
        "sed = 20261125",
        "blocks = 4",
        'blocks = "four"',
        "[presets.full]",
        "[presets.full]\nbloks = 2",
        "margin = ",
        "margn = ",
    )
    first, *lines = refused("run", "mine")
    assert first == "falloff: campaign mine (extends common/hpl) has 6 faults:"
    assert {line.strip() for line in lines} == {
        "seed is missing",
        "sed is unknown; did you mean seed?",
        "runner: hpll is unknown; did you mean hpl?",
        "stopping.blocks = 'four' must be a whole number from 1 to 1000",
        "presets.full.bloks is unknown; did you mean blocks?",
        "design.margn is unknown; did you mean margin?",
    }


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "nodes = [4]",
            'nodes = ["four"]',
            "factors.nodes = ['four'] must be a list of distinct levels, whole numbers",
        ),
        ("nodes = [4]", "nodes = 4", "factors.nodes = 4 must be a list of distinct levels"),
        ("nodes = [4]", "nodes = [[4], [4]]", "factors.nodes"),
        ("blocks = 4", f"blocks = {9 * 10**20}", "must be a whole number from 1 to 1000"),
        (
            '"gige", "10gige"]',
            '"gigee", "10gige"]',
            "design.primary = 'gige' must be among gigee, 10gige",
        ),
        ("[settings]", "[[settings]]", "settings = [{"),
        ("[presets.quick]", "[presets]\nquick = 3\n[other]", "presets.quick = 3 must be a table"),
        ("[[warm_up]]", "[warm_up]", "must be a list of tables: [[warm_up]]"),
        ("[stopping]", "[levels]\nnodes = 3\n[stopping]", "levels.nodes = 3 must be a table"),
        ("[factors]\n", "factors = {}\n[factor]\n", "factors: is empty"),
    ],
)
def test_a_part_of_the_wrong_shape_is_named(edited, old, new, fault):
    """Whatever TOML allows there: a sentence, and no traceback."""
    edited(CAMPAIGN, old, new)
    assert fault in "\n".join(refused("run", "mine"))


@pytest.mark.parametrize(
    ("file", "changes", "parts"),
    [
        (
            TESTBED,
            (
                'launcher = "ssh"',
                'launcher = "rsh"\nrank_per_node = 2',
                "rate_bit_s = 1e9",
                'rate_bit_s = "1 Gbit"',
                "rate_bit_s = 10e9",
                "rate_bits = 10e9",
            ),
            ("launcher = 'rsh'", "ranks_per_node?", "'1 Gbit' must be bit/s", "rate_bit_s?"),
        ),
        (
            EMULATED,
            (
                'kind = "emulated"',
                'kind = "emulatd"',
                "rate_bit_s = 100e6",
                'rate_bit_s = "100 Mbit"',
            ),
            (
                "kind = emulatd is unknown; did you mean emulated?",
                "networks.gige.rate_bit_s = '100 Mbit' must",
            ),
        ),
    ],
    ids=["cluster", "emulated"],
)
def test_faults_of_a_testbed_are_a_line_each(edited, file, changes, parts):
    """A wrong key in one table hides no wrong value in another; every kind of testbed is read with
    care.
    """
    edited(file, *changes)
    first, *lines = refused("run", "hpl_size", "--testbed", "mine")
    assert first == f"falloff: testbed mine has {len(parts)} faults:" and len(lines) == len(parts)
    assert all(len(line) < 120 for line in lines)
    assert all(sum(part in line for line in lines) == 1 for part in parts)


# What the description of a cluster may say.
MINE = {
    "name": "mine",
    "kind": "cluster",
    "launcher": "ssh",
    "hosts": ["n1", "n2"],
    "networks": {"gige": {"subnet": "10.1.0.0/24", "rate_bit_s": 1e9, "mtu": 1500}},
}
KNOWN = {"cores": 16, "flop_per_cycle": 16, "clock_hz": 2.1e9, "clock": "base"}


def faults(description):
    """What is wrong with the description of a cluster."""
    return toml_tables.faults(Cluster, description)


def complete(description):
    """The description of a cluster with what follows from it."""
    return testbeds.checked(description).complete().plain()


def changed(*keys, to):
    """The description with one value in it replaced."""
    description = copy.deepcopy(MINE)
    table = description
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = to
    return description


@pytest.mark.parametrize("name", ["example_ssh", "example_slurm"])
def test_the_examples_are_without_fault(name):
    """Copied and edited, they are where a user begins, and the campaign of the README resolves for
    them.
    """
    assert testbeds.read(name).plain()["kind"] == "cluster"
    plan = planning.plan_campaign("hpl_scaling", name)
    assert {trial.point["interconnect"] for trial in plan.trials()} <= set(
        plan.testbed["interconnects"]
    )


@pytest.mark.parametrize(
    ("description", "fault"),
    [
        ({"networks": MINE["networks"]}, "name is missing"),
        (changed("host", to=["n1"]), "host is unknown; did you mean hosts?"),
        (changed("hosts", to=["n1", "n1"]), "a host is there twice"),
        (changed("launcher", to="slurm"), "nodes is missing"),
        (changed("nodes", to=2), "nodes follows from hosts"),
        (changed("ranks_per_node", to=0), "ranks_per_node = 0 must be a whole number from 1"),
        (changed("matrix_share", to=0.8), "matrix_share needs memory_bytes"),
        (changed("rpeak", "value", to=1e12), "rpeak: value needs unit, source"),
        (
            changed("tcp", "rmem", to=[1, 2]),
            "tcp.rmem = [1, 2] must be least, first and most bytes",
        ),
        (changed("networks", "gige", "subnet", to="10.1.0.1/24"), "networks.gige.subnet"),
        (changed("networks", "gige", "rdma", to="mlx5_0:1"), "mpi"),
        (changed("networks", "gige", "environment", to={"A B": "c"}), "environment.A B"),
    ],
)
def test_faults_are_told_in_words(description, fault):
    """Each names the key and says how it should be."""
    assert fault in "; ".join(faults(description))


HOSTILE = ["-oProxyCommand=id", "n1;id", "$(id)", "n1 n2", "n1\n2", "--", "", "n1'", "é"]


@pytest.mark.parametrize(
    "keys",
    [
        *(("hosts", 0), ("modules", 0), ("python",), ("scratch",), ("tools", "xhpl")),
        *(("networks", "gige", "interface"), ("ssh", "config"), ("slurm", "partition")),
    ],
    ids=str,
)
def test_no_name_can_become_an_option_or_a_command(keys):
    """Names that end in command lines, here or on the nodes, are names and nothing else."""
    *keys, last = keys
    for word in HOSTILE:
        named = changed(*keys, to=[word]) if last == 0 else changed(*keys, last, to=word)
        assert faults(named)


FOR_A_SHELL = [
    "`id`",
    "$(id)",
    "$HOME",
    "a b",
    "a;id",
    "a|id",
    "a&",
    "a>b",
    "'",
    '"',
    "a\nid",
    "~",
    "*",
    "\\",
]


@pytest.mark.parametrize("word", FOR_A_SHELL)
def test_no_word_for_mpirun_means_anything_to_a_shell(edited, word):
    """Open MPI hands its parameters to a shell on every node: of a cluster, and of emulated
    nodes.
    """
    assert faults(changed("networks", "gige", "mpi", to=["--mca", "btl", word]))
    assert faults(changed("networks", "gige", "environment", to={"UCX_TLS": word}))
    edited(EMULATED, "[mpi]", f"[mpi]\npml = {json.dumps(word)}")
    assert "mpi.pml = " in refused("run", "hpl_size", "--testbed", "mine")[0]


def test_rpeak_is_the_product_and_says_how():
    """Cores x flop per cycle x clock, with the clock that is meant; unknown when a part is; a
    stated one holds.
    """
    peak = Peak(**KNOWN).resolved()
    assert (peak["value"], peak["unit"]) == (pytest.approx(16 * 16 * 2.1e9), "flop/s")
    whole = complete(changed("rpeak", to=KNOWN))
    assert "base clock" in peak["source"] and whole["rpeak"]["value"] == peak["value"]
    assert (whole["nodes"], whole["interconnects"]) == (2, ["gige"])
    for part in KNOWN:
        assert "value" not in complete(changed("rpeak", to={**KNOWN, part: "unknown"}))["rpeak"]
        assert Peak(**{key: KNOWN[key] for key in KNOWN if key != part}).resolved() is None
    sheet = {"value": 1e12, "unit": "flop/s", "source": "the vendor's sheet"}
    assert Peak(**KNOWN, **sheet).resolved() == sheet


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
)


@given(ANYTHING)
def test_whatever_a_file_says_is_answered_in_words(value):
    """No value of any key ends in a traceback."""
    for key in MINE:
        said = faults({**MINE, key: value})
        assert all(isinstance(fault, str) for fault in said)
