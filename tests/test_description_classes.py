"""What the files of data/ say, as classes: all that ship are read, slips are named, files extend
each other, schemas fit.
"""

import ast
import json
import subprocess
import sys
import tomllib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import paths, planning
from analysis.commands import schemas
from analysis.dataset import schema
from analysis.descriptions import campaigns, ledger, networks, switch_designs, testbeds, toml_tables
from analysis.descriptions.resolution import resolve
from runners.records.record import FalloffError

CAMPAIGNS = sorted(file.stem for file in paths.CAMPAIGNS.glob("*.toml"))
TESTBEDS = sorted(file.stem for file in paths.TESTBEDS.glob("*.toml"))
HPL = campaigns.read("hpl_size").plain()


def same(one, other):
    """Whether two values are the same in JSON, whole numbers and others told apart, whatever the
    order of keys.
    """
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_campaign_is_what_its_file_says(name):
    """Nothing is lost, added or turned into another kind of number on the way through the class."""
    file = toml_tables.extended(paths.CAMPAIGNS, name, "campaign", campaigns.joined)
    found = campaigns.read(name)
    assert found.name == name and same(found.plain(), file)


@pytest.mark.parametrize("name", TESTBEDS)
def test_a_testbed_is_what_its_file_says(name):
    """All of it travels in a plan, and decides which campaign it is."""
    file = toml_tables.extended(paths.TESTBEDS, name, "testbed", lambda base, own: {**base, **own})
    found = testbeds.checked(file, name)
    assert found.name == name and same(found.plain(), file)


def test_all_other_files_are_without_fault():
    """Interconnects, paths, designs, claims, the dataset's schema."""
    assert networks.interconnects()["gige"].rate_bit_s == 1e9
    assert networks.network_paths()["switch"].switches == {"core": 9000}
    assert switch_designs.read(paths.DESIGNS / "nemo.toml").cluster.nodes.value == 480
    assert ledger.load().claims and schema.read(paths.SCHEMA)


def planned(**changes):
    """The campaign on HPL's size, with some of its tables changed, resolved for its testbed."""
    campaign, testbed = campaigns.checked({**HPL, **changes}), testbeds.read("scale_model")
    return resolve(campaign, testbed, networks.between(testbed.networks))


def within(table, **changes):
    """A table of that campaign with other keys."""
    return {table: {**HPL[table], **changes}}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (within("factors", colour=["red"]), ["setting colour"]),
        (within("factors", ranks_per_nod=[1]), ["ranks_per_nod;", "ranks_per_node?"]),
        (within("settings", duration_s=5), ["setting duration_s"]),
        (within("settings", timout_s=5), ["timout_s;", "timeout_s?"]),
        (within("settings", NB="24"), ["NB = '24'"]),
        (within("design", margn=0.1), ["design.margn", "margin?"]),
        (within("design", margin="small"), ["design.margin = 'small'"]),
        (within("stopping", bloks=3), ["stopping.bloks", "blocks?"]),
        ({"presets": {"full": {"bloks": 3}}}, ["presets.full.bloks", "blocks?"]),
        (
            {"presets": {"full": {"design": {"contol": "x"}}}},
            ["presets.full.design.contol", "control?"],
        ),
        (
            {"presets": {"full": {"factors": {"nodes": ["two"]}}}},
            ["presets.full.factors.nodes = ['two']"],
        ),
        ({"presets": {"full": {"looks": [2, 9]}}}, ["presets.full.stopping.looks", "4 blocks"]),
        ({"setings": {}}, ["setings", "settings?"]),
        ({"survey": [{"runner": "ping", "links": [[1, 2, 3]]}]}, ["survey[1].links"]),
    ],
)
def test_a_slip_in_a_campaign_is_named(changes, parts):
    """Its place, and what was probably meant; a slip in one preset is found whichever is run."""
    with pytest.raises(FalloffError) as refusal:
        planned(**changes)
    assert all(part in str(refusal.value) for part in parts), refusal.value


