"""Pack this checkout's code, data and report into one zip file, and read the campaigns of such a
file.

The file includes an artifact description in the form that the SC conference asks for.
"""

import json
import os
import stat
import struct
import tempfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import xarray as xr

from analysis import paths
from analysis.evidence import chain, crate, verify
from analysis.evidence.chain import Chain
from analysis.quoting import as_markdown, quoted
from analysis.statements import notebooks
from analysis.wording import UNKNOWN, counted, moment, number
from runners.records import manifest, provenance
from runners.records.archive import unpacked_at_most
from runners.records.journal import replacing
from runners.records.record import FalloffError, is_name

DESCRIPTION = "ARTIFACT-DESCRIPTION.md"
# The earliest time that zip can store, so that the archive's bytes depend only on its content.
UNDATED = (1980, 1, 1, 0, 0, 0)
# Left out of a copy without git: what `make clean` removes, and what Python and editors leave
# behind.
MADE_HERE = {".venv", "build", ".git", "__pycache__", ".pytest_cache", ".hypothesis"}
# What zipfile raises for a file that is not a zip file, or is damaged in part.
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)
STATEMENTS = "build/report/summary.json"
DEEPEST = 12  # nested folders
DATA_SUFFIXES = (".toml", ".csv", ".bib", ".json", ".jsonl", ".nc", ".xz", ".c")
# The user's files that are packed: descriptions, runs, datasets and the report.
OWN = (
    *(f"data/{folder}/*.toml" for folder in ("campaigns", "designs", "testbeds")),
    "data/programs/*.txt.xz",
    *(f"data/raw/*/{name}" for name in ("trials.json", manifest.JOURNAL, "provenance.json")),
    *(f"data/raw/*/{name}" for name in (manifest.NAME, "transcripts/*.json", "transcripts.tar.xz")),
    "data/datasets/*.nc",
    *(f"build/report/{name}" for name in ("*.html", "*.pdf", "*.json", "figures/*")),
)


def write(file: Path, references: Mapping[str, xr.Dataset]) -> tuple[list[str], list[str]]:
    """Write the archive; returns the names of the packed files, and notes on what is not described.

    The same content gives the same bytes. Raises FalloffError if the report rests on a campaign
    that is not packed.
    """
    files = _files()
    private = [name for name, file in files.items() if _names_a_cluster(name, file)]
    notes = [f"{name} is left out: it names a cluster's hosts or account" for name in private]
    files = {name: file for name, file in files.items() if name not in private}
    _require_its_data(files)
    contents: dict[str, Path | bytes] = {**files}
    chains = []
    for folder in verify.folders():
        if folder / "trials.json" not in files.values():
            continue
        try:
            chains.append(chain.of(folder))
        except FalloffError as error:  # without a finished trial
            notes.append(f"not described: {error}")
        else:
            if chains[-1].plan.testbed["kind"] == "cluster":
                packed = f"{chain.shown(folder)} is packed"
                notes.append(f"{packed}, and names its nodes and perhaps an account")
    code = provenance.code()
    contents[provenance.COMMIT] = json.dumps(code).encode()
    contents[DESCRIPTION] = described(chains, code, references).encode()
    contents |= crate.files(contents, chains, code["git_commit"] or "")
    with replacing(file) as part, zipfile.ZipFile(part, "w") as archive:
        for name, source in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, UNDATED)
            executable = isinstance(source, Path) and os.access(source, os.X_OK)
            entry.external_attr = (0o755 if executable else 0o644) << 16
            text = source.read_bytes() if isinstance(source, Path) else source
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
    return sorted(contents), notes


def _names_a_cluster(name: str, file: Path) -> bool:
    """Whether a file describes somebody's own cluster; those that are shipped are of none."""
    if not name.startswith("data/testbeds/") or file.name.startswith("example_"):
        return False
    with suppress(OSError, ValueError):
        return bool({"hosts", "slurm", "ssh"} & tomllib.loads(file.read_text("utf-8")).keys())
    return True


def _require_its_data(files: Mapping[str, Path]) -> None:
    """Raise FalloffError if a statement in the report is of a campaign that is not among the
    files."""
    if STATEMENTS not in files:
        return
    stated = json.loads(files[STATEMENTS].read_text(encoding="utf-8")).get("statements", ())
    packed = {
        json.loads(file.read_text(encoding="utf-8")).get("digest")
        for name, file in files.items()
        if name.endswith("/trials.json")
    }
    strange = {row["campaign"] for row in stated if row["digest"] and row["digest"] not in packed}
    if strange:
        raise FalloffError(
            f"{STATEMENTS} rests on other runs of {', '.join(sorted(strange))} than those that "
            "would be packed: `make report` makes the report anew"
        )


