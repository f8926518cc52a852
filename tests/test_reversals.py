"""Points that lie outside: planted dips and falls are named, steady sequences and scatter are
not.
"""

import numpy as np
import pytest
from command_line import run
from foreign_hpl import folder_of_runs

from analysis import paths
from analysis.imports import importing
from analysis.statements import notebooks
from analysis.statistics.reversals import Reversal, reversals

NAN = float("nan")


@pytest.mark.parametrize(
    ("means", "places"),
    [
        ([1, 2, 3, 4], []),
        ([90.1, 50.1, 95.3, 100], [(0, 1)]),  # efficiency on 8, 4, 2 and 1 nodes
        ([50, 95, 97], []),  # the last value of all is the lowest, as it may be
        ([1, 4, 10, 5, 2, 1.5], [(2, 5)]),  # it never comes back
        ([1, 4, 2, 5, 9, 3, 9], [(1, 2), (4, 5)]),  # twice
        ([100, 96, 92, 88, 84, 80], [(0, 5)]),  # slowly
        ([100, 96, 100, 97, 101], []),  # within the margin
        ([5.0], []),
        ([], []),
    ],
)
def test_planted_falls_are_found_from_the_peak_to_the_trough(means, places):
    unknown = [NAN] * len(means)
    found = reversals(means, unknown, unknown, 0.05)
    assert [(one.start, one.end) for one in found] == places
    assert all(one.fall == pytest.approx(1 - means[one.end] / means[one.start]) for one in found)


def test_values_whose_intervals_overlap_are_alike():
    means = [100.0, 80.0, 101.0]
    assert reversals(means, [85, 65, 86], [115, 95, 116], 0.05) == []
    assert reversals(means, [97, 77, 98], [103, 83, 104], 0.05) == [
        Reversal(0, 1, pytest.approx(0.2))
    ]


def test_a_steady_sequence_with_scatter_names_nothing():
    """At most a tenth of sequences of ten equal means, each of four runs that scatter by 1 %, name
    a fall beyond 2 %.
    """
    random, named = np.random.default_rng(4), 0
    for _ in range(300):
        runs = 100 * (1 + 0.01 * random.normal(size=(4, 10)))
        half = 3.18 * runs.std(axis=0, ddof=1) / 2
        mean = runs.mean(axis=0)
        named += bool(reversals(mean, mean - half, mean + half, 0.02))
    assert named < 30


@pytest.mark.parametrize(("share", "named"), [(0.45, True), (0.83, False)])
def test_a_node_count_that_lies_outside_is_named(share, named, tmp_path):
    """Efficiencies of 90, 85, a share, and 80 % on 1 to 8 nodes, imported from HPL's outputs."""
    folder_of_runs(tmp_path / "runs", {"gige": {1: 0.9, 2: 0.85, 4: share, 8: 0.8}}, 1e11)
    table = "--set interconnect=gige --set ranks_per_node=4 --set rpeak=1e11".split()
    done = run("import", "hpl", str(tmp_path / "runs"), *table, "--out", str(tmp_path / "o"))
    assert done.returncode == 0 and ("on 4 nodes lies outside" in done.stdout) == named
    assert "on 2 nodes lies outside" not in done.stdout


def osu(file, test: str, rows: dict) -> str:
    """A table of OSU's as a file: the values by size [B]; its name."""
    unit = "Latency (us)" if test == "Latency" else "Bandwidth (MB/s)"
    lines = [f"# OSU MPI {test} Test v5.6.3", f"# Size          {unit}"]
    file.write_text(
        "\n".join([*lines, *(f"{size:<12}{value:14.2f}" for size, value in rows.items())])
    )
    return str(file)


def imported(tmp_path, *files: str) -> str:
    """What the import of OSU's tables says."""
    done = run(
        "import", "osu", *files, "--set", "interconnect=10gige", "--out", str(tmp_path / "o")
    )
    assert done.returncode == 0
    return done.stdout


SIZES = [2**power for power in range(23)]


@pytest.mark.parametrize(("beyond", "named"), [(1.0, False), (0.2, True)])
def test_a_size_from_which_the_bandwidth_falls_is_named(beyond, named, tmp_path):
    rows = {size: min(1100.0, size / 20) * (beyond if size > 2**19 else 1) for size in SIZES}
    said = imported(tmp_path, osu(tmp_path / "bw.txt", "Bandwidth", rows))
    assert ("falls from 512 KiB to 1 MiB: 80" in said) == named


def test_a_protocol_step_leaves_the_bandwidth_right(tmp_path):
    """Eager messages of 20 µs at 900 MB/s up to 16 KiB, then 90 µs and 1170 MB/s: long messages
    pass at 1170 MB/s.
    """
    times = {size: 20 + size / 900 if size <= 2**14 else 90 + size / 1170 for size in SIZES}
    files = [osu(tmp_path / f"{name}.txt", "Latency", times) for name in "ab"]
    assert "long messages on 10GE (latency): 1170 MB/s" in imported(tmp_path, *files)


def test_an_interval_of_the_line_is_not_called_one_of_the_runs(tmp_path):
    """A single table has no scatter of runs: what its long messages' bandwidth has is the scatter
    of sizes about the line.
    """
    times = {size: 20 + size / 900 if size <= 2**14 else 90 + size / 1170 for size in SIZES}
    (tmp_path / "10gige").mkdir()
    osu(tmp_path / "10gige" / "a.txt", "Latency", times)
    dataset = importing.dataset_of("osu", [tmp_path])
    file = paths.NOTEBOOKS / "12_ping_pong.ipynb"
    made = notebooks.run(file, {"osu": dataset}, campaign="osu")
    kinds = {statement.quantity: statement.interval_kind for statement in made.statements}
    assert kinds["bandwidth"] == "95 % t interval of the line by size" and not kinds["time"]
