"""Tables of other people's tools are read as they stand: CSV, semicolons, and what `jube result` prints."""

import pytest

from analysis import tables
from runners.record import FalloffError

# From the JUPITER benchmark suite of Forschungszentrum Jülich: OSU in Markdown, IOR as JUBE prints it.
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
    assert tables.read(file, column)[column].tolist() == values


@pytest.mark.parametrize(
    ("text", "line"), [(OSU.replace("2.43", "broken"), 4), ("rate\n1\nx\n", 3)]
)
def test_a_wrong_value_is_named_by_its_line(tmp_path, text, line):
    file = tmp_path / "table"
    file.write_text(text)
    column = "result" if "result" in text else "rate"
    table = tables.read(file, column)
    with pytest.raises(FalloffError, match=f"in line {line}$"):
        tables.require_numbers(table, column)
    with pytest.raises(FalloffError, match="it has: "):
        tables.read(file, "bandwidth")
