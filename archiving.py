"""Code, data and report of this place in one file that describes itself: an RO-Crate, zipped."""

import json
import os
import subprocess
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis import paths
from analysis.evidence import artifact, chain, citation, crate, verify
from runners import manifest, provenance
from runners.record import FalloffError

# The earliest moment that zip knows: the archive's bytes depend on its content alone.
UNDATED = (1980, 1, 1, 0, 0, 0)
# Of a copy without git: what `make clean` removes, what Python leaves, and what an editor does.
MADE_HERE = {".venv", "build", ".git", "__pycache__", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"}


@dataclass(frozen=True)
class Archive:
    """What was written: the file, how many files it has, and what was left out, a line each."""

    file: Path
    files: int
    left_out: tuple[str, ...]


def write(file: Path) -> Archive:
    """Write the archive of this place; the same content gives the same bytes.

    Raises FalloffError when the file is there already, or when a campaign's folder cannot be read.
    """
    if file.exists():
        raise FalloffError(f"{file} is there already: name another file, or move it away")
    contents = {name: paths.ROOT / name for name in _names()}
    folders = [folder for folder in verify.folders() if f"{_name(folder)}/trials.json" in contents]
    chains, left_out = _chains(folders)
    about, code = citation.read(), provenance.code()
    published = max((it.ended for it in chains), default="")[:10]
    packages = tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    written = {
        provenance.COMMIT: json.dumps(code).encode(),
        artifact.NAME: artifact.text(chains, about, code, packages).encode(),
    }
    stored = {name: _stored(path.read_bytes()) for name, path in contents.items() if name not in written}
    stored |= {name: _stored(content) for name, content in written.items()}
    written[crate.NAME] = crate.metadata(stored, chains, about, code, published)
    _zip(file, {**contents, **written})
    return Archive(file, len({*contents, *written}), tuple(left_out))


def _chains(folders: list[Path]) -> tuple[list[chain.Chain], list[str]]:
    """The chain of each campaign; one without a finished trial is left out, and said."""
    chains, left_out = [], []
    for folder in folders:
        try:
            chains.append(chain.of(folder))
        except FalloffError as error:
            left_out.append(f"not described: {error}")
    return chains, left_out


def _names() -> list[str]:
    """The code and data that git tracks, the user's own descriptions, runs and datasets, and the report."""
    names = _tracked() or _all_but_what_is_made()
    own = [path for folder in (paths.RAW, paths.DATASETS, paths.REPORT) for path in folder.rglob("*")]
    names += [_name(path) for path in own if path.is_file() and path.suffix != ".part"]
    return sorted({name for name in names if (paths.ROOT / name).is_file() and name != crate.NAME})


def _tracked() -> list[str]:
    """What git tracks, and descriptions in data/ that it could; nothing where this is no clone."""
    if not (paths.ROOT / ".git").exists():
        return []
    listed = []
    for arguments in (["--cached"], ["--others", "--exclude-standard", "data"]):
        done = subprocess.run(["git", "ls-files", "-z", *arguments], cwd=paths.ROOT, capture_output=True, text=True)
        if done.returncode:
            return []
        listed += done.stdout.split("\0")
    return [name for name in listed if name]


def _all_but_what_is_made() -> list[str]:
    return [
        _name(Path(folder) / file) for folder, inside, files in os.walk(paths.ROOT) if _keep(inside) for file in files
    ]


def _keep(inside: list[str]) -> bool:
    """Leave folders that are made here out of the walk."""
    inside[:] = [name for name in inside if name not in MADE_HERE and not name.endswith(".egg-info")]
    return True


def _name(path: Path) -> str:
    return path.relative_to(paths.ROOT).as_posix()


def _stored(content: bytes) -> crate.Stored:
    return crate.Stored(len(content), manifest.digest(content))


def _zip(file: Path, contents: Mapping[str, Path | bytes]) -> None:
    """Write all in order and without times; the file is there when it is whole."""
    part = file.with_name(file.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, UNDATED)
            executable = isinstance(content, Path) and os.access(content, os.X_OK)
            entry.external_attr = (0o755 if executable else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, content.read_bytes() if isinstance(content, Path) else content)
    os.replace(part, file)