@contextmanager
def opened(archive: Path) -> Iterator[list[Path]]:
    """The campaigns' folders of an archive: a file that `write` made, a folder, or a reference's
    name.

    For a whole archive these are its reference's campaigns, else its runs. Raises FalloffError if
    there is none, or if one was changed since it was recorded.
    """
    if archive.is_file():
        with tempfile.TemporaryDirectory(prefix="falloff-") as unpacked:
            _unpack(archive, Path(unpacked))
            campaigns = _campaigns(archive, Path(unpacked))
            for folder in campaigns:
                if manifest.read(folder):
                    continue
                raise FalloffError(
                    f"{archive}: {folder.name} has no {manifest.NAME}, so that nobody can tell "
                    "whether it was changed: fetch it again"
                )
            yield campaigns
        return
    top = archive if archive.is_dir() else paths.REFERENCE / archive
    if not top.is_dir():
        raise FalloffError(
            f"there is no {archive}: name a file of `falloff evidence archive`, a folder of "
            "campaigns, or a folder in data/reference"
        )
    yield _campaigns(archive, top)


def _unpack(archive: Path, target: Path) -> None:
    """Unpack an archive's data/reference and data/raw."""
    try:
        with zipfile.ZipFile(archive) as packed:
            wanted = [
                entry
                for entry in packed.infolist()
                if {"reference", "raw"} & {*entry.filename.split("/")} and not entry.is_dir()
            ]
            if strange := _no_files(wanted):
                raise FalloffError(
                    f"{archive} has an entry {strange[0][:40]!r} that is no file of an archive: "
                    "fetch it again"
                )
            size = sum(entry.file_size for entry in wanted)
            if size > unpacked_at_most(archive.stat().st_size):
                raise FalloffError(
                    f"{archive} unpacks to {size / 1e6:.0f} MB, far more than campaigns do: unpack "
                    "it yourself, and name one of its folders"
                )
            packed.extractall(target, wanted)
    except _UNREADABLE as error:
        if getattr(error, "filename", None) is not None:  # the error is about a file being written
            raise
        raise FalloffError(f"{archive} is no readable zip file ({error}): fetch it again") from None


