"""The recorder sees every MPI function that the installed header declares, called from C or
Fortran: nothing passes unseen.
"""

import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runners import executables, payload
from runners.recording import mpi_functions, recorder
from runners.recording.calls import COLLECTIVES, NON_BLOCKING, POINT_TO_POINT
from runners.records.record import Unreadable

HERE = Path(__file__).parent / "support"
FALLOFF = Path(sys.executable).with_name("falloff")
FORTRAN = next(filter(None, map(shutil.which, ("gfortran", "gfortran-12"))), None)
LAUNCH = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np")
needs_mpi = pytest.mark.skipif(not shutil.which("mpicc"), reason="Open MPI is not here")
needs_fortran = pytest.mark.skipif(
    not (FORTRAN and shutil.which("mpifort")), reason="a Fortran compiler is not here"
)


def recorded(program, *words, ranks=2):
    """The exit code and the text of a recording."""
    library = executables.find("record.so", {})
    argv = [*LAUNCH, str(ranks), str(program), *words]
    code, (text,) = payload.run(argv, {"FALLOFF_RECORD": library})
    return code, text


@pytest.fixture(scope="module")
def refused_calls(tmp_path_factory):
    program = tmp_path_factory.mktemp("refused") / "calls"
    source = str(HERE / "refused_calls.c")
    subprocess.run(["mpicc", "-O1", source, "-o", str(program), "-lpthread"], check=True)
    return program


@needs_mpi
def test_every_function_of_the_header_has_a_rule_and_every_rule_a_function():
    """The header's own text is the list: names that it declares, and those that MPI 3 removed."""
    (include,) = re.findall(
        r"-I(\S+)", subprocess.check_output(["mpicc", "-showme:compile"], text=True)
    )[:1]
    header = (Path(include) / "mpi.h").read_text("utf-8")
    declared = {
        f"MPI_{name}" for name in re.findall(r"^OMPI_DECLSPEC.*?\bMPI_(\w+) *\(", header, re.M)
    }
    rules = mpi_functions.rules()
    starred = re.findall(r"(\w+)\*", re.sub("#.*", "", mpi_functions.RULES.read_text("utf-8")))
    optional = {name if name.startswith("MPIX_") else f"MPI_{name}" for name in starred}
    assert len(declared) > 380 and declared <= rules.keys()
    found = {function.name for function in mpi_functions.declared("mpicc")}
    assert declared <= found
    assert found <= rules.keys() <= found | optional
    assert set(rules.values()) == {"recorded", "creating", "waiting", "local", "refused"}


@needs_mpi
def test_all_but_the_local_functions_are_wrapped():
    """As the built library exports them, each by both of its names."""
    wanted = {name for name, rule in mpi_functions.rules().items() if rule != "local"}
    exported = symbols(executables.find("record.so", {}), "T")
    assert {name for name in exported if name.startswith("MPI")} == wanted
    assert {name[1:] for name in exported if name.startswith("PMPI")} == wanted


def symbols(library, kind):
    """The names in a library that it defines (T) or takes from elsewhere (U)."""
    lines = subprocess.check_output(["nm", "-D", str(library)], text=True).splitlines()
    return {line.split()[-1].partition("@")[0] for line in lines if f" {kind} " in line}


@needs_fortran
def test_every_fortran_function_calls_one_that_is_wrapped():
    """Those of mpif.h and of the modules: each ends in a C function of its name, unless that is
    local.
    """
    folder = Path(subprocess.check_output(["mpicc", "-showme:libdirs"], text=True).split()[0])
    library = folder / "libmpi_mpifh.so"
    called = {name.lower() for name in symbols(library, "U")}
    rules = {name.lower(): rule for name, rule in mpi_functions.rules().items()}
    entries = {
        re.sub(r"_cptr$", "", name[len("ompi") : -len("_f")])
        for name in symbols(library, "T")
        if re.fullmatch(r"ompix?_\w+_f", name)
    } - {"_f_sync_reg"}
    wrapped = {name for name in entries if rules[f"mpi{name}"] != "local"}
    assert len(wrapped) > 180
    assert [name for name in sorted(wrapped) if f"pmpi{name}" not in called] == []
    modern = symbols(folder / "libmpi_usempif08.so", "U")
    assert all(re.match(r"ompix?_|pmpi_|PMPI_|(?!.*mpi)", name, re.I) for name in modern)


