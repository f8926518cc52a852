"""`falloff import --print` on files that hold no result: a line says what they are, whatever they are."""

import json
import sys

import pytest
import recorded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_hpl import DECK

import falloff as cli
from runners import hpl_dat, outputs

HPL = recorded.FOLDER / "hpl"
TITLE = "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n"
NO_SLOTS = """--------------------------------------------------------------------------
There are not enough slots available in the system to satisfy the 8
slots that were requested by the application:

  xhpl
--------------------------------------------------------------------------
"""
CANCELLED = "slurmstepd: error: *** JOB 4242 ON n01 CANCELLED AT 2024-03-21T10:02:20 DUE TO TIME LIMIT ***\n"
NO_BLAS = "./xhpl: error while loading shared libraries: libopenblas.so.0: cannot open shared object file\n"


def parse(capsys, monkeypatch, tool, file):
    """Exit code, standard output and error of `falloff import tool file --print`."""
    monkeypatch.setattr(sys, "argv", ["falloff", "import", tool, str(file), "--print"])
    code = cli.main()
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("tool", "content", "said"),
    [
        ("hpl", "", "it is empty"),
        ("hpl", " \n\n", "it is empty"),
        ("hpl", b"\x7fELF\x02\x01\0\0", "it is binary data"),
        ("hpl", bytes(range(128, 256)), "it is binary data"),
        ("hpl", b"\x1f\x8b\x08\0\0", "it is compressed"),
        ("hpl", hpl_dat.render(DECK), "it is an HPL.dat input deck"),
        ("hpl", recorded.text("iperf3/3.12-ok"), "it is an iperf3 JSON output"),
        ("hpl", recorded.text("ping/20221126-ok"), "it is an output of ping"),
        ("hpl", recorded.text("dgemm/1-two-ranks"), "it is an output of dgemm"),
        ("iperf3", recorded.text("netperf/2.7.0-stream"), "it is an output of netperf"),
        ("netperf", recorded.text("iperf3/3.12-ok"), "it is an iperf3 JSON output"),
        ("hpl", recorded.text("hpcc/1.5.0-one-process"), "it is an output of HPCC"),
        ("hpl", '{"a": 1}', "it is JSON of another program"),
        ("hpl", "<!DOCTYPE html><html>", "it is a web page"),
        ("hpl", "#!/bin/bash\n#SBATCH -N 2\nsrun xhpl\n", "it is a batch script"),
        ("hpl", "Intel(R) Optimized LINPACK Benchmark data\n", "Intel's LINPACK, not of HPL"),
        ("hpl", CANCELLED, "it is output of a Slurm job; it says: slurmstepd: error: *** JOB 4242"),
        ("hpl", NO_SLOTS, "it says: There are not enough slots"),
        ("hpl", NO_BLAS, "it says: ./xhpl: error while loading shared libraries: libopenblas.so.0"),
        ("hpl", TITLE + CANCELLED, "an output of HPL 2.3 without a result: HPL did not reach 'End"),
        ("hpl", TITLE + "Column=1\n" * 9, "stopped or its output cut off before its first result"),
        ("hpl", TITLE + CANCELLED, "DUE TO TIME LIMIT"),
        ("hpl", TITLE * 3, "3 runs, of which the last is one of HPL 2.3"),
        ("hpl", "Dear all,\nWR is short for row-major.\n", "not an output of HPL 2.x"),
        ("hpcc", recorded.text("hpl/2.0-one-row"), "it is an output of HPL"),
        ("hpcc", "nothing\n", "not an output of HPCC"),
        (
            "hpcc",
            recorded.text("hpcc/1.5.0-two-processes").replace("HPL_nprow=1", "HPL_nprow=0"),
            "HPCC prints P = 0, which no run has",
        ),
        ("iperf3", recorded.text("hpl/2.0-one-row"), "it is an output of HPL"),
        ("ping", recorded.text("iperf3/3.12-ok"), "it is an iperf3 JSON output"),
        ("payload", recorded.text("hpl/2.0-one-row"), "it is an output of HPL"),
        ("hpl", recorded.text("payload/1-hpl"), "it is a table of messages by size"),
    ],
)
def test_a_file_without_results_is_named_for_what_it_is(
    tool, content, said, tmp_path, capsys, monkeypatch
):
    """Exit code 1, nothing on stdout, one line on stderr."""
    file = tmp_path / "given"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = parse(capsys, monkeypatch, tool, file)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
    assert f"{file} holds no result of {tool}: " in err and said in err


def test_a_folder_a_missing_file_and_a_huge_one_end_in_a_line(tmp_path, capsys, monkeypatch):
    """What cannot be read at all is named with the reason."""
    monkeypatch.setattr(outputs, "_LARGEST", 2**20)
    huge = tmp_path / "huge"
    huge.write_bytes(b"." * (2**20 + 1))
    absent = tmp_path / "none"
    for file, said in [
        (tmp_path, "Is a directory"),
        (absent, "No such file"),
        (huge, "larger than 1 MiB"),
    ]:
        code, out, err = parse(capsys, monkeypatch, "hpl", file)
        assert (code, out, len(err.splitlines())) == (1, "", 1) and said in err


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_of_other_systems_are_read(encoding, tmp_path, capsys, monkeypatch):
    """PowerShell's redirection writes UTF-16, other editors a mark before UTF-8."""
    file = tmp_path / "HPL.out"
    file.write_bytes((HPL / "2.0-one-row.txt").read_text().replace("\n", "\r\n").encode(encoding))
    code, out, _ = parse(capsys, monkeypatch, "hpl", file)
    assert code == 0 and json.loads(out)["results"][0]["settings"]["N"] == 3000


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=400),
    tool=st.sampled_from(["hpl", "hpcc", "iperf3", "ping", "dgemm", "payload"]),
)
def test_any_bytes_end_in_a_line(tmp_path, capsys, monkeypatch, content, tool):
    """No file of any content ends in a traceback."""
    file = tmp_path / "fuzzed"
    file.write_bytes(content)
    code, out, err = parse(capsys, monkeypatch, tool, file)
    assert (code, out, len(err.splitlines())) == (1, "", 1)
