"""Build the tools that no package brings: `python -m runners.build`.

    xhpl, xhpl_payload          HPL, and HPL that counts its messages
    xhpl_reference              HPL with the plainest of BLAS, where the reference BLAS is installed
    dgemm, node_rates, token    what a node delivers to DGEMM and STREAM, and exchanges of tokens
    suspects                    all nodes and pairs of nodes of a cluster
    delay_line, shared_wire, channel_bond   what lies between emulated nodes
    payload.so, record.so   for any MPI program: counts its messages, records its calls
    mptcp.so, pace.so       for any program: gives it MPTCP, paces its ranks
    xhpl_simulated, xhpl_recorded, dgemm_simulated, xhpl_unmocked, noclock.so   for SimGrid's SMPI, where it is installed

The simulated HPL is HPL's own code. Functions of the same name in simulated_hpl.c come first, so that the
linker leaves the archive's out; four others are wrapped. xhpl_unmocked is the same archive with a real BLAS,
which tells its pivots and its messages: what the simulation is compared with.

Done once: a stamp beside the programs holds the checksum of all that they were made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, List, Optional, Sequence

from runners import hpl, hpl_dat, hpl_source
from runners.record import FalloffError
from runners.tools import BUILT

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE / "src"

# No processor-specific flags: the time is spent in the BLAS, which chooses its kernels at run time.
# -fcommon and -w: HPL is from before the compilers that mind.
_HPL_FLAGS = (
    "-O2 -fcommon -w -DAdd_ -DF77_INTEGER=int -DStringSunStyle -DHPL_STDC_HEADERS -DHPL_CALL_CBLAS "
    "-DHPL_DETAILED_TIMING"
).split()
_LIBRARIES = ("-lopenblas", "-lm")
_LEAN = ("-O2", "-Wl,--as-needed")  # for what is no MPI program

# Sources, the options before them and the libraries after them.
_PROGRAMS = {
    "dgemm": (("dgemm.c",), ("-O2",), _LIBRARIES),
    "node_rates": (("node_rates.c",), (*_LEAN, "-fopenmp"), _LIBRARIES),
    "suspects": (("suspects.c",), ("-O2", "-fopenmp"), _LIBRARIES),
    "delay_line": (("delay_line.c",), _LEAN, ()),
    "shared_wire": (("shared_wire.c",), _LEAN, ()),
    "channel_bond": (("channel_bond.c",), _LEAN, ()),
    "token": (("token.c", "token_tcp.c", "token_coordinator.c"), _LEAN, ("-lm",)),
    "token_mpi": (("token.c", "token_mpi.c"), _LEAN, ("-lm",)),
    "payload.so": (("payload.c",), ("-O2", "-shared", "-fPIC"), ()),
    "record.so": (("record.c",), ("-O2", "-shared", "-fPIC"), ()),
    "mptcp.so": (("mptcp.c",), (*_LEAN, "-shared", "-fPIC"), ("-ldl", "-lm")),
    "pace.so": (("pace.c",), (*_LEAN, "-shared", "-fPIC"), ("-ldl", "-lm")),
}

# Debian's libblas-dev. An archive, linked by its path: what is linked by the name blas becomes at
# run time the BLAS that the machine's alternatives point to, which is OpenBLAS.
_REFERENCE_BLAS = "blas/libblas.a"

SIMULATED = ("xhpl_simulated", "xhpl_recorded", "dgemm_simulated", "noclock.so", "xhpl_unmocked")
SIMGRID_REMEDY = "SimGrid is missing: `apt-get install libsimgrid-dev`"
# SMPI's headers would make every malloc its own. HPL sends rows that it has copied together, since a
# datatype of a matrix that does not exist cannot be packed.
_SIMULATED_FLAGS = ("-DSMPI_NO_OVERRIDE_MALLOC", "-DHPL_NO_MPI_DATATYPE", "-DHPL_COPY_L")
# What simulated.c does before MPI's own function of that name.
_OF_A_NODE = ("Init", "Finalize", "Send", "Ssend", "Issend", "Recv", "Irecv", "Wait", "Iprobe")
_WRAPPED = ("malloc", "free", "HPL_pdpanel_init", "HPL_pdpanel_free")

# A small system for one process.
TRIAL_DECK = {
    **{"N": 200, "NB": 32, "P": 1, "Q": 1, "PMAP": 0, "THRESHOLD": 16.0},
    **{"PFACT": 1, "NBMIN": 4, "NDIV": 2, "RFACT": 1, "BCAST": 1, "DEPTH": 1},
    **{"SWAP": 2, "SWAP_THRESHOLD": 64, "L1": 0, "U": 0, "EQUILIBRATION": 1, "ALIGNMENT": 8},
}


def build(folder: Path = BUILT) -> bool:
    """Put the programs into `folder`; False when they are there already, made from the same inputs.

    Raises FalloffError with the remedy when a compiler, a library or HPL's source is missing; only
    xhpl_reference is left out without its library.
    """
    compiler = _compiler()
    reference = reference_blas(compiler)
    linked = {"xhpl": _LIBRARIES, "xhpl_payload": (str(_SOURCES / "payload.c"), *_LIBRARIES)}
    if reference:
        linked["xhpl_reference"] = (str(reference), "-lm")

    def make(work: Path, top: Path) -> None:
        for name, (sources, options, libraries) in _PROGRAMS.items():
            files = [str(_SOURCES / source) for source in sources]
            run_compiler(compiler, [*options, *files, "-o", name, *libraries], work)
        objects = compile_hpl(compiler, top, work)
        for name, libraries in linked.items():
            run_compiler(compiler, [*objects, "-o", name, *libraries], work)
            require_passing(work / name, work)
        # An earlier build's, whose library may be gone.
        (folder / "xhpl_reference").unlink(missing_ok=True)

    more = [reference] if reference else []
    return _made(folder, "stamp", compiler, more, [*_PROGRAMS, *linked], make)


def build_simulated(folder: Path = BUILT) -> bool:
    """The same for the programs of SMPI; raises FalloffError with the remedy when SimGrid is missing."""
    compiler = shutil.which("smpicc")
    if not compiler:
        raise FalloffError(SIMGRID_REMEDY)

    def make(work: Path, top: Path) -> None:
        def files(*names: str) -> List[str]:
            return [str(_SOURCES / name) for name in names]

        objects = compile_hpl(compiler, top, work, _SIMULATED_FLAGS)
        main = "xhpl_main.o"
        run_compiler("ar", ["rcs", "libhpl.a", *(name for name in objects if name != main)], work)
        flags = ["-O2", "-std=c99", "-DHPL_CALL_CBLAS", f"-I{_SOURCES}", *_SIMULATED_FLAGS]
        flags += [f"-I{top / include}" for include in hpl_source.INCLUDES]
        wrap = "-Wl," + ",".join(f"--wrap={name}" for name in _WRAPPED)
        own = [*flags, *files("simulated.c", "simulated_hpl.c"), wrap, "libhpl.a", "-lm"]
        run_compiler(compiler, [main, *own, "-o", "xhpl_simulated"], work)
        # HPL calls the recorder, which calls the simulated node in MPI's place.
        for source, prefix in (("record.c", "PMPI_"), ("simulated.c", "MPI_")):
            renamed = [f"-D{prefix}{name}=node_{name}" for name in _OF_A_NODE]
            if source == "record.c":  # what is recorded is kept, unlike the matrix
                renamed += ["-Dmalloc=__real_malloc", "-Dfree=__real_free"]
            to = ["-c", *files(source), "-o", f"under_{source}.o"]
            run_compiler(compiler, [*flags, *renamed, *to], work)
        under = ["under_record.c.o", "under_simulated.c.o", *files("simulated_hpl.c")]
        run_compiler(
            compiler, [main, *flags, *under, wrap, "libhpl.a", "-lm", "-o", "xhpl_recorded"], work
        )
        run_compiler(compiler, [*files("dgemm.c"), *own, "-o", "dgemm_simulated"], work)
        noclock = ["-O2", "-shared", "-fPIC", *files("noclock.c"), "-o", "noclock.so"]
        run_compiler("cc", noclock, work)
        real = [*flags, *files("pivots.c", "payload.c"), "-Wl,--wrap=HPL_bwait", "libhpl.a"]
        run_compiler(compiler, [main, *real, *_LIBRARIES, "-o", "xhpl_unmocked"], work)

    return _made(folder, "stamp_simulated", compiler, [], SIMULATED, make)


def _made(
    folder: Path,
    stamp: str,
    compiler: str,
    libraries: Sequence[Path],
    programs: Sequence[str],
    make: Callable[[Path, Path], None],
) -> bool:
    """Let `make` put the programs into a scratch folder, then all of them into `folder`, unless they are
    there, made from the same sources, libraries and compiler."""
    version = _answer(compiler, "--version").encode()
    code = [_HERE / "build.py", _HERE / "hpl_source.py", *sorted(_SOURCES.iterdir()), *libraries]
    parts = [version, *(path.read_bytes() for path in code)]
    inputs, file = hashlib.sha256(b"\0".join(parts)).hexdigest(), folder / stamp
    is_current = file.exists() and file.read_text() == inputs
    if is_current and all((folder / name).exists() for name in programs):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        make(work, hpl_source.unpack(work))
        for name in programs:
            os.replace(work / name, folder / name)
    file.write_text(inputs)
    return True


def reference_blas(compiler: str) -> Optional[Path]:
    """The archive of the reference BLAS among the compiler's libraries; None when it is not installed."""
    found = Path(_answer(compiler, f"-print-file-name={_REFERENCE_BLAS}").strip())
    return found if found.is_absolute() else None  # the name itself comes back when there is none