@needs_mpi
@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("neighbours", "MPI_Ineighbor_alltoall"),
        ("one-sided", "MPI_Put, MPI_Win_create, MPI_Win_fence, MPI_Win_free"),
        ("file", "MPI_File_close, MPI_File_open"),
    ],
)
def test_what_no_replay_can_do_is_refused_by_all_its_names(refused_calls, word, names):
    """Once each, however often they are called; what MPI calls inside of them is not the
    program's.
    """
    code, text = recorded(refused_calls, word)
    assert code == 0 and text.count(" unknown ") == 2 * len(names.split(","))
    with pytest.raises(Unreadable, match=f"the program calls {names}, which a replay cannot do"):
        recorder.read(text)


@needs_mpi
def test_what_makes_a_communicator_is_left_out(refused_calls):
    """MPI_Cart_create and MPI_Comm_size are no calls of a replay."""
    code, text = recorded(refused_calls)
    assert code == 0
    assert [call.name for call in recorder.read(text)[1]] == ["allreduce", "end"]


@needs_mpi
def test_several_threads_at_once_are_refused(refused_calls):
    code, text = recorded(refused_calls, "threads")
    assert code == 0
    with pytest.raises(Unreadable, match="several threads"):
        recorder.read(text)


@needs_mpi
@pytest.mark.parametrize("end", ["fails", "aborts", "crashes"])
def test_a_program_that_fails_leaves_no_recording(refused_calls, end, tmp_path, monkeypatch, capfd):
    """It says after MPI_Finalize that its result is wrong, gives up, or is killed by the kernel:
    its exit code and a line, in which nothing is said to be recorded."""
    from analysis.commands import networks

    monkeypatch.setattr(recorder.keep, "__defaults__", (tmp_path / "programs",))
    monkeypatch.chdir(tmp_path)
    words = [*LAUNCH, "2", str(refused_calls), end]
    code = networks.profile.callback(
        words, "mine", "", "smith", nodes=[], networks=(), mpi=None, twice="", half=""
    )
    assert code and not (tmp_path / "programs").exists()
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("falloff:")]
    assert said == [
        f"falloff: mpirun ended with exit code {code}: a program that fails is not recorded"
    ]
    assert code == {"fails": 3, "aborts": 7, "crashes": 139}[end]


@needs_fortran
@pytest.mark.parametrize("binding", ["77", "90", "8"])
def test_a_fortran_program_is_recorded_or_refused(binding, tmp_path):
    """By mpif.h, `use mpi` and `use mpi_f08`: messages, a collective in place, and a call that is
    refused.
    """
    program = tmp_path / "calls"
    source = str(HERE / "recorded_calls.F90")
    subprocess.run(
        ["mpifort", "-cpp", f"-DBINDING={binding}", source, "-o", str(program)],
        check=True,
        env={**os.environ, "OMPI_FC": FORTRAN},
    )
    code, text = recorded(program)
    assert code == 0
    for rank, calls in enumerate(recorder.read(text)):
        names = ["irecv", "isend", "wait", "wait", "allreduce", "end"]
        assert [call.name for call in calls] == names
        assert [call.size for call in calls] == [4000, 4000, 0, 0, 4, 0]
        assert calls[0].partner == calls[1].partner == 1 - rank
    code, text = recorded(program, "window")
    assert code == 0
    with pytest.raises(Unreadable, match="calls MPI_Win_create, which a replay cannot do"):
        recorder.read(text)


@pytest.fixture(scope="module")
def monitored_calls(tmp_path_factory):
    program = tmp_path_factory.mktemp("monitored") / "calls"
    subprocess.run(["mpicc", str(HERE / "monitored_calls.c"), "-o", str(program)], check=True)
    return program


