"""HPL's source: a tarball that the user names, or Debian's hpcc package, whose hpl/ is stock HPL 2.0."""

import hashlib
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from runners.record import FalloffError

_HELPER = Path("/usr/lib/apt/apt-helper")
_DEBIAN = "http://deb.debian.org/debian"
_POOL = "pool/main/h/hpcc/hpcc_1.5.0.orig.tar.gz"

REMEDY = (
    "download hpl-2.3.tar.gz from netlib and run `HPL_SOURCE=/path/to/hpl-2.3.tar.gz make setup`"
)


@dataclass(frozen=True)
class Release:
    """A release of HPL that can be built here: its checksum and where its parts lie.

    `edits` maps a file's name to (text, replacement) pairs; `own_main` is whether it lacks a main program.
    """

    name: str
    sha256: str
    folder: str
    includes: Tuple[str, ...]
    edits: Mapping[str, Tuple[Tuple[str, str], ...]]
    own_main: bool


# HPC Challenge has an input file of its own and never prints to stdout; the other names are those that
# MPI-3 removed.
_HPCC_EDITS = {
    "HPL_pdinfo.c": (
        ('#define INFILE "hpccinf.txt"', '#define INFILE "HPL.dat"'),
        ("fid = 8; /* always write to a file */", ""),
        ('strcpy( file, "hpccoutf.txt" );', ""),
    ),
    "HPL_packL.c": (
        ("MPI_Address(", "MPI_Get_address("),
        ("MPI_Type_struct(", "MPI_Type_create_struct("),
    ),
}
RELEASES = (
    Release(
        name="HPL 2.3",
        sha256="32c5c17d22330f2f2337b681aded51637fb6008d3f0eb7c277b163fadd612830",
        folder=".",
        includes=("include",),
        edits={},
        own_main=False,
    ),
    Release(
        name="HPL 2.0 of HPC Challenge 1.5.0",
        sha256="0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
        folder="hpl",
        includes=("hpl/include", "include"),
        edits=_HPCC_EDITS,
        own_main=True,
    ),
)
PACKAGED = RELEASES[1]


def release(tarball: Optional[str]) -> Release:
    """The release in `tarball`, or the packaged one when there is none.

    Raises FalloffError when the file is not one of the known releases.
    """
    if not tarball:
        return PACKAGED
    try:
        checksum = hashlib.sha256(Path(tarball).read_bytes()).hexdigest()
    except OSError as error:
        raise FalloffError(f"HPL's source: {tarball}: {error.strerror}; {REMEDY}") from None
    for known in RELEASES:
        if known.sha256 == checksum:
            return known
    names = " or ".join(known.name for known in RELEASES)
    raise FalloffError(f"{tarball} is not {names} (its sha256 is {checksum}); {REMEDY}")


def unpack(tarball: Optional[str], folder: Path) -> Path:
    """Unpack the user's `tarball`, or the package's, below `folder`; gives the source's top folder.

    Raises FalloffError with the remedy when the source cannot be had or is not what it should be.
    """
    archive = Path(tarball) if tarball else fetch(folder / "apt")
    # Checked here for both: what is unpacked is what was released.
    release(str(archive))
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "source")
    (top,) = (folder / "source").iterdir()
    return top


def edit(source: Path, changes: Tuple[Tuple[str, str], ...]) -> None:
    """Apply replacements to one file; raises FalloffError when a text to replace is not there."""
    text = source.read_text(encoding="latin-1")
    for old, new in changes:
        if old not in text:
            raise FalloffError(f"{source.name} lacks '{old}': not the HPL known here; {REMEDY}")
        text = text.replace(old, new)
    source.write_text(text, encoding="latin-1")


def fetch(folder: Path) -> Path:
    """Download the source of Debian's hpcc package into `folder`, from apt's own mirror or else Debian's.

    apt itself refuses what has another checksum than `PACKAGED`. Raises FalloffError when apt is not
    here, or no mirror brings the file.
    """
    if not _HELPER.exists():
        raise FalloffError(f"HPL's source: there is no apt on this machine; {REMEDY}")
    folder.mkdir()
    tarball, reasons = folder / Path(_POOL).name, []
    settings = ("-oAcquire::Retries=2", "-oAcquire::http::Timeout=20")
    for mirror in mirrors():
        wanted = (f"{mirror}/{_POOL}", str(tarball), f"SHA256:{PACKAGED.sha256}")
        done = subprocess.run(
            [str(_HELPER), *settings, "download-file", *wanted], capture_output=True, text=True
        )
        if done.returncode == 0:
            return tarball
        complaints = [line[3:] for line in done.stderr.splitlines() if line.startswith("E:")]
        reasons.append(complaints[0] if complaints else f"{mirror}: exit code {done.returncode}")
    raise FalloffError(f"HPL's source: apt does not bring hpcc ({'; '.join(reasons)}); {REMEDY}")


def mirrors() -> List[str]:
    """Where apt finds Debian's packages on this machine, and last Debian's own mirror; each once."""
    question = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian"]
    answer = subprocess.run(question, capture_output=True, text=True).stdout
    return list(dict.fromkeys(uri.rstrip("/") for uri in [*answer.split(), _DEBIAN]))
