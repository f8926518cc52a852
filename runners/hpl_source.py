"""HPL's source: a tarball that the user names, or Debian's hpcc package, whose hpl/ is stock HPL 2.0."""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import List, Mapping, Optional, Tuple

from runners.record import FalloffError

REMEDY = "download hpl-2.3.tar.gz from netlib and run `HPL_SOURCE=/path/to/hpl-2.3.tar.gz make setup`"


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


RELEASES = (
    Release(
        "HPL 2.3",
        "32c5c17d22330f2f2337b681aded51637fb6008d3f0eb7c277b163fadd612830",
        ".",
        ("include",),
        {},
        False,
    ),
    Release(
        "HPL 2.0 of HPC Challenge 1.5.0",
        "0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
        "hpl",
        ("hpl/include", "include"),
        {
            # HPC Challenge has an input file of its own and never prints to stdout.
            "HPL_pdinfo.c": (
                ('#define INFILE "hpccinf.txt"', '#define INFILE "HPL.dat"'),
                ("fid = 8; /* always write to a file */", ""),
                ('strcpy( file, "hpccoutf.txt" );', ""),
            ),
            # Names that MPI-3 removed.
            "HPL_packL.c": (
                ("MPI_Address(", "MPI_Get_address("),
                ("MPI_Type_struct(", "MPI_Type_create_struct("),
            ),
        },
        True,
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
    raise FalloffError(f"HPL's source: {tarball} is not {names} (its sha256 is {checksum}); {REMEDY}")


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
            raise FalloffError(
                f"{source.name}: '{old}' is not in it, so this is not the HPL known here; {REMEDY}"
            )
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
    said: List[str] = []
    # --tar-only: the other parts of the package are Debian's packaging, which is not used.
    for action in (["update"], ["source", "--download-only", "--tar-only", "hpcc"]):
        done = subprocess.run(
            ["apt-get", "-q", *options, *action], cwd=folder, capture_output=True, text=True
        )
        said += [line[3:] for line in done.stderr.splitlines() if line.startswith(("E:", "W: Failed"))]
    found = sorted(folder.glob("hpcc_*.orig.tar.*"))
    if not found:
        why = said[0] if said else "no such source package"
        raise FalloffError(f"HPL's source: apt does not bring hpcc ({why}); {REMEDY}")
    return found[0]


def source_lists(etc: Path) -> Mapping[str, str]:
    """The package sources configured under `etc`, turned from binary to source packages.

    Keeps only the distribution's own release, so that third parties' sources need not be reached.
    """
    release_names = {_codename(), "stable", "testing", "unstable", "sid"}
    lists = {}
    for file in sorted([etc / "sources.list", *(etc / "sources.list.d").glob("*")]):
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        if file.suffix == ".sources":
            stanzas = [
                _source_stanza(stanza)
                for stanza in re.split(r"\n\s*\n", text)
                if release_names & set(stanza.split())
            ]
            lists[file.name] = "\n\n".join(stanzas) + "\n"
        elif file.suffix == ".list":
            lines = [
                line
                for line in text.splitlines()
                if line.startswith("deb ") and release_names & set(line.split())
            ]
            lists[file.name] = "".join(f"deb-src {line[4:]}\n" for line in lines)
    return lists


def _source_stanza(stanza: str) -> str:
    return re.sub(r"^Types:.*$", "Types: deb-src", stanza, flags=re.M)


def _codename() -> str:
    text = Path("/etc/os-release").read_text(encoding="utf-8") if os.path.exists("/etc/os-release") else ""
    found = re.search(r"^VERSION_CODENAME=\"?([\w.-]+)", text, re.M)
    return found[1] if found else ""
