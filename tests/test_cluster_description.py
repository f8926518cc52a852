"""What the description of a cluster may say, and what follows from it."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import experiment
from runners.testbeds.cluster_description import complete, faults, rpeak

EXAMPLES = ("example_ssh", "example_slurm")
MINE = {
    "name": "mine",
    "kind": "cluster",
    "launcher": "ssh",
    "hosts": ["n1", "n2"],
    "networks": {"gige": {"subnet": "10.1.0.0/24", "rate_bit_s": 1e9, "mtu": 1500}},
}
KNOWN = {"cores": 16, "flop_per_cycle": 16, "clock_hz": 2.1e9, "clock": "base"}


def changed(*keys, to):
    """The description with one value in it replaced."""
    description = copy.deepcopy(MINE)
    table = description
    for key in keys[:-1]:
        table = table.setdefault(key, {})
    table[keys[-1]] = to
    return description


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_without_fault(name):
    """Copied and edited, they are where a user begins, and the campaign of the README resolves for them."""
    assert experiment.read_testbed(name)["kind"] == "cluster"
    plan = experiment.plan_campaign("hpl_scaling", name)
    assert {trial.point["interconnect"] for trial in plan.trials()} <= set(
        plan.testbed["interconnects"]
    )


def lacking(key):
    """The description without one of its parts."""
    return {name: value for name, value in MINE.items() if name != key}


@pytest.mark.parametrize(
    ("description", "fault"),
    [
        (lacking("name"), "name is missing"),
        (lacking("networks"), "[networks.NAME] is missing"),
        (changed("host", to=["n1"]), "host is unknown; did you mean hosts?"),
        (changed("hosts", to=["n1", "n1"]), "a host is there twice"),
        (changed("launcher", to="pbs"), "launcher = 'pbs' must be one of ssh, slurm"),
        (changed("launcher", to="slurm"), "nodes is missing"),
        (changed("nodes", to=2), "nodes follows from hosts"),
        (changed("ranks_per_node", to=0), "ranks_per_node = 0 must be a whole number from 1"),
        (changed("matrix_share", to=0.8), "matrix_share needs memory_bytes"),
        (changed("rpeak", "value", to=1e12), "rpeak.value needs unit, source"),
        (
            changed("tcp", "rmem", to=[1, 2]),
            "tcp.rmem = [1, 2] must be least, first and most bytes",
        ),
        (changed("networks", "gige", to=1), "networks.gige must be a table"),
        (changed("networks", "gige", "subnet", to="10.1.0.1/24"), "networks.gige.subnet"),
        (changed("networks", "gige", "rdma", to="mlx5_0:1"), "mpi"),
        (changed("networks", "gige", "environment", to={"A B": "c"}), "environment.A B"),
    ],
)
def test_faults_are_told_in_words(description, fault):
    """Each names the key and says how it should be."""
    assert fault in "; ".join(faults(description))


HOSTILE = ["-oProxyCommand=id", "n1;id", "$(id)", "n1 n2", "n1\n2", "--", "", "n1'", "é"]


NAMES = {
    "hosts": lambda word: changed("hosts", to=[word]),
    "modules": lambda word: changed("modules", to=[word]),
    "python": lambda word: changed("python", to=word),
    "scratch": lambda word: changed("scratch", to=word),
    "interface": lambda word: changed("networks", "gige", "interface", to=word),
    "tool": lambda word: changed("tools", "xhpl", to=word),
    "config": lambda word: changed("ssh", "config", to=word),
    "partition": lambda word: changed("slurm", "partition", to=word),
}


@pytest.mark.parametrize("key", NAMES)
def test_no_name_can_become_an_option_or_a_command(key):
    """Names that end in command lines, here or on the nodes, are names and nothing else."""
    assert all(faults(NAMES[key](word)) for word in HOSTILE)


def test_rpeak_is_the_product_and_says_how():
    """Cores x flop per cycle x clock, with the clock that is meant; unknown when a part is; a stated one holds."""
    peak = rpeak({"rpeak": KNOWN})
    assert peak["value"] == pytest.approx(16 * 16 * 2.1e9)
    assert peak["unit"] == "flop/s" and "base clock" in peak["source"]
    whole = complete(changed("rpeak", to=KNOWN))
    assert whole["rpeak"]["value"] == peak["value"]
    assert (whole["nodes"], whole["interconnects"]) == (2, ["gige"])
    for part in KNOWN:
        for stated in (
            {**KNOWN, part: "unknown"},
            {key: KNOWN[key] for key in KNOWN if key != part},
        ):
            assert rpeak({"rpeak": stated}) is None
            assert "value" not in complete(changed("rpeak", to=stated))["rpeak"]
    sheet = {"value": 1e12, "unit": "flop/s", "source": "the vendor's sheet"}
    assert rpeak({"rpeak": {**KNOWN, **sheet}}) == sheet


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