@pytest.mark.parametrize(
    ("name", "keys", "value", "parts"),
    [
        ("scale_model", ["nods"], 3, ["nods", "nodes?"]),
        ("scale_model", ["node", "flops"], 1e9, ["node.flops", "flop_s?"]),
        (
            "scale_model",
            ["networks", "gige", "rate_bits"],
            1e9,
            ["networks.gige.rate_bits", "rate_bit_s?"],
        ),
        ("scale_model", ["nodes"], 10**30, ["nodes = 1000000000000000000000000000000", "65536"]),
        ("example_ssh", ["ranks_per_node"], 10**30, ["ranks_per_node = 1", "65536"]),
        ("scale_model", ["tcp", "rmem"], [1, 2], ["tcp.rmem = [1, 2]"]),
        ("fortinet_model", ["node", "dilation"], "slow", ["node.dilation = 'slow'"]),
        ("smith", ["rates", "strided"], 1, ["rates.strided", "strided_s?"]),
        ("smith", ["network", "gige", "latency", "unit"], 3, ["network.gige.latency.unit = 3"]),
        ("smith", ["kind"], "simulatd", ["kind = simulatd", "simulated?"]),
    ],
)
def test_a_slip_in_a_testbed_is_named(name, keys, value, parts):
    """On every kind of testbed."""
    table = json.loads(json.dumps(testbeds.read(name).plain()))
    *within, last = keys
    inner = table
    for key in within:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(FalloffError, match=f"testbed {name}") as refusal:
        testbeds.checked(table)
    assert all(part in str(refusal.value) for part in parts), refusal.value


@pytest.mark.parametrize(
    ("section", "row", "parts"),
    [
        (
            "attributes",
            '{ dims = ["trial"], type = "text", long_name = "mine" }',
            ["attributes.mine"],
        ),
        (
            "variables",
            '{ dims = ["trail"], type = "text", long_name = "mine" }',
            ["variables.mine.dims"],
        ),
        (
            "variables",
            '{ dims = ["trial"], type = "number", unit = "s", long_name = "mine" }',
            ["mine.unit", "units?"],
        ),
        (
            "coordinates",
            '{ dims = ["trial"], type = "number", long_name = "mine" }',
            ["coordinates.mine: needs units"],
        ),
    ],
)
def test_a_misplaced_row_of_the_datasets_schema_is_named(tmp_path, section, row, parts):
    """Rather than make every dataset unreadable."""
    text = paths.SCHEMA.read_text(encoding="utf-8")
    file = tmp_path / "schema.toml"
    file.write_text(text.replace(f"[{section}]", f"[{section}]\nmine = {row}"), encoding="utf-8")
    with pytest.raises(FalloffError, match="schema.toml") as refusal:
        schema.read(file)
    assert all(part in str(refusal.value) for part in parts), refusal.value