@needs_mpi
def test_the_bytes_are_those_that_open_mpi_counts_itself(monitored_calls, monkeypatch, tmp_path):
    """Each call that moves data, of four ranks, also when it is kept; what makes communicators is
    on neither side.
    """
    code, text = recorded(monitored_calls, ranks=4)
    assert code == 0 and recorder.is_monitored(text)
    names = {call.name for call in recorder.read(text)[0]}
    assert names >= {*COLLECTIVES, *NON_BLOCKING, *POINT_TO_POINT}
    monkeypatch.setattr(recorder, "STORE", tmp_path)
    kept = recorder.keep(text, "mine")
    again = lzma.decompress(kept.read_bytes()).decode()
    assert recorder.is_monitored(again) and recorder.read(again) == recorder.read(text)


@needs_mpi
@pytest.mark.parametrize(
    ("line", "other", "said"),
    [
        (" bcast 0 1600 3", " bcast 0 160000 3", "from rank 3 to rank 0 in collectives"),
        (r"isend (\d+) 3 0 2 20000", r"isend \1 3 0 2 2000", "from rank 0 to rank 3 in messages"),
    ],
)
def test_other_bytes_than_open_mpi_counts_are_refused(monitored_calls, line, other, said):
    """As a recorder would leave them that misreads a call; the answer has both numbers."""
    _, text = recorded(monitored_calls, ranks=4)
    wrong, changed = re.subn(line, other, text)
    assert changed
    with pytest.raises(Unreadable, match=rf"has \d+ B {said}, and Open MPI's own monitoring \d+ B"):
        recorder.read(wrong)


@needs_mpi
def test_a_call_that_the_recorder_has_not_seen_is_refused(monitored_calls):
    """All lines of one collective are gone, as if it passed unseen."""
    _, text = recorded(monitored_calls, ranks=4)
    unseen = "".join(line for line in text.splitlines(True) if " alltoall 0 300000" not in line)
    with pytest.raises(Unreadable, match="in collectives, and Open MPI's own monitoring"):
        recorder.read(unseen)


@pytest.fixture(scope="module")
def two_step_calls(tmp_path_factory):
    program = tmp_path_factory.mktemp("two_steps") / "calls"
    subprocess.run(["mpicc", str(HERE / "two_step_calls.c"), "-o", str(program)], check=True)
    return program


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("size", [7, 3000])
def test_collectives_that_open_mpi_makes_of_others_are_recorded(two_step_calls, ranks, size):
    """It counts the gather and the broadcast, too; that is no reason to refuse a right
    recording.
    """
    code, text = recorded(two_step_calls, str(size), ranks=ranks)
    assert code == 0 and recorder.is_monitored(text)
    assert len(recorder.read(text)) == ranks


@needs_mpi
@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("name", ["allgatherv", "reduce_scatter", "allreduce", "alltoall"])
def test_a_call_that_one_rank_lost_is_refused(two_step_calls, name, rank):
    """Also where the root's counts leave room for it, and where all ranks lost theirs."""
    _, text = recorded(two_step_calls, "7", ranks=3)
    parts = re.split(r"(?m)(?=^rank \d+$|^end of recording)", text)
    line = re.compile(rf"(?m)^\d+ {name} .*\n")
    assert line.search(parts[1 + rank])
    lost = line.sub("", parts[1 + rank], count=1)
    with pytest.raises(Unreadable, match="of the same MPI_|own monitoring"):
        recorder.read("".join([*parts[: 1 + rank], lost, *parts[2 + rank :]]))
    with pytest.raises(Unreadable, match="own monitoring"):
        recorder.read("".join([parts[0], *(line.sub("", part) for part in parts[1:])]))


@needs_mpi
def test_without_the_monitoring_a_recording_is_not_compared(monitored_calls, monkeypatch):
    """Open MPI is told to take its plain transport."""
    monkeypatch.setenv("OMPI_MCA_pml", "ob1")
    code, text = recorded(monitored_calls, "short")
    assert code == 0 and not recorder.is_monitored(text)
    assert len(recorder.read(text)) == 2
