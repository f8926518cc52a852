"""What two links of a node carried: their ways by name, and the part of the bytes that went over the lesser link."""

import numpy as np
import xarray as xr

NAMES = {
    "one_link": "one link",
    "ecmp_layer2": "hash of addresses",
    "ecmp_layer34": "hash of ports",
    "mptcp": "MPTCP",
    "mpi_striping": "MPI striping",
    "bond_8023ad": "bond 802.3ad",
    "bond_balance_rr": "bond balance-rr",
}


def sent_by_lesser(dataset: xr.Dataset) -> xr.DataArray:
    """Over (trial): the part of their bytes that nodes sent over whichever of their two links carried less.

    0.5 where every node used both alike and 0 where each used one, be it not the same one; NaN where nothing
    was sent.
    """
    first, second = dataset.bytes_sent_rail_1, dataset.bytes_sent_rail_2
    total = (first + second).sum("node")
    return np.minimum(first, second).sum("node") / total.where(total > 0)


def lesser_shares(lesser: xr.DataArray, least: float) -> xr.Dataset:
    """What `sent_by_lesser` gives, over (block, ...), summed up over the blocks.

    `median_share`, `smallest` and `largest`, how many `runs` there are, and how many `on_one` link: below the share `least`.
    """
    known = lesser.notnull()
    return xr.Dataset(
        {
            "median_share": lesser.median("block"),
            "smallest": lesser.min("block"),
            "largest": lesser.max("block"),
            "runs": known.sum("block"),
            "on_one": (known & (lesser < least)).sum("block"),
        }
    )
