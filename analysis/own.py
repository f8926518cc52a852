"""A user's own campaigns, for a report of these alone."""

from collections.abc import Collection, Iterator
from pathlib import Path

import xarray as xr

from analysis import store
from analysis.evidence import verify
from analysis.studies import together
from runners.journal import Folder
from runners.record import FalloffError


def datasets(folder: Path) -> tuple[dict[str, xr.Dataset], list[str]]:
    """The datasets of the campaigns in a folder by their names in the report, and why others are left out.

    A campaign that ran on another testbed than the reference takes its place. Raises FalloffError when there is no
    campaign, when two would take the same place, or when all are left out.
    """
    places: dict[str, Path] = {}
    left_out = []
    for found in verify.folders([folder]):
        plan = Folder(found).plan()
        source = plan.name, plan.testbed["name"]
        place = next((name for name, known in together.DATASETS.items() if known == source), plan.name)
        if place not in together.DATASETS:
            left_out.append(f"{found}: the report has no section for campaign {plan.name}")
        elif place in places:
            both = f"{places[place]} and {found}"
            raise FalloffError(f"{both} are both of campaign {plan.name}: name a folder with one of them")
        else:
            places[place] = found
    for place, other in _lonely(tuple(places)):
        left_out.append(f"{places.pop(place)}: campaign {place} is shown beside {other}, which is not in {folder}")
    if not places:
        raise FalloffError("\n".join(left_out))
    return {place: store.read(found) for place, found in places.items()}, left_out


def _lonely(places: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each of these datasets that is shown beside another that is not among them, with that one's name."""
    for place in places:
        needed = together.BESIDE.get(place)
        while needed in places:
            needed = together.BESIDE.get(needed)
        if needed:
            yield place, needed
