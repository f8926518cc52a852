"""Every reading of what the sources print of TOP500, on lists whose readings are known by hand, and what is shown of it."""

import re

import pytest
from top500_lists import ROWS, text

from analysis import document, paths
from analysis.experiments import top500
from analysis.top500_lists import read_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All made-up lists as files."""
    folder = tmp_path_factory.mktemp("lists")
    for month in ROWS:
        name = f"TOP500_{month.replace('-', '')}.csv"
        (folder / name).write_text(text(month), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def study(folder):
    return top500.analyse(read_folder(folder))


def of(tmp_path, month, content):
    """The study of one list."""
    (tmp_path / f"TOP500_{month}.csv").write_text(content, encoding="utf-8")
    return top500.analyse(read_folder(tmp_path))


def aggregate(study, name):
    return next(one for one in study.aggregates if one.id == name)


def words(study):
    """The finding and the table, hard spaces as spaces."""
    said = f"{top500.finding(study)}\n{top500.printed_table(study).markdown}".replace("\u00a0", " ")
    assert not re.search(r"\b(nan|None)\b", said)
    return said


def test_every_average_is_known_by_hand(study):
    """53.26, 40.34, 63.04 and 45.44 %, of systems of 100, 80, 50 and 40 Tflop/s: the printed average is one of seven."""
    average = aggregate(study, "gige_average")
    assert average.agreeing == ("mean of the ratios",)
    weighted = 53.26 * 53.26 + 40.34 * 32.272 + 63.04 * 31.52 + 45.44 * 18.176
    by_cores = 53.26 * 5216 + 40.34 * 5096 + 63.04 * 5420 + 45.44 * 2000
    percent = {name: 100 * value for name, value in average.readings.items()}
    assert percent == pytest.approx(
        {
            "mean of the ratios": 50.52,
            "ratio of the sums": 100 * 135.228 / 270,
            "median": 49.35,
            "geometric mean": (53.26 * 40.34 * 63.04 * 45.44) ** 0.25,
            "harmonic mean": 4 / (1 / 53.26 + 1 / 40.34 + 1 / 63.04 + 1 / 45.44),
            "mean weighted by Rmax": weighted / 135.228,
            "mean weighted by cores": by_cores / 17732,
        }
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gige_best_ranked", {"rank 78": 0.5326}),
        ("gige_best_rank", {"rank 78": 78}),
        ("gige_highest", {"rank 92": 0.6304}),
        ("gige_lowest", {"rank 91": 0.4034}),
        ("gige_lowest_cores", {"rank 91": 5096}),
        (
            "gige_share",
            {"share of systems": 7 / 13, "share of Rmax": 350 / 814, "share of Rpeak": 700 / 1264},
        ),
    ],
)
def test_readings_are_the_lists(study, name, expected):
    """Best-ranked, highest, lowest and shares; in these lists a reading of each agrees with the print."""
    found = aggregate(study, name)
    assert found.readings == pytest.approx(expected)
    assert found.agreeing == tuple(expected)[:1]


def test_consistently_has_six_readings(study):
    """Vendor A has a system at 75 % at another site; B one at exactly 80 %, which does not exceed it; C's is SDR."""
    found = aggregate(study, "ddr_above_threshold")
    assert found.readings == {
        "vendors": 0,
        "vendors with several systems": 0,
        "sites": 1,
        "sites with several systems": 1,
        "pairs of vendor and site": 1,
        "pairs of vendor and site with several systems": 1,
    }
    assert "sites" in found.agreeing and "vendors" not in found.agreeing


def test_words_follow_the_lists(tmp_path, study):
    """One other rate, and the printed highest efficiency is none of the list's any more."""
    assert "give 8 of 8 numbers" in words(study)
    assert "average is the mean of the ratios" in words(study)
    others = [row[:5] + (30000,) + row[6:] if row[0] == 92 else row for row in ROWS["2008-11"]]
    changed = of(tmp_path, "2008-11", text("2008-11", systems=others))
    agrees = {one.id: bool(one.agreeing) for one in changed.aggregates if one.readings}
    assert len(agrees) == 6
    assert {name for name in agrees if not agrees[name]} == {"gige_average", "gige_highest"}
    assert "They do not give: average efficiency (Gigabit Ethernet); highest" in words(changed)
    assert "the list of November 2007 is not in `data/top500`" in words(changed)


def test_families_of_a_list(study):
    """The largest first, each with its share and efficiencies; Myrinet 10G is Myrinet, and so is counted."""
    rows = [row for row in top500.families_table(study).rows if row[0] == "November 2008"]
    assert [row[2] for row in rows] == ["4", "1", "1", "1", "1"]
    first = [cell.replace("\u00a0", " ") for cell in rows[0][1:]]
    assert first == ["Gigabit Ethernet", "4", "50.0 %", "49.4 %", "40.3 to 63.0 %"]
    assert {row[1] for row in rows} >= {"10 Gigabit Ethernet", "Myrinet", "InfiniBand"}


def test_systems_without_an_efficiency_count_in_shares_only(tmp_path):
    """A system whose Rmax is not known is on its interconnect all the same."""
    systems = [
        (1, "", "", "", 8, 1e6, 2e6, "Myrinet", "Myrinet"),
        (2, "", "", "", 8, 123, 2e6, "Gigabit Ethernet", ""),
    ]
    content = text("2008-11", systems=systems).replace(",123,", ",N/A,")
    study = of(tmp_path, "2008-11", content)
    (row,) = [row for row in top500.families_table(study).rows if "Gigabit" in row[1]]
    assert row[3] == "50.0\u00a0%" and row[4] == row[5] == "—"
    assert aggregate(study, "gige_average").readings == {}
    assert aggregate(study, "gige_best_rank").readings == {"rank 2": 2}
    assert "no usable" in words(study)


@pytest.mark.parametrize(
    ("value", "agrees"), [(0.50516, True), (0.50524, True), (0.50526, False), (0.5, False)]
)
def test_agreement_is_of_all_printed_digits(value, agrees):
    """50.52 % is 50.515 to 50.525 %."""
    assert bool(top500.agreeing({"reading": value}, 0.5052, 0.0001)) is agrees


def test_without_the_lists_nothing_is_checked(tmp_path):
    """Without any, or with one that no source speaks of, what is printed is told, and nothing else."""
    none = top500.analyse(read_folder(tmp_path))
    other = of(tmp_path, "2012-11", text("2012-11"))
    for study in (none, other):
        assert "cannot be checked here" in words(study) and "53.26" in words(study)
    assert top500.families_table(none) is None and len(top500.families_table(other).rows) == 3


def test_notebook_with_lists(folder, tmp_path):
    """The reader's own lists are read, and the supplement has their families."""
    import papermill  # takes seconds, which the other process that collects this file does without

    parameters = {"out": str(tmp_path), "lists": str(folder)}
    notebook, done = paths.ROOT / "notebooks" / "70_top500.ipynb", tmp_path / "done.ipynb"
    papermill.execute_notebook(notebook, done, parameters, progress_bar=False, cwd=paths.ROOT)
    whole = document.read(done, whole=True).markdown.replace("\u00a0", " ")
    assert "give 8 of 8" in whole and "tbl:list-families" in whole
