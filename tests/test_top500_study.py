"""Every reading of what the sources print of TOP500, on lists whose readings are known by hand, and its section."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from top500_lists import ROWS, text

from analysis import paths, published, style, wording
from analysis.facts import top500 as facts
from analysis.figures import top500 as figures
from analysis.publish import to_html, to_pdf
from analysis.studies import top500, top500_readings
from analysis.top500 import lists
from analysis.top500.lists import read_folder

FRONT = "---\ntitle: T\nsubtitle: S\nlang: en\ncampaign: C\ndate: D\n---\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All made-up lists as files."""
    folder = tmp_path_factory.mktemp("lists")
    for month in ROWS:
        (folder / f"TOP500_{month.replace('-', '')}.csv").write_text(text(month), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def study(folder):
    return top500.analyse(read_folder(folder))


def of(tmp_path, month, systems):
    """The study of one list of these systems."""
    (tmp_path / f"TOP500_{month}.csv").write_text(text(month, systems=systems), encoding="utf-8")
    return top500.analyse(read_folder(tmp_path))


def aggregate(study, name):
    (found,) = [it for it in study.aggregates if it.id == name]
    return found


def section(known):
    """The section's Markdown, hard spaces as spaces and without the escapes of data."""
    template = wording.templates().get_template("top500.md.j2")
    return template.render(top500=known).replace("\u00a0", " ").replace("\\", "")


def test_every_average_is_known_by_hand(study):
    """53.26, 40.34, 63.04 and 45.44 %, of systems of 100, 80, 50 and 40 Tflop/s: the printed average is one of six."""
    average = aggregate(study, "gige_average")
    assert average.agreeing == ("mean of the ratios",)
    weighted = 53.26 * 53.26 + 40.34 * 32.272 + 63.04 * 31.52 + 45.44 * 18.176
    by_cores = 53.26 * 5216 + 40.34 * 5096 + 63.04 * 5420 + 45.44 * 2000
    assert {name: pytest.approx(100 * value, abs=1e-9) for name, value in average.readings.items()} == {
        "mean of the ratios": 50.52,
        "ratio of the sums": 100 * 135.228 / 270,
        "median": 49.35,
        "geometric mean": (53.26 * 40.34 * 63.04 * 45.44) ** 0.25,
        "harmonic mean": 4 / (1 / 53.26 + 1 / 40.34 + 1 / 63.04 + 1 / 45.44),
        "mean weighted by Rmax": weighted / 135.228,
        "mean weighted by cores": by_cores / 17732,
    }


@pytest.mark.parametrize(
    ("name", "readings"),
    [
        ("gige_best_ranked", {"rank 78": 0.5326}),
        ("gige_best_rank", {"rank 78": 78}),
        ("gige_highest", {"rank 92": 0.6304}),
        ("gige_lowest", {"rank 91": 0.4034}),
        ("gige_lowest_cores", {"rank 91": 5096}),
        ("gige_share", {"share of systems": 7 / 13, "share of Rmax": 350 / 814, "share of Rpeak": 700 / 1264}),
    ],
)
def test_readings_are_the_lists(study, name, readings):
    """Best-ranked, highest, lowest and shares; in these lists a reading of each agrees with the print."""
    found = aggregate(study, name)
    assert found.readings == pytest.approx(readings) and found.agreeing == tuple(readings)[:1]


def test_consistently_has_six_readings(study):
    """Vendor A has a system at 75 % at another site; B one at exactly 80 %, which does not exceed it; C's is SDR."""
    found = aggregate(study, "ddr_above_threshold")
    assert found.readings == {
        "vendors": 0, "vendors with several systems": 0, "sites": 1, "sites with several systems": 1,
        "pairs of vendor and site": 1, "pairs of vendor and site with several systems": 1,
    }  # fmt: skip
    assert "sites" in found.agreeing and "vendors" not in found.agreeing
    rows = study.owners[["manufacturer", "site", "systems", "above"]].values.tolist()
    assert rows == [["A", "X", 2, 2], ["B", "Y", 2, 1], ["A", "Z", 1, 0]]


def test_verdicts_follow_the_lists(tmp_path):
    """One other rate, and the printed highest efficiency is none of the list's any more."""
    others = [row[:5] + (30000,) + row[6:] if row[0] == 92 else row for row in ROWS["2008-11"]]
    changed = of(tmp_path, "2008-11", others)
    assert aggregate(changed, "gige_highest").agreeing == () and aggregate(changed, "gige_average").agreeing == ()
    assert aggregate(changed, "gige_lowest").agreeing and not aggregate(changed, "gige_share").readings
    said = wording.finding("top500", facts.collect(changed)).replace("\u00a0", " ")
    assert "Of 6 numbers that the sources print of the TOP500, 4 are" in said
    assert "not: Gigabit Ethernet, average efficiency, Gigabit Ethernet, highest efficiency" in said
    assert "The list of November 2007 is not there" in said


def test_families_of_a_list(study):
    """The largest first, each with its share; Myrinet 10G is Myrinet, and so is counted."""
    (found,) = [it for it in study.lists if it.month == "2008-11"]
    counts = {it.family: it.systems for it in found.families}
    assert counts == {"gige": 4, "10gige": 1, "custom": 1, "infiniband": 1, "myrinet": 1}
    assert list(counts)[0] == "gige"
    gige = found.families[0]
    assert (gige.lowest, gige.highest) == pytest.approx((0.4034, 0.6304))
    assert gige.quartiles == pytest.approx((0.44165, 0.55705))


def test_later_lists_are_contradicted_by_their_own_names(study):
    """25G Ethernet under Gigabit Ethernet is counted as the list counts it, and told; so is more than the peak."""
    (found,) = [it for it in study.lists if it.month == "2019-06"]
    assert found.contradicted == (("gige", "faster_ethernet", 1),) and found.above_peak == 1
    shown = top500.analyse(study.dataset.isel(system=np.flatnonzero(study.dataset.list.values == "2019-06")))
    said = section(facts.collect(shown))
    assert "1 system that the list has under Gigabit Ethernet is faster Ethernet by name" in said
    assert "may run faster than the clock that the peak is computed from): 1 system" in said


def test_unknown_interconnects_are_named(tmp_path):
    """They are no Ethernet and not dropped: other, by the name that the list has."""
    known = facts.collect(of(tmp_path, "2008-11", [(1, "", "", "", 8, 1e6, 2e6, "", "Wormhole"), (2, "", "", "", 8, 5e5, 2e6, "", "10G")]))
    (shown,) = known["shown"]
    assert [(it["family"], it["systems"]) for it in shown["families"]] == [("other", 2)]
    assert "Interconnects of no known family: 10G (1), Wormhole (1)" in section(known)


def test_systems_without_an_efficiency_count_in_shares_only(tmp_path):
    """A system whose Rmax is not known is on its interconnect all the same."""
    listed = [(1, "", "", "", 8, 1e6, 2e6, "Myrinet", "Myrinet"), (2, "", "", "", 8, 123, 2e6, "Gigabit Ethernet", "")]
    content = text("2008-11", systems=listed).replace(",123,", ",N/A,")
    (tmp_path / "TOP500_200811.csv").write_text(content, encoding="utf-8")
    study = top500.analyse(read_folder(tmp_path))
    (gige,) = [it for it in study.lists[0].families if it.family == "gige"]
    assert gige.shares["share of systems"] == 0.5 and gige.usable == 0 and gige.averages == {}
    assert aggregate(study, "gige_average").readings == {} and aggregate(study, "gige_best_rank").readings == {"rank 2": 2}
    assert "nan" not in section(facts.collect(study))
    figures.draw(study)


@given(
    st.lists(st.tuples(st.floats(1e12, 1e15), st.floats(1e12, 1e15), st.integers(1, 10**6)), min_size=1, max_size=20),
    st.floats(0.001, 1000),
)
def test_averages_are_averages(systems, factor):
    """Each lies between the extremes; harmonic, geometric and arithmetic mean are in their order; a unit is nothing."""
    table = pd.DataFrame(systems, columns=["rmax", "rpeak", "cores"])
    table["efficiency"] = table.rmax / table.rpeak
    found = top500_readings.averages(table)
    ends = table.efficiency.min() * (1 - 1e-9), table.efficiency.max() * (1 + 1e-9)
    assert all(ends[0] <= value <= ends[1] for value in found.values())
    means = [found[name] for name in ("harmonic mean", "geometric mean", "mean of the ratios")]
    assert all(one <= other * (1 + 1e-9) for one, other in zip(means, means[1:]))
    scaled = top500_readings.averages(table.assign(rmax=factor * table.rmax, rpeak=factor * table.rpeak))
    assert scaled == pytest.approx(found)


@pytest.mark.parametrize(("value", "agrees"), [(0.50516, True), (0.50524, True), (0.505151, True), (0.50526, False), (0.5, False)])
def test_agreement_is_of_all_printed_digits(value, agrees):
    """50.52 % is 50.515 to 50.525 %."""
    assert bool(top500_readings.agreeing({"it": value}, 0.5052, 0.0001)) is agrees


def test_what_is_printed_has_its_place():
    """Each aggregate has a list, a family of the file, a unit, a source that is described, and where it stands."""
    printed = published.top500()
    for it in printed["aggregate"]:
        assert it["unit"] in top500.UNITS and (paths.PUBLISHED / f"{it['source']}.toml").is_file() and it["where"]
        assert it["family"] in top500.families().titles
    values = {it["id"]: it["value"] for it in printed["aggregate"]}
    assert values["gige_lowest"] < values["gige_average"] < values["gige_best_ranked"] < values["gige_highest"]
    best = [it["value"] for it in printed["best_rmax"]]
    assert best == sorted(best)


@pytest.mark.parametrize("there", ["all", "one", "none"])
def test_the_section_is_whole(there, study, tmp_path):
    """With all lists, one that no source speaks of, or none: text, tables, figures and references in both forms."""
    chosen = {"all": study.dataset.list.values != "", "one": study.dataset.list.values == "2012-11"}.get(there)
    dataset = lists.none(["TOP500_1.csv: its name"]) if there == "none" else study.dataset.isel(system=np.flatnonzero(chosen))
    found = top500.analyse(dataset)
    drawn, markdown = figures.draw(found), section(facts.collect(found))
    assert not any(word in markdown for word in ("nan", "None"))
    assert ("No list is there" in markdown) is (there == "none") and ("its name" in markdown) is (there == "none")
    assert ("53.26 %" in markdown) and ("list_share" in drawn) is (there == "all")
    style.save_all(drawn, tmp_path / "figures")
    page = to_html(FRONT + markdown, tmp_path)
    assert page.count("<img") == len(drawn) and page.count("<caption") == page.count("<table")
    assert to_pdf(FRONT + markdown, tmp_path, 0).startswith(b"%PDF-")


def test_every_system_is_a_point(study):
    """In the row of its family, in the panel of its list; what is printed are crosses."""
    panels = figures.draw(study)["list_efficiency"].axes
    assert [axes.get_title(loc="left")[:7] for axes in panels] == ["2007-11", "2008-11"]
    for axes, shown in zip(panels, study.shown):
        points = [line for line in axes.lines if line.get_alpha() is not None]
        assert sum(len(line.get_xdata()) for line in points) == shown.usable
        for row, (line, family) in enumerate(zip(points, shown.families)):
            assert np.all(np.abs(line.get_ydata() - row) < 0.5) and len(line.get_xdata()) == family.usable
            assert max(line.get_xdata()) == pytest.approx(100 * family.highest)
    crosses = [line.get_xdata()[0] for line in panels[1].lines if line.get_marker() == "x"]
    assert sorted(crosses) == pytest.approx([40.34, 50.52, 53.26, 63.04])


def test_shares_of_a_list_add_up(study):
    """Families without a line of their own are in one: nothing is lost."""
    lines = [line for line in figures.draw(study)["list_share"].axes[0].lines if len(line.get_xdata()) > 1]
    assert np.sum([line.get_ydata() for line in lines], axis=0) == pytest.approx([100] * len(ROWS))


def test_notebook_with_lists(folder, tmp_path):
    """The dataset and the figures are written; without lists it is run among all notebooks."""
    import papermill  # takes seconds, which the other process that collects this file does without

    parameters = {"out": str(tmp_path), "lists": str(folder)}
    notebook = paths.ROOT / "notebooks" / "70_top500.ipynb"
    done = papermill.execute_notebook(notebook, tmp_path / "done.ipynb", parameters, progress_bar=False, cwd=paths.ROOT)
    outputs = [str(output.get("data", {})) for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("8 are its lists" in shown for shown in outputs)
    assert sum("image/svg+xml" in shown for shown in outputs) == len(list((tmp_path / "figures").glob("*.svg"))) == 2
    assert xr.open_dataset(tmp_path / "top500.nc", engine="netcdf4").sizes["system"] == sum(map(len, ROWS.values()))


def test_owners_are_those_with_a_system_above(study, tmp_path):
    """Those without one are only counted; where nobody has one, a sentence says so."""
    known = facts.collect(study)
    assert [it["site"] for it in known["owners"]] == ["X", "Y"] and known["owners_in_all"] == 3
    assert "DDR InfiniBand: 2 of 3 pairs" in section(known)
    slow = [(rank, *row[1:5], 1000, *row[6:]) for rank, row in enumerate(ROWS["2007-11"][:5], 2)]
    none_above = section(facts.collect(of(tmp_path, "2007-11", [*ROWS["2007-11"][5:6], *slow])))
    assert "None of 3 pairs of vendor and site has a system on DDR InfiniBand above 80 %" in none_above
