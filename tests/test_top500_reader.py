"""List files in all forms and years' layouts give the same systems; what cannot be used is told, never made up."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from top500_lists import FIELDS, HEADINGS, ROWS, rows, text

from analysis import store
from analysis.top500 import cells
from analysis.top500.lists import read_folder
from runners.record import FalloffError

BINARY = Path(__file__).parent / "top500"
NAMES = ("rank", "site", "manufacturer", "computer", "cores", "rmax", "rpeak", "listed_family", "interconnect")


def read(folder, name, content):
    """The dataset of one list file with this name and content."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_folder(folder)


def refused(folder, name, content):
    """What is said of a file that is refused, which it names."""
    with pytest.raises(FalloffError) as error:
        read(folder, name, content)
    assert name in str(error.value)
    return str(error.value)


def systems(dataset):
    """The dataset's systems as the rows of `top500_lists`, rates in Gflop/s again."""
    columns = [dataset[name].values.tolist() for name in NAMES]
    return [tuple(value * 1e-9 if field in ("rmax", "rpeak") else value for field, value in zip(FIELDS, row))
            for row in zip(*columns)]  # fmt: skip


def same(dataset, expected):
    found = systems(dataset)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        for value, wanted in zip(one, other):
            assert value == (pytest.approx(wanted, rel=1e-9) if isinstance(wanted, (int, float)) else wanted)


def html(month):
    body = "".join("<tr>" + "".join(f"<td>{str(cell).replace('&', '&amp;')}</td>" for cell in row) + "</tr>" for row in rows(month))
    return f"<html><head><title>TOP500</title></head><body><table><tr><td>menu</td></tr></table><table>{body}</table></body></html>"


def spreadsheet_xml(month):
    """Excel's XML of 2003: cells that are 0 are left out, the next one says where it stands."""
    lines = []
    for row in rows(month):
        kept = [(place, cell) for place, cell in enumerate(row, 1) if cell != 0]
        lines.append("<Row>" + "".join(f'<Cell ss:Index="{place}"><Data ss:Type="String">{str(cell).replace("&", "&amp;")}</Data></Cell>' for place, cell in kept) + "</Row>")  # fmt: skip
    return (
        '<?xml version="1.0"?><Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet" '
        'xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet"><Worksheet ss:Name="TOP500"><Table>'
        + "\n".join(lines) + "</Table></Worksheet></Workbook>"
    )  # fmt: skip


@pytest.mark.parametrize("month", ROWS)
def test_the_columns_of_every_time(month, tmp_path):
    """Processors, Cores or Total Cores; RMax, Rmax or Rmax [TFlop/s]; whatever stands between them."""
    dataset = read(tmp_path, f"TOP500_{month.replace('-', '')}.csv", text(month))
    same(dataset, ROWS[month])
    assert set(dataset.list.values) == {month} and str(dataset.evidence.values) == "published"
    assert dataset.rmax.attrs["units"] == "flop/s" and (dataset.reason == "").all()


