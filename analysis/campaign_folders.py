"""The campaign folders that a folder holds, and their order."""

from pathlib import Path

from analysis.evidence import verify
from runners.journal import Folder
from runners.record import FalloffError


def only(folder: Path) -> Path:
    """The folder itself if it is a campaign's, else the only campaign's in it.

    Raises FalloffError if there are several.
    """
    if (folder / "trials.json").exists():
        return folder
    folders = verify.folders([folder])
    if len(folders) > 1:
        raise FalloffError(
            f"{folder} holds several campaigns: name one of {', '.join(map(str, folders))}"
        )
    return folders[0]


def last_run(folder: Path) -> tuple[float, str]:
    """The sort key of a campaign's runs: the time of the journal's last note [s since 1970], then the folder's name."""
    notes = Folder(folder).notes()
    return (notes[-1]["at"] if notes else 0.0), folder.name


def measured(folder: str) -> list[str]:
    """Return the campaign folders below `folder` (or itself), without simulated ones; a name that is no folder is returned as it is."""
    place = Path(folder)
    if not place.is_dir() or (place / "trials.json").exists():
        return [folder]
    return [
        str(campaign)
        for campaign in verify.folders([place])
        if Folder(campaign).plan().testbed["kind"] != "simulated"
    ]
