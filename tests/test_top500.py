"""TOP500's lists: all forms and years' layouts give the same systems, what cannot be used is told, and every reading of
what the sources print is that of lists whose readings are known by hand."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from top500_lists import FIELDS, HEADINGS, ROWS, aligned, text

from analysis import paths, top500_lists, top500_numbers
from analysis.quoting import as_written, quoted
from analysis.top500_lists import MIXED, NOT_STATED, OTHER, family, generation, read_folder
from runners.record import FalloffError

WORKBOOKS = Path(__file__).parent / "top500"
COLUMN = {"family": "listed_family"}  # what a field of `top500_lists` is called here


def read(folder, name, content):
    """The lists of one file with this name and content."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_folder(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All made-up lists as files."""
    folder = tmp_path_factory.mktemp("lists")
    for month in ROWS:
        name = f"TOP500_{month.replace('-', '')}.csv"
        (folder / name).write_text(text(month), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def lists(folder):
    return read_folder(folder)


# 53.26, 40.34, 63.04 and 45.44 %, of systems of 100, 80, 50 and 40 Tflop/s: the printed average is one of five.
AVERAGES = {
    "mean of the ratios": 0.5052,
    "ratio of the sums": 135.228 / 270,
    "median": 0.4935,
    "geometric mean": (0.5326 * 0.4034 * 0.6304 * 0.4544) ** 0.25,
    "harmonic mean": 4 / (1 / 0.5326 + 1 / 0.4034 + 1 / 0.6304 + 1 / 0.4544),
}
SHARES = {"share of systems": 7 / 13, "share of Rmax": 350 / 814, "share of Rpeak": 700 / 1264}
# Vendor A has a system at 75 % at another site; B one at exactly 80 %, which does not exceed it; C's is SDR.
OWNERS = {
    "sites": 1,
    "sites with several systems": 1,
    "pairs of vendor and site": 1,
    "pairs of vendor and site with several systems": 1,
    "vendors": 0,
    "vendors with several systems": 0,
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gige_average", AVERAGES),
        ("gige_best_ranked", {"rank 78": 0.5326}),
        ("gige_best_rank", {"rank 78": 78}),
        ("gige_highest", {"rank 92": 0.6304}),
        ("gige_lowest", {"rank 91": 0.4034}),
        ("gige_lowest_cores", {"rank 91": 5096}),
        ("gige_share", SHARES),
        ("ddr_above_threshold", OWNERS),
    ],
)
def test_every_reading_is_known_by_hand(lists, name, expected):
    """The first of each is the printed number."""
    found = next(one for one in top500_numbers.aggregates(lists.systems) if one.about["id"] == name)
    assert found.readings == pytest.approx(expected)
    assert next(iter(expected)) in found.agreeing and "vendors" not in found.agreeing


def words(lists):
    """What is said and the table, hard spaces as spaces."""
    printed = top500_numbers.aggregates(lists.systems)
    told = top500_numbers.agreement_in_words(lists.systems, printed), quoted(" ".join(lists.notes))
    said = "\n".join([*told, top500_numbers.printed_table(printed).markdown]).replace("\u00a0", " ")
    assert not re.search(r"\b(nan|None)\b", said)
    return as_written(said)


def shown(lists):
    """The systems of the lists that the sources mention."""
    return top500_numbers.spoken_of(lists.systems, top500_numbers.aggregates(lists.systems))


def test_words_and_families_follow_the_lists(tmp_path, lists):
    """One other rate, and the printed highest efficiency is none of the list's any more."""
    assert "give 8 of 8 numbers" in words(lists)
    table = top500_numbers.families_table(shown(lists))
    rows = [row for row in table.rows if row[0] == "November 2008"]
    first = [cell.replace("\u00a0", " ") for cell in rows[0][1:]]
    assert first == ["Gigabit Ethernet", "4", "50.0 %", "49.4 %", "40.3 to 63.0 %"]
    assert {row[1] for row in rows} >= {"10 Gigabit Ethernet", "Myrinet", "InfiniBand"}
    others = [row[:5] + (30000,) + row[6:] if row[0] == 92 else row for row in ROWS["2008-11"]]
    changed = read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=others))
    printed = top500_numbers.aggregates(changed.systems)
    agrees = {one.about["id"]: bool(one.agreeing) for one in printed if one.readings}
    assert len(agrees) == 6
    assert {name for name in agrees if not agrees[name]} == {"gige_average", "gige_highest"}
    assert "They do not give: average efficiency (Gigabit Ethernet); highest" in words(changed)
    assert "the list of November 2007 is not in `data/top500`" in words(changed)


def test_without_the_lists_nothing_is_checked(tmp_path):
    """Without any, or with one that no source speaks of, what is printed is told, and nothing else."""
    none = read_folder(tmp_path)
    other = read(tmp_path, "TOP500_201906.csv", text("2019-06"))
    for lists in (none, other):
        assert "cannot be checked here" in words(lists) and "53.26" in words(lists)
    assert top500_numbers.families_table(shown(none)) is None
    assert len(top500_numbers.families_table(shown(other)).rows) == 3


