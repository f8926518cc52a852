"""What a section says is said of the evidence that it shows: no word of another kind, and no
Markdown that stays unrendered.
"""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import recorded
from executed import words

from analysis import experiment, paths, planning
from analysis.dataset import store
from analysis.dataset.accessor import UNLIMITED
from analysis.descriptions import testbeds
from analysis.imports import dataset_sections, importing
from analysis.quoting import as_markdown, quoted
from analysis.report import execution, import_report
from analysis.statements import notebooks
from analysis.watch import samples
from runners.records.record import FalloffError

# Words that only evidence of a kind may use. What is published is no evidence of ours.
OF_KIND = {
    "emulated": (
        r"emulat|namespace|slow motion|slowed|dilat|\bpaced|\bplant|shaper|this "
        r"machine|one machine|scale model|host-bound|unlimited"
    ),
    "simulated": r"simulat|SimGrid|fluid",
    "measured": r"your cluster",
}
# A testbed of each kind, and what a user's cluster does not have.
TESTBEDS = {"measured": "example_ssh", "simulated": "smith", "emulated": "fortinet_model"}
NO_SUPPLEMENT = r"supplement"


@cache
def reference(campaign):
    return experiment.stored(campaign)


def of_kind(dataset, kind):
    """A reference as if it had come about on a testbed of this kind, where all trials gave a
    result.
    """
    if dataset.evidence.values[0] == kind:
        return dataset
    here = testbeds.read(TESTBEDS[kind]).plain()
    failed, free = dataset.status != "ok", dataset.interconnect == UNLIMITED
    keep = np.flatnonzero(~(failed | free if (~free).any() else failed))
    design = json.loads(dataset.attrs["design"])
    networks = design["factors"].get("interconnect", [])
    design["factors"]["interconnect"] = [one for one in networks if one != UNLIMITED] or networks
    if design.get("control") == UNLIMITED:
        design["control"] = None
    if (
        isinstance(design.get("primary"), list)
        and design["primary"]
        and isinstance(design["primary"][0], dict)
    ):
        design["primary"] = [one for one in design["primary"] if UNLIMITED not in one["networks"]]
    about = {"testbed_settings": json.dumps(here), "design": json.dumps(design)}
    dataset = dataset.isel(trial=keep)
    evidence = dataset.evidence.copy(data=[kind] * dataset.sizes["trial"])
    attrs = {name: value for name, value in dataset.attrs.items() if name != "caveat"}
    return dataset.assign_coords(evidence=evidence).assign_attrs(attrs | about)


@cache
def reference_of_kind(campaign, kind):
    """A campaign's reference as one of this kind."""
    return of_kind(reference(campaign), kind)


def text_of(file, made):
    """All that a reader of a section reads, hard spaces as spaces."""
    cells = json.loads(file.read_text())["cells"]
    fixed = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join([*fixed, words(made)])


def foreign_words(text, *kinds):
    """The words of all other kinds of evidence, with what stands around them."""
    patterns = [pattern for kind, pattern in OF_KIND.items() if kind not in kinds]
    found = re.finditer("|".join(patterns), text, re.I)
    return [text[max(match.start() - 60, 0) : match.end() + 40] for match in found]


def glued_lists(text):
    """Items that a line of text precedes: Markdown takes them for words of that line."""
    return re.findall(r"^(?!- |\d+\. |\s|$).+\n- .*$", text, re.M)


def sections():
    """Each notebook with the kinds of evidence that it may show: of a campaign that runs on a
    testbed of that kind.
    """
    for file in notebooks.of_experiments():
        campaign = notebooks.campaign_of(file)
        for kind, testbed in TESTBEDS.items() if campaign else ():
            if notebooks.role(file.stem).evidence not in ("", kind):
                continue
            try:
                planning.plan_campaign(campaign, testbed, "full")
            except FalloffError:
                continue
            yield pytest.param(file, campaign, kind, id=f"{file.stem}-{kind}")


@pytest.mark.parametrize(("file", "campaign", "kind"), [*sections()])
def test_a_section_has_no_word_of_another_kind(file, campaign, kind):
    """Of a campaign that nothing lies beside, as a user has it. What needs several campaigns is of
    several kinds.
    """
    try:
        made = notebooks.run(file, {campaign: reference_of_kind(campaign, kind)})
    except (*notebooks.INSUFFICIENT, ZeroDivisionError) as lacks:
        pytest.skip(f"{lacks}")
    text = text_of(file, made)
    # A reference's own network, in whatever kind it was run.
    if UNLIMITED in set(reference_of_kind(campaign, kind).interconnect.values):
        text = text.replace("unlimited links", "")
    # What HPL reaches without messages is simulated, in whatever kind it was run.
    design = reference_of_kind(campaign, kind).falloff.design
    assert not foreign_words(text, kind, *["simulated"] * bool(design.without_messages))
    assert not glued_lists(text)
    if kind != "emulated":
        assert not re.search(NO_SUPPLEMENT, text)


