"""HPL's source: stock HPL 2.0, the folder hpl/ of Debian's hpcc package, by apt or from the tarball
that HPL_SOURCE names.
"""

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

from runners.records.record import FalloffError

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
