"""Build xhpl_simulated and dgemm_simulated: HPL's own code, and our DGEMM loop, for SimGrid's SMPI.

HPL's sources are compiled as they are into an archive. Functions of the same name in simulated_hpl.c come
first, so that the linker leaves the archive's out; four others are wrapped. xhpl_unmocked is the same archive
with a real BLAS, which tells its pivots and its messages: what the simulation is compared with.
"""

import os
import shutil
import tempfile
from pathlib import Path

from runners import build, hpl_source
from runners.record import FalloffError
from runners.tools import BUILT

PROGRAMS = ("xhpl_simulated", "dgemm_simulated", "noclock.so", "xhpl_unmocked")
REMEDY = "SimGrid is missing: `apt-get install libsimgrid-dev`"

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE / "src"
_INPUTS = (
    *(_HERE / name for name in ("build_simulated.py", "build.py", "hpl_source.py")),
    *(_SOURCES / name for name in ("payload.h", "simulated.h", "simulated.c", "simulated_hpl.c", "noclock.c")),
    *(_SOURCES / name for name in ("xhpl_main.c", "dgemm.c", "pivots.c", "payload.c")),
)
# SMPI's headers would make every malloc its own. HPL sends rows that it has copied together, since a
# datatype of a matrix that does not exist cannot be packed.
_FLAGS = ("-DSMPI_NO_OVERRIDE_MALLOC", "-DHPL_NO_MPI_DATATYPE", "-DHPL_COPY_L")
_OWN_FLAGS = ("-O2", "-std=c99", "-DHPL_CALL_CBLAS", f"-I{_SOURCES}", *_FLAGS)
_WRAPPED = ("malloc", "free", "HPL_pdpanel_init", "HPL_pdpanel_free")


def compiler() -> str:
    """SMPI's compiler; raises FalloffError with the remedy when SimGrid is not here."""
    found = shutil.which("smpicc")
    if not found:
        raise FalloffError(REMEDY)
    return found


def build_simulated(folder: Path = BUILT) -> bool:
    """Put the programs into `folder`; False when they are there already, made from the same inputs.

    Raises FalloffError with the remedy when SimGrid or HPL's source is missing.
    """
    smpicc = compiler()
    tarball = os.environ.get("HPL_SOURCE")
    release = hpl_source.release(tarball)
    inputs = build.checksum(smpicc, release, _INPUTS)
    stamp = folder / "stamp_simulated"
    if stamp.exists() and stamp.read_text() == inputs and all((folder / name).exists() for name in PROGRAMS):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        work = Path(scratch)
        top = hpl_source.unpack(tarball, work)
        includes = [f"-I{top / include}" for include in release.includes]
        objects = build.compile_hpl(smpicc, release, top, work, _FLAGS)
        main = "xhpl_main.o" if release.own_main else "HPL_pddriver.o"
        build.run_compiler("ar", ["rcs", "libhpl.a", *(name for name in objects if name != main)], work)
        own = [str(_SOURCES / name) for name in ("simulated.c", "simulated_hpl.c")]
        wrap = "-Wl," + ",".join(f"--wrap={name}" for name in _WRAPPED)
        shared = [*_OWN_FLAGS, *includes, *own, wrap, "libhpl.a", "-lm"]
        build.run_compiler(smpicc, [main, *shared, "-o", "xhpl_simulated"], work)
        build.run_compiler(smpicc, [str(_SOURCES / "dgemm.c"), *shared, "-o", "dgemm_simulated"], work)
        build.run_compiler(
            "cc", ["-O2", "-shared", "-fPIC", str(_SOURCES / "noclock.c"), "-o", "noclock.so"], work
        )
        told = [str(_SOURCES / name) for name in ("pivots.c", "payload.c")]
        real = [*_OWN_FLAGS, *includes, *told, "-Wl,--wrap=HPL_bwait", "libhpl.a", "-lopenblas", "-lm"]
        build.run_compiler(smpicc, [main, *real, "-o", "xhpl_unmocked"], work)
        for name in PROGRAMS:
            os.replace(work / name, folder / name)
    stamp.write_text(inputs)
    return True
