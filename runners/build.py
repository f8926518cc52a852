"""Build the tools that no package brings (`python -m runners.build`): xhpl, dgemm, node_rates,
token, and delay_line, shared_wire and channel_bond, which are what lies between emulated nodes.

xhpl_payload is the same HPL that counts its messages, payload.so what counts any program's, mptcp.so gives any program
MPTCP for TCP, and pace.so makes any program's ranks nodes of a known speed. Where the reference BLAS is installed,
xhpl_reference too: the same HPL with the plainest of BLAS.

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
from typing import List, Optional, Sequence

from runners import hpl_source
from runners.build_checks import require_no_openblas, require_passing
from runners.record import FalloffError
from runners.tools import BUILT

_HERE = Path(__file__).resolve().parent
_OWN_SOURCES = _HERE / "src"
_INPUTS = (
    _HERE / "build.py",
    _HERE / "build_checks.py",
    _HERE / "hpl_source.py",
    _OWN_SOURCES / "xhpl_main.c",
    _OWN_SOURCES / "dgemm.c",
    _OWN_SOURCES / "node_rates.c",
    _OWN_SOURCES / "delay_line.c",
    _OWN_SOURCES / "shared_wire.c",
    _OWN_SOURCES / "channel_bond.c",
    _OWN_SOURCES / "tap.h",
    _OWN_SOURCES / "token.c",
    _OWN_SOURCES / "token.h",
    _OWN_SOURCES / "token_tcp.c",
    _OWN_SOURCES / "token_tcp.h",
    _OWN_SOURCES / "token_coordinator.c",
    _OWN_SOURCES / "token_mpi.c",
    _OWN_SOURCES / "payload.c",
    _OWN_SOURCES / "payload.h",
    _OWN_SOURCES / "mptcp.c",
    _OWN_SOURCES / "pace.c",
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

# They carry frames between emulated nodes.
_CARRIERS = ("delay_line", "shared_wire", "channel_bond")

# One measurement over two transports.
_TOKEN = {"token": ("token_tcp.c", "token_coordinator.c"), "token_mpi": ("token_mpi.c",)}

# Debian's libblas-dev. An archive, linked by its path: what is linked by the name blas becomes at
# run time the BLAS that the machine's alternatives point to, which is OpenBLAS.
_REFERENCE_BLAS = "blas/libblas.a"


def build(folder: Path = BUILT) -> bool:
    """Put the programs into `folder`; False when they are there already, made from the same inputs.

    Raises FalloffError with the remedy when a compiler, a library or HPL's source is missing; only
    xhpl_reference is left out without its library.
    """
    compiler = _compiler()
    tarball = os.environ.get("HPL_SOURCE")
    release = hpl_source.release(tarball)
    counting = str(_OWN_SOURCES / "payload.c")
    linked = {"xhpl": _LIBRARIES, "xhpl_payload": (counting, *_LIBRARIES)}
    reference = reference_blas(compiler)
    if reference:
        linked["xhpl_reference"] = (str(reference), "-lm")
    inputs = checksum(compiler, release, [*_INPUTS, *([reference] if reference else [])])
    stamp = folder / "stamp"
    programs = ("dgemm", "node_rates", *_CARRIERS, *_TOKEN, "payload.so", "mptcp.so", "pace.so", *linked)
    if stamp.exists() and stamp.read_text() == inputs and all((folder / name).exists() for name in programs):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        run_compiler(compiler, ["-O2", str(_OWN_SOURCES / "dgemm.c"), "-o", "dgemm", *_LIBRARIES], work)
        lean = ["-O2", "-Wl,--as-needed"]  # they are no MPI programs
        node_rates = [*lean, "-fopenmp", str(_OWN_SOURCES / "node_rates.c"), "-o", "node_rates", *_LIBRARIES]
        run_compiler(compiler, node_rates, work)
        for name in _CARRIERS:
            run_compiler(compiler, [*lean, str(_OWN_SOURCES / f"{name}.c"), "-o", name], work)
        for name, transport in _TOKEN.items():
            sources = [str(_OWN_SOURCES / file) for file in ("token.c", *transport)]
            run_compiler(compiler, [*lean, *sources, "-o", name, "-lm"], work)
        run_compiler(compiler, ["-O2", "-shared", "-fPIC", counting, "-o", "payload.so"], work)
        for name in ("mptcp", "pace"):
            source = str(_OWN_SOURCES / f"{name}.c")
            run_compiler(compiler, [*lean, "-shared", "-fPIC", source, "-o", f"{name}.so", "-ldl", "-lm"], work)
        top = hpl_source.unpack(tarball, work)
        objects = compile_hpl(compiler, release, top, work)
        for name, libraries in linked.items():
            run_compiler(compiler, [*objects, "-o", name, *libraries], work)
        for name in linked:
            require_passing(work / name, work)
        if reference:
            require_no_openblas(work / "xhpl_reference")
        (folder / "xhpl_reference").unlink(missing_ok=True)  # an earlier build's, whose library may be gone
        for name in programs:
            os.replace(work / name, folder / name)
    stamp.write_text(inputs)
    return True


def reference_blas(compiler: str) -> Optional[Path]:
    """The archive of the reference BLAS among the compiler's libraries; None when it is not installed."""
    found = Path(_said(compiler, f"-print-file-name={_REFERENCE_BLAS}").strip())
    return found if found.is_absolute() else None  # the name itself comes back when there is none


