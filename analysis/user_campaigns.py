"""A user's own campaigns in a folder, for a report of these alone."""

from pathlib import Path

import xarray as xr

from analysis import store
from analysis.evidence import verify
from runners.journal import Folder
from runners.record import FalloffError


def of_campaign(folder: Path, campaign: str) -> list[Path]:
    """The folders inside a folder that hold trials of a campaign; raises FalloffError when it holds no campaign at all."""
    return [found for found in verify.folders([folder]) if Folder(found).plan().name == campaign]


def dataset(folder: Path, campaign: str) -> xr.Dataset:
    """The dataset of a campaign in a folder; raises FalloffError when it holds none of it, or several."""
    found = of_campaign(folder, campaign)
    if not found:
        raise FalloffError(f"{folder} holds no campaign {campaign}")
    if len(found) > 1:
        both = " and ".join(map(str, found))
        raise FalloffError(f"{both} are both of campaign {campaign}: name a folder with one of them")
    return store.read(found[0])
