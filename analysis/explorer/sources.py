"""Which datasets there are to explore: reference campaigns, folders of transcripts and netCDF files."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from analysis import paths, store
from analysis.explorer.trials import Trials, trials
from runners.journal import Folder
from runners.record import FalloffError

KEPT = 32  # datasets in memory, of about a megabyte each
FIRST = "hpl_scaling"  # what the page opens with where it is there


@dataclass(frozen=True)
class Source:
    """A dataset that can be opened: a netCDF file, or a campaign's folder of transcripts.

    `campaign` and `title` are as in its plan. `transcripts` is the folder of the raw outputs, None where it is not
    beside the file. `fault` says why it cannot be opened and is empty otherwise; such a one is its own campaign.
    """

    path: Path
    campaign: str
    title: str
    transcripts: Path | None
    fault: str = ""

    @property
    def name(self) -> str:
        """What the source is called by: its path below the repository, or all of it."""
        inside = self.path.is_relative_to(paths.ROOT)
        return str(self.path.relative_to(paths.ROOT) if inside else self.path)


@dataclass(frozen=True)
class Experiment:
    """The datasets of one campaign, of whatever evidence; they are shown side by side and never pooled."""

    name: str
    title: str
    sources: tuple[Source, ...]

    def source(self, name: str) -> Source:
        """The source of that name."""
        return next(source for source in self.sources if source.name == name)


def experiments(folder: Path | None = None) -> tuple[Experiment, ...]:
    """What there is in a folder, or without one in the reference and in what was run here; FIRST first.

    Raises FalloffError when there is no such folder.
    """
    if folder is not None and not folder.is_dir():
        raise FalloffError(f"there is no folder {folder}: give one that holds datasets (*.nc) or campaigns")
    places = (paths.REFERENCE, paths.DATASETS, paths.RAW) if folder is None else (folder,)
    found: dict[str, list[Source]] = {}
    seen: set[Path] = set()
    for source in (source for place in places for source in _sources(place)):
        if source.path not in seen:  # transcripts whose dataset is there, too, are not listed twice
            found.setdefault(source.campaign, []).append(source)
            seen |= {source.path, *([source.transcripts] if source.transcripts else [])}
    names = sorted(found, key=lambda name: (name != FIRST, any(it.fault for it in found[name]), name))
    return tuple(Experiment(name, found[name][0].title, tuple(found[name])) for name in names)


def named(name: str) -> Source:
    """The source of that name; raises FalloffError when there is none."""
    path = paths.ROOT / name  # of an absolute name the root has no part
    found = [source for source in _sources(path.parent) if source.path == path] if path.exists() else []
    if not found:
        raise FalloffError(f"there is no dataset {name}")
    return found[0]


def written(file: Path) -> Source:
    """The source of a netCDF file."""
    return _file(file, _changed(file))


def opened(source: Source) -> Trials:
    """The trials of a source; raises FalloffError when it is damaged or holds no trial of its design."""
    if source.fault:
        raise FalloffError(source.fault)
    return _opened(source, _changed(source.path))


@lru_cache(maxsize=KEPT)
def _opened(source: Source, changed: float) -> Trials:
    return trials(store.load(source.path) if source.path.suffix == ".nc" else store.read(source.path))


def _sources(place: Path) -> Iterator[Source]:
    if not place.is_dir():
        return
    for file in sorted(place.glob("*.nc")):
        yield _file(file, _changed(file))
    for folder in [place, *sorted(place.iterdir())]:
        if (folder / "trials.json").is_file():
            yield _folder(folder, _changed(folder / "trials.json"))


def _changed(path: Path) -> float:
    return path.stat().st_mtime


@lru_cache(maxsize=1024)
def _folder(folder: Path, changed: float) -> Source:
    try:
        plan = Folder(folder).plan()
    except FalloffError as error:
        return Source(folder, folder.name, "A folder that cannot be read", None, str(error))
    return Source(folder, plan.name, plan.title, folder)


@lru_cache(maxsize=1024)
def _file(file: Path, changed: float) -> Source:
    try:
        with store.opened(file) as found:
            campaign, title = (found.attrs[name] for name in ("campaign", "title"))
    except (OSError, ValueError, KeyError) as error:
        remedy = "`falloff run` or `falloff import` writes it anew"
        reason = f"{file} is not a readable dataset of Falloff's: {error}. {remedy}"
        return Source(file, file.name, "A file that cannot be read", None, reason)
    beside = [place / file.stem for place in (paths.RAW, file.parent)]
    transcripts = next((folder for folder in beside if (folder / "trials.json").is_file()), None)
    return Source(file, campaign, title, transcripts)
