"""List files in all forms and years' layouts give the same systems; what cannot be used is told, never made up."""

import shutil
import tomllib
from pathlib import Path

import pytest
from top500_lists import FIELDS, HEADINGS, ROWS, text

from analysis import paths, top500_lists
from analysis.top500_lists import MIXED, NOT_STATED, OTHER, by_name, family, generation, read_folder
from runners.record import FalloffError

WORKBOOKS = Path(__file__).parent / "top500"
ONE = [(1, "", "", "", 8, 1500.0, 3000.0, "Myrinet", "")]
COLUMN = {"family": "listed_family"}  # what a field of `top500_lists` is called here


def read(folder, name, content):
    """The lists of one file with this name and content."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_folder(folder)


def others(lists):
    """The notes but for those that a made-up list of a few systems always has."""
    usual = ("every share is of these", "RPeak may be at another clock")
    return [note for note in lists.notes if not any(words in note for words in usual)]


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
    assert set(lists.systems.list) == {month} and not others(lists)


FORMS = {
    "tsv": text("2008-11", "\t"),
    "semicolon": text("2008-11", ";"),
    "blank last row": text("2008-11") + "," * (len(HEADINGS["2008-11"]) - 1) + "\n\n",
    "windows": text("2008-11", closing="\r\n"),
    "title": "TOP500 List - November 2008\n\n" + text("2008-11", "\t"),
    "footnote": text("2008-11") + "Source: the list\n",
    "marked": b"\xef\xbb\xbf" + text("2008-11").encode(),
    "latin-1": text("2008-11").encode("latin-1"),
    "utf-16": text("2008-11", "\t").encode("utf-16"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_are_told_by_content(form, tmp_path):
    """Separators, encodings, blank rows, titles, and text under an Excel file's name."""
    same(read(tmp_path, "TOP500_200811.xls", FORMS[form]), "2008-11")


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
def test_real_workbooks(suffix, tmp_path):
    """An old workbook with a title above the headings, and a new one with another sheet before the list's."""
    shutil.copy(WORKBOOKS / f"TOP500_200811.{suffix}", tmp_path)
    same(read_folder(tmp_path), "2008-11")


def test_lists_of_a_folder_follow_each_other(tmp_path):
    """What is no list's file is left out and told; without lists, or a folder, there are no systems."""
    for month in ("2012-11", "2008-11"):
        read(tmp_path, f"TOP500_{month.replace('-', '')}.csv", text(month))
    lists = read(tmp_path, "TOP500_200811_all.xml", "<a/>")
    assert lists.systems.list.unique().tolist() == ["2008-11", "2012-11"]
    assert "TOP500_200811_all.xml was not read" in lists.notes[0]
    (tmp_path / "TOP500_201006.csv").write_text("a,b\n1,2\n")
    lists = read_folder(tmp_path)  # one that cannot be read does not stop the others
    assert lists.systems.list.unique().tolist() == ["2008-11", "2012-11"]
    assert "TOP500_201006.csv: it needs the columns" in lists.notes[-1]
    assert read_folder(tmp_path / "gone").systems.empty


def test_unusable_rates_leave_no_efficiency(tmp_path):
    """N/A, nothing, 0, words and decimal commas are no rates, and no 0 either; the system stays, and a note counts it."""
    bad = ["N/A", "", "0", "fast", '"12,5"', "inf"]
    listed = [(1 + n, "", "", "", 8, 1, 2e6, "Myrinet", "") for n in range(len(bad) + 1)]
    content = text("2008-11", systems=listed).splitlines()
    cells = ['"1,000,000"', *bad]
    lines = [
        line.replace(",1,2000000,", f",{cell},2000000,") for line, cell in zip(content[1:], cells)
    ]
    lists = read(tmp_path, "TOP500_200811.csv", "\n".join([content[0], *lines]))
    assert lists.systems.efficiency[0] == 0.5 and lists.systems.efficiency[1:].isna().all()
    assert others(lists) == ["TOP500_200811.csv: 6 systems have no usable RMax or RPeak"]


@pytest.mark.parametrize("unit", ["Gflop/s", "GFlops", "TFlop/s", "PFlop/s", "Mflop/s", ""])
def test_units_by_heading(unit, tmp_path):
    """The heading's unit counts; lists without one are in Gflop/s."""
    heading = {"RMax": f"RMax [{unit}]", "RPeak": f"RPeak ({unit})"} if unit else {}
    content = text("2008-11", systems=ONE, **heading)
    systems = read(tmp_path, "TOP500_200811.csv", content).systems
    factor = {"G": 1e9, "T": 1e12, "P": 1e15, "M": 1e6, "": 1e9}[unit[:1]]
    assert systems.rmax[0] == pytest.approx(1500 * factor) and systems.efficiency[0] == 0.5