# What `falloff import` reads: a tool, a real output, and the notebooks that show it.
IMPORTS = [
    ("osu", "5.6.3-collectives", ["13_collectives"]),
    ("osu", "5.4.3-latency", ["12_ping_pong"]),
    ("nccl_tests", "8-gpus", ["13_collectives"]),
    ("reframe", "4.3.2-sombrero", ["13_collectives"]),
    ("iperf3", "3.12-forward", ["52_parallel_streams"]),
    (
        "hpcc",
        "1.5.0-two-processes",
        ["40_hpl_scaling", "52_parallel_streams", "13_collectives"],
    ),
    ("iperf3", "3.12-refused", []),
]


@pytest.mark.parametrize(("tool", "name", "shown"), IMPORTS, ids=lambda one: str(one)[:30])
def test_an_import_promises_a_report_exactly_where_a_section_shows_it(tool, name, shown, tmp_path):
    """What a section says of imported files has no word of emulation or simulation."""
    output = tmp_path / "output.txt"
    output.write_text(recorded.text(f"{tool}/{name}"))
    said = import_report.save(importing.read(tool, [output], {}), tmp_path / "mine")
    (folder,) = [file.parent for file in (tmp_path / "mine").rglob("trials.json")]
    wanted = execution.planned_sections({folder: store.read(folder)})
    assert [section.notebook for section in wanted] == shown
    assert ("makes a report of it" in said) is bool(shown)
    for notebook in shown:
        file = paths.NOTEBOOKS / f"{notebook}.ipynb"
        text = text_of(file, notebooks.run(file, {tool: store.read(folder)}, campaign=tool))
        assert not foreign_words(text, "measured") and not glued_lists(text)


def test_every_reading_that_is_compared_has_a_section_or_an_experiment():
    """A tool's main reading is never imported without being shown."""
    shown = {reading for readings in dataset_sections.NOTEBOOKS.values() for reading in readings}
    # Runs of campaigns, which their notebooks show.
    own = {
        "aggregate_goodput",
        "packets_received_per_s",
        "token_throughput",
        "flow_makespan",
        "computing_mean",
    }
    assert {*samples.HIGHER, *samples.LOWER} - shown - own == {
        "half_round_trip_p50"
    }  # with half_round_trip


def test_operations_on_more_nodes_and_other_tests_are_never_pooled(tmp_path):
    """OSU's allreduce on 2 and 8 nodes, three times slower there, beside another operation: the
    planted loss of speed.
    """
    random, rows = np.random.default_rng(1), []
    for test, factor in (("Allreduce", 1.0), ("Allgather", 5.0)):
        for nodes, times in ((2, 1.0), (8, 3.0)):
            for run in range(3):
                name = f"{test}-{nodes}-{run}.txt"
                head = f"# OSU MPI {test} Latency Test v5.9\n# Size       Avg Latency(us)\n"
                sizes = ((4, 10.0), (8, 11.0), (16, 12.0))
                noise = np.exp(random.normal(0, 0.01))
                (tmp_path / name).write_text(
                    head
                    + "".join(f"{size} {us * factor * times * noise:.4f}\n" for size, us in sizes)
                )
                rows.append((name, {"nodes": nodes, "interconnect": "gige"}))
    found = importing.read("osu", sorted(tmp_path.glob("*.txt")), {}, rows)
    folder = importing.keep(found, tmp_path / "mine")
    file = paths.NOTEBOOKS / f"{dataset_sections.COLLECTIVES}.ipynb"
    made = notebooks.run(file, {"osu": store.read(folder)}, campaign="osu")
    falls = {one.subject: one for one in made.statements if one.quantity == "fall"}
    assert len(falls) == 4 and {one.n for one in made.statements} == {3}
    for one in falls.values():
        assert one.words == "falls off" and one.interval[0] < 2 / 3 < one.interval[1]
    for test, least in (("allgather", 150), ("allreduce", 30)):
        (level,) = (
            one for one in made.statements if one.quantity == "time" and test in one.subject
        )
        assert 0.9 < level.estimate / (1.2 * least) < 1.1


def test_a_campaign_of_another_kind_is_shown_as_ones_own_data():
    """The paper's cases on a cluster: no section on simulations and planted changes, but HPL over
    nodes.
    """
    for campaign, kind, shown in (
        ("hpl_paper_emulated", "measured", ["40_hpl_scaling"]),
        ("program", "measured", ["13_collectives"]),
        ("program", "emulated", ["59_program"]),
    ):
        wanted = execution.planned_sections({Path(campaign): of_kind(reference(campaign), kind)})
        assert [section.notebook for section in wanted] == shown


def test_harmless_letters_need_no_backslash():
    """A system's name and a kernel's are quoted as they are; what Markdown obeys stays escaped."""
    names = ("GNU/Linux 12 (bookworm)", "5.14.0-427.el9.x86", "(2:1), 50 %")
    assert [as_markdown(quoted(one)) for one in names[:2]] == [*names[:2]]
    assert (
        as_markdown(quoted("[a](b) *c* <d> www.e-f.org 1. g"))
        == r"\[a\](b) \*c\* \<d\> www\.e-f\.org 1\. g"
    )
