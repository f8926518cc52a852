"""HPL's source: a tarball that the user names, or Debian's hpcc package, whose hpl/ is stock HPL 2.0."""

import hashlib
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from runners.record import FalloffError

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


def fetch(folder: Path, etc: Path = Path("/etc/apt")) -> Path:
    """Download the hpcc source package with apt into `folder`; the machine's own apt stays as it is.

    Raises FalloffError when apt is not here or does not find the package.
    """
    if not shutil.which("apt-get"):
        raise FalloffError(f"HPL's source: there is no apt on this machine; {REMEDY}")
    parts, lists, cache = folder / "sources.list.d", folder / "lists", folder / "cache"
    for needed in (parts, lists / "partial", cache / "archives" / "partial"):
        needed.mkdir(parents=True)
    for name, text in source_lists(etc).items():
        (parts / name).write_text(text)
    settings = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": parts,
        "Dir::State::Lists": lists,
        "Dir::Cache": cache,
        "Acquire::Retries": 2,
        "Acquire::http::Timeout": 20,
    }
    options = [f"-o{key}={value}" for key, value in settings.items()]
    complaints: List[str] = []
    # --tar-only: the other parts of the package are Debian's packaging, which is not used.
    for action in (["update"], ["source", "--download-only", "--tar-only", "hpcc"]):
        argv = ["apt-get", "-q", *options, *action]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
        lines = done.stderr.splitlines()
        complaints += [line[3:] for line in lines if line.startswith(("E:", "W: Failed"))]
    found = sorted(folder.glob("hpcc_*.orig.tar.*"))
    if not found:
        reason = complaints[0] if complaints else "no such source package"
        raise FalloffError(f"HPL's source: apt does not bring hpcc ({reason}); {REMEDY}")
    return found[0]


def source_lists(etc: Path) -> Mapping[str, str]:
    """The package sources configured under `etc`, turned from binary to source packages.

    Keeps only the distribution's own release, so that third parties' sources need not be reached.
    """
    names, lists = {_codename(), "stable", "testing", "unstable", "sid"}, {}
    for file in sorted([etc / "sources.list", *(etc / "sources.list.d").glob("*")]):
        text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
        if file.suffix == ".sources":
            kept = [part for part in re.split(r"\n\s*\n", text) if names & set(part.split())]
            types = [re.sub(r"^Types:.*$", "Types: deb-src", part, flags=re.M) for part in kept]
            lists[file.name] = "\n\n".join(types) + "\n"
        elif file.suffix == ".list":
            kept = [line for line in text.splitlines() if names & set(line.split())]
            lines = [f"deb-src {line[4:]}\n" for line in kept if line.startswith("deb ")]
            lists[file.name] = "".join(lines)
    return lists


def _codename() -> str:
    file = Path("/etc/os-release")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(r"^VERSION_CODENAME=\"?([\w.-]+)", text, re.M)
    return found[1] if found else ""
