"""Build the tools that no package brings: `python -m runners.build`.

    xhpl, xhpl_payload          HPL, and HPL that counts its messages
    xhpl_reference              HPL with the plainest of BLAS, where the reference BLAS is installed
    dgemm, node_rates, token    what a node delivers to DGEMM and STREAM, and exchanges of tokens
    suspects                    all nodes and pairs of nodes of a cluster
    delay_line, shared_wire, channel_bond, buffered_switch   what lies between emulated nodes
    exchange                    messages one way and both ways
    incast, congestion          many senders to one receiver, and programs beside others that flood
                                the network
    stencil, transpose          two programs of data/programs
    payload.so, record.so       for any MPI program: counts its messages, records its calls
    mptcp.so, pace.so           for any program: gives it MPTCP, paces its ranks by their BLAS
    pace_program.so             for any MPI program: paces its ranks by their processor time
    xhpl_simulated, xhpl_recorded, dgemm_simulated, xhpl_unmocked, noclock.so,
    exchange_simulated, replay_recorded
                                for SimGrid's SMPI, where it is installed: HPL, exchanges, and any
                                recorded program

Done once: a stamp beside the programs holds the checksum of all that they were made from.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from runners import hpl_dat
from runners.executables import BUILT
from runners.recording import mpi_functions
from runners.records.journal import write_whole
from runners.records.record import FalloffError
from runners.tools import hpl

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE / "src"
_EXAMPLES = _HERE.parent / "data" / "programs"

PROGRAMS = (
    *("xhpl", "xhpl_payload", "dgemm", "node_rates", "suspects", "token", "token_mpi", "exchange"),
    *("delay_line", "shared_wire", "channel_bond", "buffered_switch", "incast", "congestion"),
    *("stencil", "transpose"),
    *("payload.so", "record.so", "mptcp.so", "pace.so", "pace_program.so"),
)
# Debian's libblas-dev. An archive, linked by its path: what is linked by the name blas becomes at
# run time the BLAS that the machine's alternatives point to, which is OpenBLAS.
_REFERENCE_BLAS = "blas/libblas.a"

SIMULATED = (
    *("xhpl_simulated", "xhpl_recorded", "dgemm_simulated", "xhpl_unmocked"),
    *("exchange_simulated", "replay_recorded", "noclock.so"),
)
_SOLVING = ("xhpl", "xhpl_payload", "xhpl_reference")  # which have to show it
SIMGRID_REMEDY = "SimGrid is missing: `apt-get install libsimgrid-dev`"
# A small system for one process.
TRIAL_DECK = {
    **{"N": 200, "NB": 32, "P": 1, "Q": 1, "PMAP": 0, "THRESHOLD": 16.0},
    **{"PFACT": 1, "NBMIN": 4, "NDIV": 2, "RFACT": 1, "BCAST": 1, "DEPTH": 1},
    **{"SWAP": 2, "SWAP_THRESHOLD": 64, "L1": 0, "U": 0, "EQUILIBRATION": 1, "ALIGNMENT": 8},
}

# HPL's source: stock HPL 2.0, the folder hpl/ of Debian's hpcc package, by apt or from the tarball
# that HPL_SOURCE names.
SHA256 = "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8"

_HELPER = Path("/usr/lib/apt/apt-helper")
_DEBIAN = "http://deb.debian.org/debian"
_POOL = "pool/main/h/hpcc/hpcc_1.5.0.orig.tar.gz"
_REMEDY = f"download {_DEBIAN}/{_POOL} and run `HPL_SOURCE=/path/to/{Path(_POOL).name} make setup`"

# HPC Challenge has an input file of its own and never prints to stdout; the other names are those
# that MPI-3 removed.
_EDITS = {
    "testing/ptest/HPL_pdinfo.c": (
        ('#define INFILE "hpccinf.txt"', '#define INFILE "HPL.dat"'),
        ("fid = 8; /* always write to a file */", ""),
        ('strcpy( file, "hpccoutf.txt" );', ""),
    ),
    "src/comm/HPL_packL.c": (
        ("MPI_Address(", "MPI_Get_address("),
        ("MPI_Type_struct(", "MPI_Type_create_struct("),
    ),
}


def build(folder: Path = BUILT) -> bool:
    """Put the programs into `folder`; False when they are there already, made from the same inputs.

    Raises FalloffError with the remedy when a compiler, a library or HPL's source is missing; only
    xhpl_reference is left out without its library.
    """
    compiler = _compiler()
    reference = reference_blas(compiler)
    more = ["xhpl_reference", f"REFERENCE={reference}"] if reference else []
    is_new = _made(folder, "stamp", compiler, [*PROGRAMS, *more])
    if not reference:  # an earlier build's may be there
        (folder / "xhpl_reference").unlink(missing_ok=True)
    return is_new


def build_simulated(folder: Path = BUILT) -> bool:
    """The same for the programs of SMPI; raises FalloffError with the remedy when SimGrid is
    missing.
    """
    compiler = shutil.which("smpicc")
    if not compiler:
        raise FalloffError(SIMGRID_REMEDY)
    return _made(folder, "stamp_simulated", compiler, [*SIMULATED, "SMPI=1"])


def _made(folder: Path, stamp: str, compiler: str, words: Sequence[str]) -> bool:
    """Make the programs that `words` names, beside variables of make, in a scratch folder and put
    all of them into `folder`, unless they are there, made from the same sources, words and
    compiler."""
    programs = [word for word in words if "=" not in word]
    sources = [*sorted(_SOURCES.iterdir()), *sorted(_EXAMPLES.glob("*.c"))]
    code = [_HERE / "build.py", *sources]
    wrappers = mpi_functions.wrappers(compiler)  # of the header that is installed now
    texts = [wrappers, *words, *(path.read_text("utf-8") for path in code)]
    parts = [_answer(compiler, "--version"), *texts]
    inputs, file = hashlib.sha256("\0".join(parts).encode()).hexdigest(), folder / stamp
    is_current = file.exists() and file.read_text() == inputs
    if is_current and all((folder / name).exists() for name in programs):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        unpack(work)
        (work / "mpi_wrappers.h").write_text(wrappers)
        run_make(work, [f"CC={compiler}", *words])
        for name in programs:
            if name in _SOLVING:
                require_passing(work / name, work)
        for name in programs:
            os.replace(work / name, folder / name)
    write_whole(file, inputs)
    return True


def reference_blas(compiler: str) -> Optional[Path]:
    """The archive of the reference BLAS among the compiler's libraries; None when it is not
    installed.
    """
    library = Path(_answer(compiler, f"-print-file-name={_REFERENCE_BLAS}").strip())
    # The name itself comes back when there is none.
    return library if library.is_absolute() else None


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
        raise FalloffError(
            f"the {xhpl.name} just built does not run ({last}): "
            "is the MPI that compiled it the one installed?"
        ) from None
    if row.check != "PASSED":
        raise FalloffError(
            f"the {xhpl.name} just built computes wrongly (residual {row.residual}): "
            "the BLAS is at fault"
        )


def _compiler() -> str:
    compiler = shutil.which("mpicc")
    if not compiler:
        raise FalloffError(
            "mpicc is not here: "
            "`apt-get install libopenmpi-dev openmpi-bin` (or your cluster's MPI module)"
        )
    return compiler


def run_make(folder: Path, words: Sequence[str]) -> None:
    """Make programs in `folder`; raises FalloffError with the first complaint, and the remedy if
    that is known.
    """
    (folder / "src").symlink_to(_SOURCES)  # make knows no blanks in names
    argv = ["make", f"-j{os.cpu_count() or 1}", "-f", "src/Makefile"]
    try:
        done = subprocess.run([*argv, *words], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise FalloffError("make is not here: `apt-get install make`") from None
    if done.returncode != 0:
        lines = done.stderr.splitlines()
        faults = [line for line in lines if "error" in line or "cannot find" in line]
        first = (faults or lines or ["no message"])[0]
        lacks_blas = "openblas" in first or "cblas.h" in first
        remedy = " (`apt-get install libopenblas-dev`)" if lacks_blas else ""
        raise FalloffError(f"the programs cannot be built: {first}{remedy}")


def _answer(compiler: str, question: str) -> str:
    return subprocess.run([compiler, question], capture_output=True, text=True).stdout


def unpack(folder: Path) -> None:
    """Unpack and edit the source below `folder`, as source/hpcc-1.5.0.

    Raises FalloffError with the remedy when it cannot be had or is not what it should be.
    """
    named = os.environ.get("HPL_SOURCE")
    tarball = Path(named) if named else fetch(folder / "apt")
    try:
        checksum = hashlib.sha256(tarball.read_bytes()).hexdigest()
    except OSError as error:
        raise FalloffError(f"HPL's source: {tarball}: {error.strerror}; {_REMEDY}") from None
    if checksum != SHA256:
        raise FalloffError(f"{tarball} is not HPC Challenge 1.5.0 (sha256 {checksum}); {_REMEDY}")
    with tarfile.open(tarball) as opened:
        opened.extractall(folder / "source")
    (top,) = (folder / "source").iterdir()
    for name, changes in _EDITS.items():
        text = (top / "hpl" / name).read_text(encoding="latin-1")
        for old, new in changes:
            text = text.replace(old, new)
        (top / "hpl" / name).write_text(text, encoding="latin-1")


def fetch(folder: Path) -> Path:
    """Download the source of Debian's hpcc package into `folder`, from apt's own mirror or else
    Debian's.

    apt itself refuses what has another checksum. Raises FalloffError when apt is not here, or no
    mirror brings the file.
    """
    if not _HELPER.exists():
        raise FalloffError(f"HPL's source: there is no apt on this machine; {_REMEDY}")
    folder.mkdir()
    tarball, reasons = folder / Path(_POOL).name, []
    settings = ("-oAcquire::Retries=2", "-oAcquire::http::Timeout=20")
    for mirror in mirrors():
        wanted = (f"{mirror}/{_POOL}", str(tarball), f"SHA256:{SHA256}")
        done = subprocess.run(
            [str(_HELPER), *settings, "download-file", *wanted], capture_output=True, text=True
        )
        if done.returncode == 0:
            return tarball
        complaints = [line[3:] for line in done.stderr.splitlines() if line.startswith("E:")]
        reasons.append(complaints[0] if complaints else f"{mirror}: exit code {done.returncode}")
    raise FalloffError(f"HPL's source: apt does not bring hpcc ({'; '.join(reasons)}); {_REMEDY}")


def mirrors() -> list[str]:
    """Where apt finds Debian's packages on this machine, and last Debian's own; each once."""
    question = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian"]
    answer = subprocess.run(question, capture_output=True, text=True).stdout
    return list(dict.fromkeys(uri.rstrip("/") for uri in [*answer.split(), _DEBIAN]))


def main() -> int:
    """Build, and say in a line each what was done and left out; 1 when xhpl could not be built."""
    try:
        made = build()
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    print(f"xhpl, {', '.join(PROGRAMS[1:])} {'built' if made else 'are already'} in {BUILT}")
    if not (BUILT / "xhpl_reference").exists():
        print(
            "left out: xhpl_reference, since the reference BLAS is missing: "
            "`apt-get install libblas-dev`"
        )
    try:
        build_simulated()
    except FalloffError as error:
        print(f"left out: xhpl_simulated: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
