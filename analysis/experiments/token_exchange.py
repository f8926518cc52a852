"""What the sources' claims take from the token exchanges; notebook 20 is their analysis."""

from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from analysis.token_points import astray, places, points
from analysis.tokens import study_rate

OPENS = {"token_exchange": {"token_bytes": 8192}}


@dataclass(frozen=True)
class TokenExchange:
    """The campaign's dataset, and its `points` and `places` from `token_points`."""

    dataset: xr.Dataset
    points: xr.Dataset
    places: Mapping[tuple[str, float], str]

    @property
    def crowded(self) -> xr.Dataset:
        """The points with the most pairs and the largest token, over (block, path)."""
        return self.points.isel(token_bytes=-1, pairs=-1)

    @property
    def paths(self) -> dict[str, str]:
        """The path of every topology that was run at the study's rate."""
        return {
            topology: path for (topology, rate), path in self.places.items() if rate == study_rate()
        }


def analyse(token_exchange: xr.Dataset) -> TokenExchange:
    """Lay the campaign out; raises FalloffError if there is no token trial."""
    laid_out = points(token_exchange, astray(token_exchange))
    return TokenExchange(token_exchange, laid_out, places(token_exchange))