def compile_hpl(
    compiler: str, release: hpl_source.Release, top: Path, work: Path, flags: Sequence[str] = ()
) -> List[str]:
    """Compile HPL's sources below `top`, and the main program that a release lacks; the objects' names in `work`."""
    sources = sorted(
        path for part in ("src", "testing") for path in (top / release.folder / part).rglob("*.c")
    )
    for name, changes in release.edits.items():
        (edited,) = (path for path in sources if path.name == name)
        hpl_source.edit(edited, changes)
    if release.own_main:
        sources.append(_OWN_SOURCES / "xhpl_main.c")
    flags = [*_HPL_FLAGS, *flags, *(f"-I{top / include}" for include in release.includes)]
    jobs = os.cpu_count() or 1
    shares = [sources[job::jobs] for job in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        done = [
            pool.submit(run_compiler, compiler, [*flags, "-c", *map(str, share)], work)
            for share in shares
            if share
        ]
    for job in done:
        job.result()
    return sorted(path.name for path in work.glob("*.o"))


def _compiler() -> str:
    compiler = shutil.which("mpicc")
    if not compiler:
        raise FalloffError(
            "mpicc is not here: `apt-get install libopenmpi-dev openmpi-bin` (or your cluster's MPI module)"
        )
    return compiler


def run_compiler(compiler: str, arguments: Sequence[str], folder: Path) -> None:
    """Run it in `folder`; raises FalloffError with its first complaint, and the remedy where that is known."""
    done = subprocess.run([compiler, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        faults = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
        first = (faults or done.stderr.splitlines() or ["no message"])[0]
        remedy = " (`apt-get install libopenblas-dev`)" if "openblas" in first or "cblas.h" in first else ""
        raise FalloffError(f"{Path(compiler).name} fails: {first}{remedy}")


def _said(compiler: str, question: str) -> str:
    return subprocess.run([compiler, question], capture_output=True, text=True).stdout


def checksum(compiler: str, release: hpl_source.Release, files: Sequence[Path]) -> str:
    """Of all that programs are made from: the compiler, HPL's release and these files."""
    version = _said(compiler, "--version")
    parts: List[bytes] = [release.sha256.encode(), version.encode(), *(path.read_bytes() for path in files)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def main() -> int:
    """Build, and say in a line each what was done and left out; the exit code is 1 when xhpl could not be built."""
    from runners import build_simulated  # it is made of this module's parts

    try:
        made = build()
    except FalloffError as error:
        print(f"falloff: {error}", file=sys.stderr)
        return 1
    print(f"xhpl, dgemm, node_rates, token, {', '.join(_CARRIERS)} {'built' if made else 'are already'} in {BUILT}")
    if not (BUILT / "xhpl_reference").exists():
        print("left out: xhpl_reference, since the reference BLAS is missing: `apt-get install libblas-dev`")
    try:
        build_simulated.build_simulated()
    except FalloffError as error:
        print(f"left out: xhpl_simulated: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