FORMS = {
    "tsv": text("2008-11", "\t"),
    "comma": text("2008-11"),
    "semicolon": text("2008-11", ";"),
    "colon": text("2008-11", ":"),
    "blank last row": text("2008-11") + "," * (len(HEADINGS["2008-11"]) - 1) + "\n\n",
    "windows": text("2008-11", closing="\r\n"),
    "title": "TOP500 List - November 2008\n\n" + text("2008-11", "\t"),
    "marked": b"\xef\xbb\xbf" + text("2008-11").encode(),
    "latin-1": text("2008-11").encode("latin-1"),
    "utf-16": text("2008-11", "\t").encode("utf-16"),
    "utf-16 without its mark": text("2008-11", "\t").encode("utf-16-le"),
    "html": html("2008-11"),
    "xml": spreadsheet_xml("2008-11"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", ["csv", "xls"])
def test_forms_are_told_by_content(form, suffix, tmp_path):
    """Separators, quotes around them, encodings, blank rows, titles, and tables in disguise under an Excel file's name."""
    same(read(tmp_path, f"TOP500_200811.{suffix}", FORMS[form]), ROWS["2008-11"])


@pytest.mark.parametrize("suffix", ["xls", "xlsx"])
def test_real_workbooks(suffix, tmp_path):
    """An old workbook with a title above the headings, and a new one with another sheet before the list's."""
    shutil.copy(BINARY / f"TOP500_200811.{suffix}", tmp_path)
    same(read_folder(tmp_path), ROWS["2008-11"])


WORDS = st.text(st.sampled_from("abXY ,;:\"'|/()-é5"), max_size=12).map(str.strip)
SYSTEM = st.tuples(
    WORDS, WORDS, WORDS, st.integers(1, 10**7),
    st.floats(1e4, 1e6).map(lambda value: round(value, 2)), st.floats(1e4, 1e6).map(lambda value: round(value, 2)),
    WORDS, WORDS,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    listed=st.lists(SYSTEM, min_size=1, max_size=5),
    separator=st.sampled_from("\t,;:"),
    month=st.sampled_from(["2008-11", "2012-11", "2019-06"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "latin-1"]),
)
def test_whatever_is_written_is_read(tmp_path_factory, listed, separator, month, encoding):
    """Fields with separators and quotes in them come back from every form of text, in the list's order."""
    scale = {"2008-11": 1, "2012-11": 10, "2019-06": 1}[month]  # so that the rates fit their time
    made = [(rank, *own[:4], scale * own[4], scale * own[5], *own[6:]) for rank, own in enumerate(listed, 1)]
    content = text(month, separator, made).encode(encoding)
    same(read(tmp_path_factory.mktemp("lists"), f"TOP500_{month}.csv", content), made)


def test_folder_of_several_lists(tmp_path):
    """List after list with their files; the page in the folder is no list, other files are named as not read."""
    for month in ("2012-11", "2008-11"):
        (tmp_path / f"TOP500_{month.replace('-', '')}.csv").write_text(text(month), encoding="utf-8")
    (tmp_path / "README.md").write_text("a page", encoding="utf-8")
    (tmp_path / "TOP500_200811_all.xml").write_text("<a/>", encoding="utf-8")
    dataset = read_folder(tmp_path)
    assert list(dict.fromkeys(dataset.list.values)) == ["2008-11", "2012-11"]
    assert json.loads(dataset.attrs["files"])["2012-11"]["file"] == "TOP500_201211.csv"
    (note,) = json.loads(dataset.attrs["notes"])
    assert "TOP500_200811_all.xml was not read" in note


@pytest.mark.parametrize("there", ["nothing", "no folder"])
def test_without_lists_there_are_no_systems(there, tmp_path):
    """A clean checkout: an empty dataset that can be stored, as a full one can."""
    folder = tmp_path if there == "nothing" else tmp_path / "gone"
    dataset = read_folder(folder)
    assert dataset.sizes["system"] == 0
    store.save(dataset, tmp_path / "lists.nc")
    assert (tmp_path / "lists.nc").is_file()


def test_unusable_rates_are_nan_with_a_reason(tmp_path):
    """N/A, nothing, 0 and words are no rates, and no 0 either; the system stays, and a note counts it."""
    listed = [(1, "", "", "", 8, 1e6, 2e6, "Myrinet", "")]
    listed += [(2 + n, "", "", "", 8, 1, 2, "Myrinet", "") for n in range(4)]
    content = text("2008-11", systems=listed).splitlines()
    bad = ["N/A,2", ",2", "0,2", "fast,2"]
    content[2:] = [line.replace(",1,2,", f",{cell},", 1) for line, cell in zip(content[2:], bad)]
    dataset = read(tmp_path, "TOP500_200811.csv", "\n".join(content))
    assert np.isnan(dataset.rmax.values).tolist() == [False, True, True, True, True]
    assert np.isnan(dataset.efficiency.values[1:]).all() and dataset.efficiency.values[0] == 0.5
    assert dataset.reason.values.tolist() == [
        "", "RMax is empty", "RMax is empty", "RMax is not above 0", "RMax 'fast' is no number"
    ]  # fmt: skip
    (note,) = json.loads(dataset.attrs["notes"])
    assert "2 whose RMax is empty" in note and "1 whose RMax 'fast' is no number" in note


def test_a_row_without_a_rank_is_no_system(tmp_path):
    """A footnote below the list is counted as left out."""
    dataset = read(tmp_path, "TOP500_200811.csv", text("2008-11") + "Source: the list\n")
    assert dataset.sizes["system"] == len(ROWS["2008-11"])
    assert "1 without a rank" in json.loads(dataset.attrs["notes"])[0]


def test_more_than_the_peak_is_kept(tmp_path):
    """Processors above their nominal clock: 2000 of 1900 Tflop/s."""
    dataset = read(tmp_path, "TOP500_201906.csv", text("2019-06"))
    assert dataset.efficiency.values.max() == pytest.approx(2000 / 1900)


@pytest.mark.parametrize("unit", ["Gflop/s", "GFlops", "TFlop/s", "PFlop/s", "Mflop/s", ""])
def test_units_by_heading_or_by_time(unit, tmp_path):
    """The heading's unit counts; without one that which fits the rates of the time."""
    factor = {"G": 1e9, "T": 1e12, "P": 1e15, "M": 1e6, "": 1e12}[unit[:1]]
    listed = [(1, "", "", "", 8, 1500.0, 3000.0, "Myrinet", "")]
    heading = {"RMax": f"RMax [{unit}]", "RPeak": f"RPeak ({unit})"} if unit else {}
    dataset = read(tmp_path, "TOP500_200811.csv", text("2008-11", systems=listed, **heading))
    assert dataset.rmax.values[0] == pytest.approx(1500 * factor) and dataset.efficiency.values[0] == 0.5


FAULTS = {
    "lacking": (text("2008-11", RMax="Speed"), "no column RMax; its headings are: Rank, Site"),
    "no interconnect": (text("2008-11", Interconnect="Net", **{"Interconnect Family": "Nets"}), "no column Interconnect (or Interconnect Family)"),
    "no table": ("", "no table"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01", "neither text nor an Excel workbook"),
    "a broken workbook": (cells.OLE + b"broken", "no readable Excel workbook"),
    "a broken archive": (cells.ZIP + b"broken", "no readable Excel workbook"),
    "unquoted": (text("2008-11").replace('"Enseignement Supérieur, Paris"', "Supérieur, Paris"), "row 3 has 26 cells under 25 headings"),
    "of no time": (text("2008-11", systems=[(1, "", "", "", 8, 3e-7, 5e-7, "", "")]), "name the unit in the heading"),
    "nothing usable": (text("2008-11", systems=[(1, "", "", "", 8, 5000, 0, "", "")]), "no row has a rank, an RMax and an RPeak"),
    "headings only": (text("2008-11", systems=[]), "no row has a rank"),
    "another's xml": ("<?xml version='1.0'?><top500:list><top500:site/></top500:list>", "no table"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_told(fault, tmp_path):
    """What is wrong with which file; nothing is guessed."""
    content, said = FAULTS[fault]
    assert said in refused(tmp_path, "TOP500_200811.xls", content)


def test_all_files_faults_are_told_at_once(tmp_path):
    """A name without a month, a second file of the same list, and a file without columns."""
    for name in ("list.csv", "TOP500_200811.csv", "top500-2008-11.tsv"):
        (tmp_path / name).write_text(text("2008-11"), encoding="utf-8")
    said = refused(tmp_path, "TOP500_200906.csv", "a,b\n1,2\n")
    assert "TOP500_200811.csv is the list of 2008-11, too" in said
    assert "list.csv: its name does not hold the list's month, such as TOP500_200811.csv" in said
    assert "no column Rank and no RMax and no RPeak" in said