def compile_hpl(compiler: str, top: Path, work: Path, flags: Sequence[str] = ()) -> List[str]:
    """Compile HPL's sources below `top`, and the main program that HPC Challenge lacks; the objects' names."""
    folders = [top / "hpl" / part for part in ("src", "testing")]
    sources = sorted(path for folder in folders for path in folder.rglob("*.c"))
    sources.append(_SOURCES / "xhpl_main.c")
    flags = [*_HPL_FLAGS, *flags, *(f"-I{top / include}" for include in hpl_source.INCLUDES)]
    jobs = min(os.cpu_count() or 1, len(sources))
    with ThreadPoolExecutor(jobs) as pool:
        commands = [[*flags, "-c", *map(str, sources[job::jobs])] for job in range(jobs)]
        list(pool.map(lambda command: run_compiler(compiler, command, work), commands))
    return sorted(path.name for path in work.glob("*.o"))


def require_passing(xhpl: Path, folder: Path) -> None:
    """Solve one small system on one process (started without mpirun) and insist on its residual."""
    (folder / "HPL.dat").write_text(hpl_dat.render(TRIAL_DECK))
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    output = subprocess.run(
        [str(xhpl)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **root},
    ).stdout
    try:
        (row,) = hpl.rows(output)
    except (FalloffError, ValueError) as error:
        last = (output.strip().splitlines() or [str(error)])[-1]
        hint = "is the MPI that compiled it the one installed?"
        raise FalloffError(f"the {xhpl.name} just built does not run ({last}): {hint}") from None
    if row.check != "PASSED":
        reason = f"residual {row.residual}): the BLAS is at fault"
        raise FalloffError(f"the {xhpl.name} just built computes wrongly ({reason}")


