"""Tables of other people's tools are read as they stand: CSV, semicolons, and what `jube result`
prints.
"""

import pandas as pd
import pytest

from analysis.dataset import csv_tables
from analysis.subjects import fit_answers
from analysis.watch import history_sessions, samples
from runners.records.record import FalloffError

# From the JUPITER benchmark suite of Forschungszentrum Jülich: OSU in Markdown, IOR as JUBE prints
# it.
OSU = """\
| nodes |Tasks / Node| cuda_vis |       osu_exe | msg_size | runtime[sec] |     size |    result |
|-------|------------|----------|---------------|----------|--------------|----------|-----------|
|     1 |           2|      0,1 |    `osu_bibw` | 67108864 |         3.92 | 67108864 | 176667.35 |
|     2 |           1|        1 | `osu_latency` |        0 |         1.94 |        0 |      2.43 |
"""
IOR = """\
result:
  api  | RDbwmax  | RDbwmean | RDbwmin  | RDbmeans[s] | WRbwmax | WRbwmean | WRbwmin | WRbmeans[s]
-------|----------|----------|----------|-------------|---------|----------|---------|------------
 POSIX | 132712.1 | 127639.4 | 118839.4 |        16.5 | 46527.8 |  40103.2 | 35988.8 |       52.9
"""


@pytest.mark.parametrize(
    ("text", "column", "values"),
    [
        (OSU, "result", [176667.35, 2.43]),
        (OSU, "Tasks / Node", [2, 1]),
        (IOR, "RDbwmean", [127639.4]),
        (IOR, "WRbmeans[s]", [52.9]),
        ("nodes;rate\n2;1.5\n", "rate", [1.5]),
        ("nodes,rate\n2,1.5\n", "rate", [1.5]),
    ],
)
def test_a_column_is_read(tmp_path, text, column, values):
    file = tmp_path / "table"
    file.write_text(text)
    assert csv_tables.read(file, column)[column].tolist() == values


@pytest.mark.parametrize(
    ("text", "line"), [(OSU.replace("2.43", "broken"), 4), ("rate\n1\nx\n", 3)]
)
def test_a_wrong_value_is_named_by_its_line(tmp_path, text, line):
    file = tmp_path / "table"
    file.write_text(text)
    column = "result" if "result" in text else "rate"
    table = csv_tables.read(file, column)
    with pytest.raises(FalloffError, match=f"in line {line}$"):
        csv_tables.require_numbers(table, column)
    with pytest.raises(FalloffError, match="it has: "):
        csv_tables.read(file, "bandwidth")


WANTED = pd.DataFrame({"nodes": [1, 2, 4], "rate": [3.01, 5.52, 9.87], "watts": [7, 14, 28]})
LINES = ["nodes,rate,watts", "1,3.01,7", "2,5.52,14", "4,9.87,28"]
FORMS = {
    "commas at each row's end": ["nodes,rate,watts", "1,3.01,7,", "2,5.52,14,", "4,9.87,28,"],
    "commas at each line's end": [line + ",," for line in LINES],
    "spaces behind commas": [line.replace(",", ", ") for line in LINES],
    "semicolons": [line.replace(",", ";") for line in LINES],
    "semicolons at the end": [line.replace(",", ";") + ";" for line in LINES],
    "decimal commas": [line.replace(",", ";").replace(".", ",") for line in LINES],
    "tabs": [line.replace(",", "\t") for line in LINES],
    "comments": ["# nightly", "", *LINES[:2], "# moved to rack 2, with watts", *LINES[2:]],
    "quotes": ['"' + line.replace(",", '","') + '"' for line in LINES],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_programs_csv_has_the_same_numbers(tmp_path, form, encoding):
    for end in ("\n", "\r\n"):
        (tmp_path / "table.csv").write_bytes((end.join(FORMS[form]) + end).encode(encoding))
        pd.testing.assert_frame_equal(
            csv_tables.read(tmp_path / "table.csv", *WANTED).reset_index(drop=True), WANTED
        )


# Line 3 of each is wrong. A comma before three digits may mean thousands.
WRONG = {
    "a cell too many": [*LINES[:2], "2,5.52,14,9", LINES[3]],
    "a decimal comma between commas": [*LINES[:2], "2,5,52,14", LINES[3]],
    "a cell too few": [*LINES[:2], "2,5.52", LINES[3]],
    "thousands": ["nodes;rate;watts", "1;301;7", "2;5,520;14", "4;9,870;28"],
    "thousands in quotes": [*LINES[:2], '2,"5,520",14', LINES[3]],
    "a date with points": [*LINES[:2], "2,1.1.2025,14", LINES[3]],
    "400 digits": [*LINES[:2], f"2,{'9' * 400},14", LINES[3]],
    "infinity": [*LINES[:2], "2,inf,14", LINES[3]],
    "an infinite x": [*LINES[:2], "inf,5.52,14", LINES[3]],
    "below a comment": ["# nightly", LINES[0], "2,five,14", LINES[3]],
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_line_that_is_wrong_is_named(tmp_path, fault):
    file = tmp_path / "table.csv"
    file.write_text("\n".join(WRONG[fault]) + "\n")
    with pytest.raises(FalloffError, match=r"line 3\b") as refusal:
        csv_tables.require_numbers(csv_tables.read(file, *WANTED), *WANTED)
    assert len(str(refusal.value)) < 300


def test_a_history_and_a_comparison_refuse_the_same(tmp_path):
    """Times before the computer's era, and an infinite number of nodes."""
    for time in ("-0044-03-15T12:00:00", "0001-01-01", "99999-01-01", "9" * 400, "01.02.2025"):
        (tmp_path / "h.csv").write_text(f"time,rate\n2025-01-01,1\n{time},2\n")
        with pytest.raises(FalloffError, match="line 3"):
            history_sessions.of_csv(tmp_path / "h.csv", "higher")
    (tmp_path / "c.csv").write_text("nodes,rate,block\n1,3,1\ninf,4,1\n")
    with pytest.raises(FalloffError, match="line 3"):
        samples.of_csv(tmp_path / "c.csv", "nodes", "rate", "block", "higher")


def test_one_column_is_not_fitted_to_itself(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("\n".join(LINES))
    for x, y in (("nodes", "nodes"), ("nodes,nodes", "rate"), ("nodes,rate", "rate")):
        with pytest.raises(FalloffError, match="different columns"):
            fit_answers.of_model("amdahl", file, x, y)