def test_each_familys_law_comes_back(tmp_path):
    """Planted: an efficiency that falls by Amdahl's law, and one that does not; too few systems have no law."""
    chance, shares = np.random.default_rng(5), []
    cores = np.geomspace(500, 50_000, 30).round()
    for place, (gige, fast) in enumerate(zip(cores, cores[::-1]), 1):
        falling = 0.7 / (1 + 2e-5 * (gige - 1)) * (1 + 0.005 * chance.standard_normal())
        flat = 0.8 * (1 + 0.005 * chance.standard_normal())
        for share, size, network in (
            (falling, gige, "Gigabit Ethernet"),
            (flat, fast, "Infiniband"),
        ):
            system = (
                2 * place,
                f"S{place}",
                "V",
                "C",
                int(size),
                1e5 * share,
                1e5,
                network,
                network,
            )
            shares.append(system)
    few = ROWS["2008-11"][2]
    made = read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=[*shares, few]))
    table = top500_numbers.laws_table(shown(made))
    assert {row[3] for row in table.rows} == {"Amdahl's law", "constant"} and len(table.rows) == 2
    (slow,) = (row for row in table.rows if row[3] == "Amdahl's law")
    assert "Gigabit Ethernet" in slow[1] and slow[2] == "30" and float(slow[4]) > 0.5
    first, last = (float(share) for share in re.findall(r"([\d.]+).%", slow[5]))
    assert first == pytest.approx(69.3, abs=1) and last == pytest.approx(35.0, abs=1)


def test_unusable_rates_leave_no_efficiency(tmp_path):
    """N/A, nothing, 0, words and decimal commas are no rates, and no 0 either; the system counts in shares."""
    cells = ['"1,000,000"', "N/A", "", "0", "fast", '"12,5"', "inf"]
    listed = [(1 + n, "", "", "", 8, 1, 2e6, "Myrinet", "") for n in range(len(cells))]
    heading, *lines = text("2008-11", systems=listed).splitlines()
    lines = [line.replace(",1,2000000,", f",{cell},2000000,") for line, cell in zip(lines, cells)]
    lists = read(tmp_path, "TOP500_200811.csv", "\n".join([heading, *lines]))
    assert lists.systems.efficiency[0] == 0.5 and lists.systems.efficiency[1:].isna().all()
    assert top500_numbers.families_table(shown(lists)).rows[0][2] == "7"
    assert "6 systems have no usable RMax or RPeak" in words(lists)


def test_a_cut_list_and_an_impossible_efficiency_are_noted(tmp_path):
    """500 systems with ranks 1 to 500 are whole; 250 of them are not, and 916 % is said with its rank."""
    row = ("", "", "", 8, 1500.0, 3000.0, "Myrinet", "")
    systems = [(rank, *row) for rank in range(1, 501)]
    assert read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=systems)).notes == ()
    cut = read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=systems[:250]))
    assert cut.notes == (
        "TOP500_200811.csv: 250 of 500 systems are there, and every share is of these",
    )
    systems[243] = (244, "", "", "", 8, 27480.0, 3000.0, "Myrinet", "")
    (note,) = read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=systems)).notes
    assert "1 with more than 100 % of RPeak, at most 916 % (rank 244)" in note


def same(lists, month):
    """The systems are the rows of a made-up list; rates are in flop/s."""
    for place, field in enumerate(FIELDS):
        if field != "computer":
            wanted = [row[place] for row in ROWS[month]]
            found = lists.systems[COLUMN.get(field, field)].tolist()
            scale = 1e9 if field in ("rmax", "rpeak") else 1
            is_text = isinstance(wanted[0], str)
            assert found == (wanted if is_text else pytest.approx([scale * w for w in wanted]))


@pytest.mark.parametrize("month", ROWS)
def test_the_columns_of_every_time(month, tmp_path):
    """Processors, Cores or Total Cores; RMax, Rmax or Rmax [TFlop/s]; whatever stands between them."""
    lists = read(tmp_path, f"TOP500_{month.replace('-', '')}.csv", text(month))
    same(lists, month)
    assert set(lists.systems.list) == {month}