def _compiler() -> str:
    compiler = shutil.which("mpicc")
    if not compiler:
        remedy = "`apt-get install libopenmpi-dev openmpi-bin` (or your cluster's MPI module)"
        raise FalloffError(f"mpicc is not here: {remedy}")
    return compiler


def run_compiler(compiler: str, arguments: Sequence[str], folder: Path) -> None:
    """Run it in `folder`; raises FalloffError with its first complaint, and the remedy if that is known."""
    done = subprocess.run([compiler, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        faults = [line for line in lines if "error" in line or "cannot find" in line]
        first = (faults or lines or ["no message"])[0]
        lacks_blas = "openblas" in first or "cblas.h" in first
        remedy = " (`apt-get install libopenblas-dev`)" if lacks_blas else ""
        raise FalloffError(f"{Path(compiler).name} fails: {first}{remedy}")


def _answer(compiler: str, question: str) -> str:
    return subprocess.run([compiler, question], capture_output=True, text=True).stdout


def main() -> int:
    """Build, and say in a line each what was done and left out; 1 when xhpl could not be built."""
    try:
        made = build()
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    print(f"xhpl, {', '.join(_PROGRAMS)} {'built' if made else 'are already'} in {BUILT}")
    if not (BUILT / "xhpl_reference").exists():
        remedy = "`apt-get install libblas-dev`"
        print(f"left out: xhpl_reference, since the reference BLAS is missing: {remedy}")
    try:
        build_simulated()
    except FalloffError as error:
        print(f"left out: xhpl_simulated: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
