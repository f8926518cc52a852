"""A node's measured rates: the program, what is made of its output, and `falloff doctor
--rates`.
"""

import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import recorded
from local_testbed import LocalTestbed, open_testbed

import falloff as cli
from runners import build
from runners.engine import session
from runners.records.record import Command, Execution
from runners.tools import node_rates

ROOT = Path(__file__).resolve().parent.parent
CASE = "node_rates/1-two-threads"
SAID = recorded.text(CASE)

PROGRAM = build.BUILT / "node_rates"
needs_built = pytest.mark.skipif(
    not PROGRAM.exists(), reason="node_rates is not built here: run `make setup`"
)


def test_the_rates_are_those_of_the_model():
    """Every name that the simulated node asks for, and no other."""
    model = (ROOT / "runners" / "src" / "simulated.h").read_text()
    assert list(node_rates.UNITS) == re.findall(r"^ +rate\((\w+)\)", model, re.M)


@pytest.mark.parametrize(("fastest", "half"), [(1e9, 0), (3e10, 17.5), (1e13, 500)])
def test_fit_recovers_what_is_true(fastest, half):
    """Rates made by F k / (k + h) give F and h back, from any order of lengths."""
    lengths = [64, 16, 256, 128, 32]
    found = node_rates.half_length(lengths, [fastest * k / (k + half) for k in lengths])
    assert found == (pytest.approx(fastest, rel=1e-6), pytest.approx(half, rel=1e-6, abs=1e-6))


@pytest.mark.parametrize(
    ("measured", "half"),
    [([5e9, 4e9, 3e9, 2e9, 1e9], 0), ([1e6, 1e7, 1e8, 1e10, 1e13], 1024)],
)
def test_a_disturbed_node_has_a_finite_rate_too(measured, half):
    """Where short loops are the faster ones, or rates grow faster than k: h is at a bound, F finite
    and above 0.
    """
    fastest, found = node_rates.half_length([16, 32, 64, 128, 256], measured)
    assert 0 < fastest < 1e15 and found == half


@needs_built
def test_program_runs_and_its_rates_order_sensibly(monkeypatch):
    """DGEMM gains from longer inner dimensions, and DTRSM is no faster than DGEMM.

    One core copies no faster than all cores run STREAM's triad, and is slower across rows, but for
    noise.
    """
    monkeypatch.setattr(node_rates, "_HERE_S", 0.005)
    monkeypatch.setattr(node_rates, "array_mib", lambda: 16)
    found, _ = node_rates.of_turns(node_rates.run_here())
    assert max(found["dgemm_k_half"]) > 0 and 0 < min(found["dtrsm_share"]) < 1
    assert min(found["core_byte_s"]) < 3 * max(found["node_byte_s"])
    assert 8 / max(found["core_byte_s"]) < max(found["strided_s"])


def test_arrays_are_four_times_the_last_level_caches(monkeypatch, tmp_path):
    """Two caches of 32 MiB, each shared by two processors, make 256 MiB; unknown caches the least
    size.
    """
    for processor, shared in enumerate(("0-1", "0-1", "2-3", "2-3")):
        for index, level, size, whose in (
            (2, 2, "1024K", str(processor)),
            (3, 3, "32768K", shared),
        ):
            cache = tmp_path / f"cpu{processor}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            for name, value in (("level", level), ("size", size), ("shared_cpu_list", whose)):
                (cache / name).write_text(f"{value}\n")
    for folder, size in ((tmp_path, 4 * 2 * 32), (tmp_path / "nowhere", 64)):
        monkeypatch.setattr(node_rates, "_PROCESSORS", folder)
        assert node_rates.array_mib() == size


def test_falloff_rates_measures_on_a_testbed(monkeypatch, capsys):
    """With --testbed the node of that testbed is measured: the opened testbed runs node_rates,
    once.
    """
    asked = []
    testbed = SimpleNamespace(open_testbed=open_testbed)
    monkeypatch.setattr(session, "testbed_module", lambda description: testbed)
    monkeypatch.setattr(
        LocalTestbed, "_execute", lambda self, command: asked.append(command.argv) or said(command)
    )
    monkeypatch.setattr(node_rates, "array_mib", lambda: 128)
    monkeypatch.setattr(node_rates, "_ON_TESTBED_S", 0.1)
    monkeypatch.setattr(sys, "argv", ["falloff", "doctor", "--rates", "--testbed", "emulated"])
    assert cli.main() == 0 and asked == [("node_rates", "0.1", "128")]
    assert set(tomllib.loads(capsys.readouterr().out)["rates"]) == set(node_rates.UNITS)


def said(command: Command) -> Execution:
    """A finished execution that printed the recorded output."""
    return Execution(command.argv[0], command.argv, SAID, "", 0, 0.0, 1.0)