FORMS = {
    "semicolon": text("2008-11", ";"),
    "colon": text("2008-11", ":"),
    "aligned": aligned("2008-11"),
    "aligned, title and footnote": f"TOP500 List\n\n{aligned('2008-11')}Source: the list, as published\n",
    "blank last row": text("2008-11") + "," * (len(HEADINGS["2008-11"]) - 1) + "\n\n",
    "title": "TOP500 List - November 2008\n\n" + text("2008-11", "\t"),
    "footnote": text("2008-11") + "Source: the list\n",
    "latin-1": text("2008-11").encode("latin-1"),
    # Under a title and a blank row, and with another sheet before the list's.
    "old workbook": (WORKBOOKS / "TOP500_200811.xls").read_bytes(),
    "new workbook": (WORKBOOKS / "TOP500_200811.xlsx").read_bytes(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_told_by_content(form, tmp_path):
    """Separators, encodings, blank rows, titles, workbooks; text under an Excel file's name."""
    same(read(tmp_path, "TOP500_200811.xls", FORMS[form]), "2008-11")


@pytest.mark.parametrize("separator", ["\t", ",", ";", ":", ""])
@pytest.mark.parametrize("month", ROWS)
def test_every_separator_gives_the_same_systems(month, separator, tmp_path):
    """Those of all years, with the columns of each; none means that blanks align them."""
    content = text(month, separator) if separator else aligned(month)
    same(read(tmp_path, f"TOP500_{month.replace('-', '')}.txt", content), month)


def test_lists_of_a_folder_follow_each_other(tmp_path):
    """A file that cannot be read does not stop the others and is told; where none can be, all faults are at once."""
    assert read_folder(tmp_path / "gone").systems.empty
    (tmp_path / "list.csv").write_text(text("2008-11"), encoding="utf-8")
    with pytest.raises(
        FalloffError, match=r"200906.csv: it needs the col(.|\n)*list.csv: its name"
    ):
        read(tmp_path, "TOP500_200906.csv", "a,b\n1,2\n")
    read(tmp_path, "TOP500_201906.csv", text("2019-06"))
    read(tmp_path, "TOP500_200811.csv", text("2008-11"))
    lists = read(tmp_path, "top500-2008-11.tsv", text("2008-11"))
    assert lists.systems.list.unique().tolist() == ["2008-11", "2019-06"]
    notes = " ".join(lists.notes)
    assert "another list of 2008-11" in notes and "TOP500_200906.csv: it needs" in notes


FAULTS = {
    "lacking": (text("2008-11", RMax="Speed"), "its headings are: Rank, Site"),
    "no table": ("", "no table"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01", "neither text nor an Excel workbook"),
    "a broken workbook": (top500_lists.OLE + b"broken", "no readable Excel workbook"),
    "unquoted": (
        text("2008-11").replace('"Enseignement Supérieur, Paris"', "Supérieur, Paris"),
        "more cells than there are headings",
    ),
    "nothing usable": (
        text("2008-11", systems=[(1, "", "", "", 8, 5000, 0, "", "")]),
        "no row has a rank",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told(fault, tmp_path):
    """What is wrong with which file; nothing is guessed."""
    content, said = FAULTS[fault]
    with pytest.raises(FalloffError) as error:
        read(tmp_path, "TOP500_200811.xls", content)
    assert said in str(error.value) and "TOP500_200811.xls" in str(error.value)


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_workbook_is_told(suffix, share, tmp_path):
    """Whatever the reader does with it, a panic of its native code included."""
    name = f"TOP500_200811.{suffix}"
    whole = (WORKBOOKS / name).read_bytes()
    try:
        told = " ".join(read(tmp_path, name, whole[: int(share * len(whole))]).notes)
    except FalloffError as error:
        told = str(error)
    assert name in told


@pytest.mark.parametrize(
    ("listed", "name", "expected"),
    [
        ("", "10-Gigabit Ethernet", "10gige"),
        ("", "Myrinet 10G", "myrinet"),
        ("", "10G", OTHER),
        ("", "Infinband DDR 4x", "infiniband"),
        ("", "Numalink/Infiniband", MIXED),
        ("", "Gigeresque Ibex", OTHER),
        ("10G", "Myrinet 10G", "10gige"),
        ("Gigabit Ethernet", "Slingshot-11", "gige"),
        ("Mixed", "Numalink/Infiniband", MIXED),
        ("N/A", "N/A", NOT_STATED),
        ("N/A", "2-D mesh (torus)", "custom"),
        ("Wormhole", "Gigabit Ethernet", "gige"),
    ],
)
def test_a_systems_family(listed, name, expected):
    """The list's own counts if it is known, else the name's whole words, the longest phrase, and no guess."""
    assert family(listed, name) == expected
    rates = {"Infinband DDR 4x": "DDR", "Infiniband SDR/DDR": "", "HDR100": "HDR100"}
    assert {name: generation(name) for name in rates} == rates


def test_the_file_of_families_is_whole():
    """No phrase and no listed value belongs to two families; each phrase is found among other words."""
    tables = tomllib.loads(paths.FAMILIES.read_text(encoding="utf-8"))
    for column in ("phrases", "listed"):
        texts = [text for table in tables.values() for text in table[column]]
        assert len(texts) == len(set(texts)) and all(text == text.lower().strip() for text in texts)
    for name, table in tables.items():
        assert {family("", f"4x-{phrase.title()}, Voltaire") for phrase in table["phrases"]} <= {
            name
        }
