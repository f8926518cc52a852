"""The command line as a user meets it: readings as JSON, refusals in a line or two, never a traceback."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import ROOT, run

HPL = ROOT / "tests" / "transcripts" / "hpl"


def test_the_installed_command_works_from_any_folder(tmp_path):
    """Somebody's HPL.out gives its rows with settings, readings and units; a mistake is its only line."""
    command = str(Path(sys.executable).with_name("falloff"))
    parse = [command, "parse", "hpl", str(HPL / "2.0-several-rows.txt")]
    done = subprocess.run(parse, capture_output=True, text=True, cwd=tmp_path)
    results = json.loads(done.stdout)["results"]
    assert done.returncode == 0 and len(results) > 1
    for result in results:
        rate = {reading["name"]: reading for reading in result["readings"]}["hpl_rate"]
        assert rate["value"] > 0 and rate["unit"] == "Gflop/s" and result["settings"]["N"] > 0
    parse[2] = "linpack"
    done = subprocess.run(parse, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert done.stderr.startswith("falloff: there is no runner 'linpack'")


def test_parse_names_the_reason_of_a_failed_run():
    """A run whose residual check failed has its settings and the reason, and no rate."""
    (result,) = json.loads(run("parse", "hpl", str(HPL / "2.0-failed.txt")).stdout)["results"]
    assert result["readings"] == [] and "FAILED" in result["refused"]


def test_fit_and_compare_find_a_power_law(tmp_path):
    """The truth lies in the printed intervals; that model is first, and one that blocks cannot carry says why."""
    table = tmp_path / "mine.csv"
    random = np.random.default_rng(1)
    rows = [
        f"{block},{n},{3 * n**0.6 * random.normal(1, 0.01)}"
        for block in range(6)
        for n in (1, 2, 4, 8, 16)
    ]
    table.write_text("block,nodes,rate\n" + "\n".join(rows) + "\n")
    columns = ("--x", "nodes", "--y", "rate")
    fit = json.loads(run("fit", "power_law", str(table), *columns).stdout)
    for name, truth in zip(fit["estimates"], (3, 0.6), strict=True):
        low, high = fit["intervals_95"][name]
        assert low < truth < high
    compared = json.loads(run("fit", str(table), *columns, "--block", "block").stdout)
    found = {comparison["model"]: comparison for comparison in compared}
    best = compared[0]
    low, high = best["intervals_95"]["b"]
    assert best["model"] == "power_law" and low < 0.6 < high and "6 blocks" in best["interval_kind"]
    assert found["segmented"]["refused"] and found["segmented"]["pooled"] is None


def test_plan_says_minutes_and_probabilities():
    """A line for each planned look, later ones no less probable; a campaign without falls is refused."""
    done = run("plan", "hpl_scaling")
    lines = re.findall(r"^ *\d+ +[\d?]+(?: +[01]\.\d{3})+$", done.stdout, re.M)
    looks, _, *columns = zip(*(map(float, line.split()) for line in lines))
    assert done.returncode == 0 and looks == (4, 6, 9)
    assert all(list(column) == sorted(column) for column in columns)
    assert "nothing to plan" in run("plan", "hpl_size").stderr


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("parse", "hpl", "README.md"), "not an output of HPL"),
        (("parse", "hpl", "no-such-file"), "cannot read no-such-file"),
        (("run", "nothing"), "there are: fan_out, frame_limits, hpl_"),
        (("run", "hpl_scaling", "--testbed", "mars"), "there is no testbed 'mars'"),
        (("run", "hpl_scaling", "--preset", "huge"), "preset 'huge' is unknown"),
        (("doctor", "--testbed", "emulated"), "testbed emulated is no cluster"),
        (("fit", "parabola", "README.md", "--x", "a", "--y", "b"), "README.md"),
        (("fit", "constant", "data/published/smith_table1.csv", "--x", "P", "--y", "q"), "no column 'q'"),
        (("fit", "README.md", "--x", "a", "--y", "b"), "say what was measured together by --block"),
        (("design", "data"), "cannot read data"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_a_line_or_two(arguments, answer):
    """Exit code 1, the reason on stderr, nothing on stdout."""
    done = run(*arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert answer in done.stderr and len(done.stderr.splitlines()) <= 2


def test_design_prints_a_table_with_what_is_assumed(tmp_path):
    """A row for each design and the assumptions; a file with faults is answered with all of them, in one line."""
    shipped = ROOT / "data" / "designs" / "nemo.toml"
    done = run("design", str(shipped))
    assert done.returncode == 0 and "cisco_2to1 " in done.stdout and "Assumed:" in done.stdout
    mine, text = tmp_path / "mine.toml", shipped.read_text(encoding="utf-8")
    mine.write_text(text.replace("price =", "cost =").replace('core = "force10_e600"', ""))
    done = run("design", str(mine))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "edges.smc_8505t.price is missing" in done.stderr
    assert "designs.e600_2to1.core is missing" in done.stderr


def test_doctor_tells_what_is_here():
    """Every tool of the main campaign is named, with its path or its remedy."""
    done = run("doctor")
    assert all(tool in done.stdout for tool in ("xhpl", "iperf3", "ping"))
    assert (done.returncode == 0) == ("MISSING" not in done.stdout)