def _no_files(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """The names of entries that `write` never makes: not a plain file, packed otherwise, duplicate,
    inside another file, or outside the target."""
    times = Counter(entry.filename for entry in entries)
    strange = []
    for entry in entries:
        parts = entry.filename.split("/")
        is_named = all(map(is_name, parts)) and len(parts) <= DEEPEST
        inside = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        is_single = times[entry.filename] == 1 and not any(name in times for name in inside)
        is_file = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
        is_plain = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not (is_named and is_single and is_file and is_plain):
            strange.append(entry.filename)
    return strange


def _campaigns(archive: Path, top: Path) -> list[Path]:
    """The campaigns' folders in a folder; raises FalloffError if one was changed."""
    within = {top} if (top / "trials.json").exists() else set()
    within = within or {file.parent.parent for file in top.rglob("trials.json")}
    references = {folder for folder in within if folder.name == paths.REFERENCE.name}
    if not within:
        raise FalloffError(f"{archive} holds no campaign's folder (with a trials.json)")
    campaigns = verify.folders(sorted(references or within))
    for folder in campaigns:
        if changed := manifest.differences(folder):
            raise FalloffError(
                f"{archive} is not as it was recorded: {folder.name}: {changed[0]}. `falloff "
                "evidence verify` names all; fetch it again"
            )
    return campaigns


def described(chains: Sequence[Chain], code: Mapping, references: Mapping[str, xr.Dataset]) -> str:
    """The artifact description as Markdown; `code` has `git_commit` and `git_dirty` (None:
    unknown)."""
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = notebooks.stated({source.plan.name: source.dataset for source in chains}, references)
    hosts = [host for source in chains for host in source.dataset.falloff.hosts]
    hardware = dict.fromkeys(f"- {_machine(host)}" for host in hosts)
    tools = {name for host in hosts for name in host.get("tools", {}).values() if name}
    tools |= {f"{host['system']}, kernel {host['kernel']}" for host in hosts if host.get("system")}
    software = [f"- {quoted(name)}" for name in sorted(tools)]
    lines = "\n".join
    artifacts = [_artifact(order, source, stated) for order, source in enumerate(chains, 1)]
    text = f"""\
# Artifact Description: {project["description"].removesuffix(".")}

Made by `falloff evidence archive` from the campaigns' own records.
Version {project["version"]}, {chain.code(code)}.

## Hardware

{lines(hardware)}

Emulated and simulated campaigns need one such machine. Measured ones need the cluster that their
`trials.json` describes; to verify them and to rebuild their figures needs no cluster.

## Software

{lines(software)}
- Python packages: {", ".join(map(quoted, project["dependencies"]))}.
  Their locked versions are in `packaging/requirements.lock`, the Debian packages in
  `packaging/debian-packages.txt`.

## Installation and evaluation

    make setup
    falloff evidence verify
    falloff report --preset stored

Without root the first names what is missing; the other two need the Python packages only.
`falloff evidence trace FIGURE` prints what a figure rests on.

On a minimal Debian 12 with two processors, set-up took 2 minutes and the report of stored data
2 minutes (23 November 2026; `docs/install.md`). `make report` also measures: 7 minutes with set-up.
Execution times of whole campaigns stand below.

**Expected results.** `falloff evidence verify` says ok for each campaign. The report's first page
then has the statements of `summary.json`, and `falloff reproduce` says of a new run which of them
come out again. Each artifact below names the notebooks whose statements rest on it.

## Artifacts

Execution is what all trials took together, as measured.

{lines(artifacts)}"""
    return as_markdown(text)


def _artifact(order: int, source: Chain, stated: Mapping[Path, notebooks.NotebookRun]) -> str:
    dataset, campaign, folder = source.dataset, source.plan.name, chain.shown(source.folder)
    figures = [
        f"`{figure.label}`"
        for executed in stated.values()
        for figure in executed.figures.values()
        if campaign in figure.campaigns
    ]
    stating = [
        f"`{file.stem}`"
        for file, executed in stated.items()
        if campaign in {statement.campaign for statement in executed.statements}
    ]
    minutes = float(dataset.wall_time.sum()) / 60
    took = f"{number(minutes)} minutes" if minutes else UNKNOWN
    begun, ended = moment(dataset.attrs["started"]), moment(dataset.attrs["ended"])
    digest = dataset.attrs["transcripts_sha256"]
    return f"""\
### A{order}: {quoted(source.plan.title)}

- **Campaign**: {quoted(source.about)}. **Figures**: {", ".join(figures) or "none"}.
- **Substantiates**: the statements of {", ".join(stating) or "no notebook"}.
- **Inputs**: `{folder}/trials.json`, {counted(len(source.transcripts), "transcript")} beside it
  (SHA-256 of all `{digest}`).
- **Expected result**: `falloff evidence verify {folder}` says ok: each value of the rebuilt dataset
  is the recorded one.
- **Execution**: `{chain.command(dataset)}` took {took} (from {begun} to {ended}).
"""


def _machine(host: Mapping) -> str:
    model = quoted(host.get("cpu_model") or "processor not recorded")
    if not host.get("cpus") or not host.get("memory_bytes"):
        return model
    memory = number(host["memory_bytes"] / 1e9)
    return f"{model}, {counted(host['cpus'], 'processor')}, {memory} GB of memory"


def _files() -> dict[str, Path]:
    """By name: the code and data that git tracks, the user's own descriptions, runs and datasets,
    and the report.

    From a user's folders it takes only what Falloff keeps there, and never a link, which could lead
    to any file of the machine.
    """
    files = [paths.ROOT / name for name in provenance.tracked()]
    if not files:  # not a git clone
        for folder, inside, names in os.walk(paths.ROOT):
            inside[:] = [
                name for name in inside if name not in MADE_HERE and not name.endswith(".egg-info")
            ]
            files += [Path(folder, name) for name in names]
        files = [file for file in files if _is_shipped(file.relative_to(paths.ROOT))]
    packed = {file.relative_to(paths.ROOT).as_posix(): file for file in files}
    for top in (paths.ROOT, paths.HOME):
        for pattern in OWN:
            packed |= {file.relative_to(top).as_posix(): file for file in top.glob(pattern)}
    tops = {file: file.parents[name.count("/")] for name, file in packed.items()}
    return {
        name: file
        for name, file in sorted(packed.items())
        if file.is_file() and file.resolve() == tops[file].resolve() / name
    }


def _is_shipped(name: Path) -> bool:
    """Whether a file may belong to this package: below data/ only descriptions, published numbers
    and references."""
    if name.parts[0] != "data" or name.name == "README.md":
        return True
    if name.parts[1] in ("raw", "datasets", "reproduced"):
        return False
    return name.suffix in DATA_SUFFIXES or name.name == manifest.NAME