def test_a_campaign_extends_another(tmp_path, monkeypatch):
    """Factors, settings and design key by key, all else as its own file says; over several steps,
    and never in a circle.
    """
    monkeypatch.setattr(paths, "CAMPAIGNS", tmp_path)
    base = paths.ROOT / "data" / "campaigns" / "common" / "hpl.toml"
    (tmp_path / "base.toml").write_text(base.read_text() + "\n[design]\nmargin = 0.1\n")
    (tmp_path / "a.toml").write_text(
        'extends = "base"\nname = "a"\ntitle = "A"\nrunner = "hpl"\nseed = 1\n'
        "[factors]\nnodes = [2]\n[settings]\nNB = 24\nDEPTH = 1\n"
        "[stopping]\nblocks = 3\nlooks = [2]\n"
    )
    (tmp_path / "b.toml").write_text(
        'extends = "a"\nname = "b"\n[factors]\nN = [64]\n[design]\ncontrol = 2\n'
        "[stopping]\nblocks = 1\n"
    )
    found, deck = campaigns.read("b"), tomllib.loads(base.read_text())["settings"]
    assert found.settings == {**deck, "NB": 24, "DEPTH": 1} and deck["DEPTH"] == 0
    assert (found.factors, found.title) == ({"nodes": [2], "N": [64]}, "A")
    assert (found.design.margin, found.design.control) == (0.1, 2)
    assert found.stopping.plain() == {"blocks": 1}
    (tmp_path / "base.toml").write_text('extends = "b"\n')
    with pytest.raises(FalloffError, match="b extends a extends base extends b"):
        campaigns.read("b")
    with pytest.raises(FalloffError, match="no campaign 'bass' .did you mean 'base'"):
        (tmp_path / "c.toml").write_text('extends = "bass"\n')
        campaigns.read("c")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The schemas as they are written, by name."""
    files = schemas.write(tmp_path_factory.mktemp("schemas"))
    return {file.stem: json.loads(file.read_text()) for file in files}


def test_editors_accept_what_ships_and_underline_slips(written):
    """Each file that .taplo.toml names follows its schema; a misspelt key, a wrong type and a
    missing part do not.
    """
    rules = tomllib.loads((paths.ROOT / ".taplo.toml").read_text())["rule"]
    asked = {rule["schema"]["path"]: rule["include"] for rule in rules}
    assert asked == {
        f"build/schemas/{name}.json": [of] for name, (of, _) in schemas.SCHEMAS.items()
    }
    for name, (pattern, _) in schemas.SCHEMAS.items():
        check = jsonschema.Draft7Validator(written[name])
        check.check_schema(written[name])
        files = sorted(paths.ROOT.glob(pattern))
        assert files
        for file in files:
            assert not list(check.iter_errors(tomllib.loads(file.read_text()))), file
    check = jsonschema.Draft7Validator(written["campaign"])
    for changes in (
        {"sed": 1},
        within("design", margn=1),
        within("stopping", blocks="4"),
        {"seed": 1.5},
    ):
        assert list(check.iter_errors({**HPL, **changes})), changes
    assert list(check.iter_errors({"name": "mine"}))
    about = written["campaign"]["properties"]
    assert about["seed"]["description"] and "NB" in about["settings"]["properties"]


JSON = st.recursive(
    st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(HPL)), JSON)
def test_whatever_a_campaign_says_is_answered_in_words(key, value):
    """Each value of each key is taken as it is, or refused with its place."""
    found = toml_tables.faults(campaigns.Campaign, {**HPL, key: value})
    assert all(key in fault for fault in found)
    if not found:
        assert same(campaigns.checked({**HPL, key: value}).plain(), {**HPL, key: value})


def test_each_kind_of_testbed_can_be_opened():
    """A class describes it, a module opens it."""
    modules = (paths.ROOT / "runners" / "testbeds").glob("*.py")
    opening = {file.stem for file in modules if "\ndef open_testbed(" in file.read_text()}
    assert opening == set(testbeds.KINDS)


def test_what_travels_reads_no_descriptions():
    """A session and a job import no part of the analysis, no TOML reader and no library from
    outside.
    """
    engine = "runners.engine.session, runners.engine.job, runners.engine.slurm"
    names = f"{engine}, runners.records.plan, runners.testbeds.emulated"
    code = f"import sys, {names}; print(sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True
    )
    loaded = {name.split(".")[0] for name in ast.literal_eval(ran.stdout)}
    assert "runners" in loaded and not loaded & {"analysis", "pydantic", "tomllib", "experiment"}


def test_the_plan_of_a_reference_is_planned_again():
    """From its description of today, to the last trial: what is stored continues."""
    plan = planning.plan_campaign("hpl_noise", preset="full")
    stored = json.loads((paths.REFERENCE / "hpl_noise-scale_model/trials.json").read_text())
    assert plan.digest == stored["digest"]
