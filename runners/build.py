"""Build the tools that no package brings: xhpl and dgemm (`python -m runners.build`).

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
from typing import List, Sequence

from runners import hpl, hpl_dat, hpl_source
from runners.record import FalloffError
from runners.tools import BUILT

_HERE = Path(__file__).resolve().parent
_OWN_SOURCES = _HERE / "src"
_INPUTS = (
    _HERE / "build.py",
    _HERE / "hpl_source.py",
    _OWN_SOURCES / "xhpl_main.c",
    _OWN_SOURCES / "dgemm.c",
)

# No processor-specific flags: the time is spent in the BLAS, which chooses its kernels at run time.
# -fcommon and -w: HPL is from before the compilers that mind.
_HPL_FLAGS = (
    "-O2",
    "-fcommon",
    "-w",
    "-DAdd_",
    "-DF77_INTEGER=int",
    "-DStringSunStyle",
    "-DHPL_STDC_HEADERS",
    "-DHPL_CALL_CBLAS",
    "-DHPL_DETAILED_TIMING",
)
_LIBRARIES = ("-lopenblas", "-lm")

_TRIAL_DECK = {
    "N": 200,
    "NB": 32,
    "P": 1,
    "Q": 1,
    "PMAP": 0,
    "THRESHOLD": 16.0,
    "PFACT": 1,
    "NBMIN": 4,
    "NDIV": 2,
    "RFACT": 1,
    "BCAST": 1,
    "DEPTH": 1,
    "SWAP": 2,
    "SWAP_THRESHOLD": 64,
    "L1": 0,
    "U": 0,
    "EQUILIBRATION": 1,
    "ALIGNMENT": 8,
}


def build(folder: Path = BUILT) -> bool:
    """Put xhpl and dgemm into `folder`; False when they are there already, made from the same inputs.

    Raises FalloffError with the remedy when a compiler, a library or HPL's source is missing.
    """
    compiler = _compiler()
    tarball = os.environ.get("HPL_SOURCE")
    release = hpl_source.release(tarball)
    inputs = _checksum(compiler, release)
    stamp = folder / "stamp"
    programs = ("xhpl", "dgemm")
    if stamp.exists() and stamp.read_text() == inputs and all((folder / name).exists() for name in programs):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        _compile(compiler, ["-O2", str(_OWN_SOURCES / "dgemm.c"), "-o", "dgemm", *_LIBRARIES], work)
        top = hpl_source.unpack(tarball, work)
        _build_xhpl(compiler, release, top, work)
        require_passing(work / "xhpl", work)
        for name in programs:
            os.replace(work / name, folder / name)
    stamp.write_text(inputs)
    return True


def _build_xhpl(compiler: str, release: hpl_source.Release, top: Path, work: Path) -> None:
    sources = sorted(
        path for part in ("src", "testing") for path in (top / release.folder / part).rglob("*.c")
    )
    for name, changes in release.edits.items():
        (edited,) = (path for path in sources if path.name == name)
        hpl_source.edit(edited, changes)
    if release.own_main:
        sources.append(_OWN_SOURCES / "xhpl_main.c")
    flags = [*_HPL_FLAGS, *(f"-I{top / include}" for include in release.includes)]
    jobs = os.cpu_count() or 1
    shares = [sources[job::jobs] for job in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        done = [
            pool.submit(_compile, compiler, [*flags, "-c", *map(str, share)], work)
            for share in shares
            if share
        ]
    for job in done:
        job.result()
    _compile(compiler, [*sorted(path.name for path in work.glob("*.o")), "-o", "xhpl", *_LIBRARIES], work)


def _compiler() -> str:
    compiler = shutil.which("mpicc")
    if not compiler:
        raise FalloffError(
            "mpicc is not here: `apt-get install libopenmpi-dev openmpi-bin` (or your cluster's MPI module)"
        )
    return compiler


def _compile(compiler: str, arguments: Sequence[str], folder: Path) -> None:
    done = subprocess.run([compiler, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        faults = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
        first = (faults or done.stderr.splitlines() or ["no message"])[0]
        remedy = " (`apt-get install libopenblas-dev`)" if "openblas" in first or "cblas.h" in first else ""
        raise FalloffError(f"mpicc fails: {first}{remedy}")


def _checksum(compiler: str, release: hpl_source.Release) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    parts: List[bytes] = [release.sha256.encode(), version.encode(), *(path.read_bytes() for path in _INPUTS)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def require_passing(xhpl: Path, folder: Path) -> None:
    """Solve one small system on one process (started without mpirun) and insist on its residual."""
    (folder / "HPL.dat").write_text(hpl_dat.render(_TRIAL_DECK))
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [str(xhpl)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        (row,) = hpl.rows(done.stdout)
    except (FalloffError, ValueError) as error:
        said = (done.stdout.strip().splitlines() or [str(error)])[-1]
        raise FalloffError(
            f"the xhpl just built does not run ({said}): is the MPI that compiled it the one installed?"
        ) from None
    if row.check != "PASSED":
        raise FalloffError(
            f"the xhpl just built computes wrongly (residual {row.residual}): the BLAS is at fault"
        )


def main() -> int:
    """Build, and say in one line what was done; the exit code is 1 when it could not be done."""
    try:
        made = build()
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    print(f"xhpl and dgemm {'built' if made else 'are already'} in {BUILT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
