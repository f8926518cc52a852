"""What a program that was just built must show before it is put into use."""

import os
import subprocess
from pathlib import Path

from runners import hpl_dat, hpl_output
from runners.record import FalloffError

TRIAL_DECK = {
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


def require_passing(xhpl: Path, folder: Path) -> None:
    """Solve one small system on one process (started without mpirun) and insist on its residual."""
    (folder / "HPL.dat").write_text(hpl_dat.render(TRIAL_DECK))
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [str(xhpl)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        (row,) = hpl_output.rows(done.stdout)
    except (FalloffError, ValueError) as error:
        said = (done.stdout.strip().splitlines() or [str(error)])[-1]
        raise FalloffError(
            f"the {xhpl.name} just built does not run ({said}): "
            "is the MPI that compiled it the one installed?"
        ) from None
    if row.check != "PASSED":
        raise FalloffError(
            f"the {xhpl.name} just built computes wrongly (residual {row.residual}): the BLAS is at fault"
        )


def require_no_openblas(program: Path) -> None:
    """Insist that a program neither contains OpenBLAS nor loads it: its name would stand in the file."""
    if b"openblas" in program.read_bytes():
        raise FalloffError(
            f"the {program.name} just built holds OpenBLAS: reinstall libblas-dev, whose archive was linked"
        )