FAULTS = {
    "lacking": (text("2008-11", RMax="Speed"), "its headings are: Rank, Site"),
    "no interconnect": (
        text("2008-11", Interconnect="Net", **{"Interconnect Family": "Nets"}),
        "Interconnect (or Interconnect Family)",
    ),
    "no table": ("", "no table"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01", "neither text nor an Excel workbook"),
    "a broken workbook": (top500_lists.OLE + b"broken", "no readable Excel workbook"),
    "a broken archive": (top500_lists.ZIP + b"broken", "no readable Excel workbook"),
    "unquoted": (
        text("2008-11").replace('"Enseignement Supérieur, Paris"', "Supérieur, Paris"),
        "more cells than there are headings",
    ),
    "nothing usable": (
        text("2008-11", systems=[(1, "", "", "", 8, 5000, 0, "", "")]),
        "no row has a rank",
    ),
    "headings only": (text("2008-11", systems=[]), "no row has a rank"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told(fault, tmp_path):
    """What is wrong with which file; nothing is guessed."""
    content, said = FAULTS[fault]
    with pytest.raises(FalloffError) as error:
        read(tmp_path, "TOP500_200811.xls", content)
    assert said in str(error.value) and "TOP500_200811.xls" in str(error.value)


def test_all_files_faults_are_told_at_once(tmp_path):
    """A name without a month, a second file of the same list, and a file without columns."""
    (tmp_path / "list.csv").write_text(text("2008-11"), encoding="utf-8")
    with pytest.raises(FalloffError) as error:
        read(tmp_path, "TOP500_200906.csv", "a,b\n1,2\n")
    for said in ("list.csv: its name", "TOP500_200906.csv: it needs"):
        assert said in str(error.value)
    for name in ("TOP500_200811.csv", "top500-2008-11.tsv"):
        (tmp_path / name).write_text(text("2008-11"), encoding="utf-8")
    assert "another list of 2008-11" in " ".join(read_folder(tmp_path).notes)


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_truncated_workbook_is_told(suffix, share, tmp_path):
    """Whatever the reader does with it, a panic of its native code included."""
    whole = (WORKBOOKS / f"TOP500_200811.{suffix}").read_bytes()
    try:
        lists = read(tmp_path, f"TOP500_200811.{suffix}", whole[: int(share * len(whole))])
    except FalloffError as error:
        assert f"TOP500_200811.{suffix}" in str(error)
    else:
        assert "every share is of these" in " ".join(lists.notes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Gigabit Ethernet", "gige"),
        ("10-Gigabit Ethernet", "10gige"),
        ("Myrinet 10G", "myrinet"),
        ("Infiniband 10G", "infiniband"),
        ("10G", ""),
        ("100 Gigabit Ethernet", "faster_ethernet"),
        ("Fast Ethernet", "fast_ethernet"),
        ("Ethernet", ""),
        ("Infinband DDR 4x", "infiniband"),
        ("Dual-rail Mellanox EDR Infiniband", "infiniband"),
        ("Numalink/Infiniband", MIXED),
        ("Gigabit Ethernet/Myrinet", MIXED),
        ("XT4 Internal Interconnect", "cray"),
        ("Slingshot-11", "slingshot"),
        ("NUMAlink", "numalink"),
        ("Bull BXI 1.2", "custom"),
        ("Gigeresque Ibex", ""),
    ],
)
def test_names_of_the_lists(name, expected):
    """Whole words decide, the longest phrase counts, and what is ambiguous belongs to none."""
    assert by_name(name) == expected


@pytest.mark.parametrize(
    ("listed", "name", "expected"),
    [
        ("10G", "Myrinet 10G", "10gige"),
        ("", "Myrinet 10G", "myrinet"),
        ("", "10G", OTHER),
        ("Gigabit Ethernet", "Slingshot-11", "gige"),
        ("Proprietary", "XT4 Internal Interconnect", "custom"),
        ("Mixed", "Numalink/Infiniband", MIXED),
        ("N/A", "N/A", NOT_STATED),
        ("N/A", "2-D mesh (torus)", "custom"),
        ("Wormhole", "Gigabit Ethernet", "gige"),
    ],
)
def test_the_lists_own_family_counts(listed, name, expected):
    """The name decides where the list has no family that is known."""
    assert family(listed, name) == expected


def test_the_file_of_families_is_whole():
    """No phrase and no listed value belongs to two families; each phrase is found among other words."""
    tables = tomllib.loads(paths.FAMILIES.read_text(encoding="utf-8"))
    for column in ("phrases", "listed"):
        texts = [text for table in tables.values() for text in table[column]]
        assert len(texts) == len(set(texts)) and all(text == text.lower().strip() for text in texts)
    for name, table in tables.items():
        assert {by_name(f"4x-{phrase.title()}, Voltaire") for phrase in table["phrases"]} <= {name}


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("Infinband DDR 4x", "DDR"),
        ("Infiniband", ""),
        ("Infiniband SDR/DDR", ""),
        ("HDR100", "HDR100"),
    ],
)
def test_data_rates_by_name(name, rate):
    """A name with two data rates is of neither."""
    assert generation(name) == rate
