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


def installed(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """Run the installed command, as a user does."""
    command = Path(sys.executable).with_name("falloff")
    return subprocess.run([str(command), *arguments], capture_output=True, text=True, cwd=cwd)


def test_parse_prints_every_result_of_an_existing_output(tmp_path):
    """Somebody's HPL.out gives its rows with settings, readings and units, from any folder."""
    done = installed("parse", "hpl", str(HPL / "2.0-several-rows.txt"), cwd=tmp_path)
    results = json.loads(done.stdout)["results"]
    assert done.returncode == 0 and len(results) > 1
    for result in results:
        rate = {reading["name"]: reading for reading in result["readings"]}["hpl_rate"]
        assert rate["value"] > 0 and rate["unit"] == "Gflop/s" and result["settings"]["N"] > 0


def test_parse_names_the_reason_of_a_failed_run():
    """A run whose residual check failed has its settings and the reason, and no rate."""
    (result,) = json.loads(run("parse", "hpl", str(HPL / "2.0-failed.txt")).stdout)["results"]
    assert result["readings"] == [] and "FAILED" in result["refused"]


def test_fit_prints_estimates_with_intervals(tmp_path):
    """A line through two columns of a CSV file: the truth lies in the printed intervals."""
    table = tmp_path / "mine.csv"
    noise = [1.01, 0.99, 1.02, 0.98, 1.0, 1.01]
    rows = [f"{n},{3 * n**0.9 * e}" for n, e in zip((1, 2, 4, 8, 16, 32), noise)]
    table.write_text("nodes,rate\n" + "\n".join(rows) + "\n")
    done = json.loads(run("fit", "power_law", str(table), "--x", "nodes", "--y", "rate").stdout)
    for name, truth in zip(done["estimates"], (3, 0.9)):
        low, high = done["intervals_95"][name]
        assert low < truth < high
    assert done["aicc"] is not None and done["n"] == 6


def test_compare_ranks_the_models_of_a_table(tmp_path):
    """Blocks of a power law put that model first; a model that they cannot carry says why."""
    table = tmp_path / "mine.csv"
    random = np.random.default_rng(1)
    rows = [
        f"{block},{n},{3 * n**0.6 * random.normal(1, 0.01)}" for block in range(6) for n in (1, 2, 4, 8, 16)
    ]
    table.write_text("block,nodes,rate\n" + "\n".join(rows) + "\n")
    done = run("compare", str(table), "--x", "nodes", "--y", "rate", "--block", "block")
    found = {comparison["model"]: comparison for comparison in json.loads(done.stdout)}
    best = next(iter(found.values()))
    low, high = best["intervals_95"]["b"]
    assert best["model"] == "power_law" and low < 0.6 < high and "6 blocks" in best["interval_kind"]
    assert abs(best["held_out"]["error"]) < abs(found["constant"]["held_out"]["error"])
    assert found["segmented"]["refused"] and found["segmented"]["pooled"] is None


def test_plan_says_minutes_and_probabilities():
    """A line for each planned look, later ones no less probable; a campaign without falls is refused."""
    done = run("plan", "hpl_scaling")
    rows = [line.split() for line in done.stdout.splitlines() if re.fullmatch(r" *\d+ +[\d?]+( +[01]\.\d{3})+", line)]
    assert done.returncode == 0 and "margin 5 %" in done.stdout and [int(row[0]) for row in rows] == [4, 6, 9]
    for column in list(zip(*rows))[2:]:
        assert list(map(float, column)) == sorted(map(float, column))
    assert "nothing to plan" in run("plan", "hpl_size").stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("parse", "hpl", "README.md"), "not an output of HPL"),
        (("parse", "hpl", "no-such-file"), "cannot read no-such-file"),
        (("parse", "linpack", "README.md"), "there is no runner 'linpack'"),
        (("run", "nothing"), "there are: fan_out, frame_limits, hpl_"),
        (("run", "hpl_scaling", "--testbed", "mars"), "there is no testbed 'mars'"),
        (("run", "hpl_scaling", "--preset", "huge"), "preset 'huge' is unknown"),
        (("doctor", "--testbed", "mars"), "there is no testbed 'mars'"),
        (("doctor", "--testbed", "emulated"), "testbed emulated is no cluster"),
        (("fit", "parabola", "README.md", "--x", "a", "--y", "b"), "README.md"),
        (("fit", "constant", "data/published/smith_table1.csv", "--x", "P", "--y", "colour"), "no column 'colour'"),
    ],
)
def test_mistakes_are_answered_in_a_line_or_two(arguments, said):
    """Exit code 1, the reason on stderr, nothing on stdout, no traceback."""
    done = run(*arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert said in done.stderr and "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 2


def test_claims_of_an_unknown_source_are_refused():
    """The answer names the sources that have claims, in a line, and comes before anything is analysed."""
    done = run("claims", "--source", "nobody")
    assert done.returncode == 1 and "there are claims of nemo" in done.stderr and done.stderr.count("\n") == 1


def test_design_prints_a_table_with_what_is_assumed(tmp_path):
    """A row for each design and the assumptions; a file with faults is answered with all of them, in one line."""
    shipped = (ROOT / "data" / "designs" / "nemo.toml").read_text(encoding="utf-8")
    done = run("design", str(ROOT / "data" / "designs" / "nemo.toml"))
    assert done.returncode == 0 and "cisco_2to1 " in done.stdout and "Assumed:" in done.stdout
    mine = tmp_path / "mine.toml"
    mine.write_text(shipped.replace("price =", "cost =").replace('core = "force10_e600"', ""))
    done = run("design", str(mine))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "edges.smc_8505t.price is missing" in done.stderr and "designs.e600_2to1.core is missing" in done.stderr
    assert run("design", str(tmp_path)).stderr.startswith(f"falloff: cannot read {tmp_path}")


def test_a_mistake_ends_the_installed_command():
    """Its exit code is the command's, and its only line the reason."""
    done = installed("parse", "linpack", "README.md")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert done.stderr.startswith("falloff: there is no runner 'linpack'")


def test_doctor_tells_what_is_here():
    """Every tool of the main campaign is named, with its path or its remedy."""
    done = run("doctor")
    assert all(tool in done.stdout for tool in ("xhpl", "iperf3", "ping"))
    assert (done.returncode == 0) == ("MISSING" not in done.stdout)
