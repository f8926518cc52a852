"""The notebooks that show a dataset, by the readings that it has."""

import xarray as xr

HPL, MESSAGES, STREAMS = "40_hpl_scaling", "12_ping_pong", "52_parallel_streams"
COLLECTIVES, TWIN = "13_collectives", "55_twin"
# A dataset with any of these readings has the section of its notebook.
NOTEBOOKS = {
    HPL: ["hpl_rate"],
    MESSAGES: ["message_time", "message_bandwidth"],
    STREAMS: (
        "goodput goodput_reverse transaction_rate round_trip_time half_round_trip "
        "ping_pong_latency_mean ping_pong_bandwidth_mean"
    ).split(),
    COLLECTIVES: (
        "collective_time bus_bandwidth reported_rate reported_time dgemm_star_rate "
        "ptrans_bandwidth random_access_rate stream_triad_star_bandwidth fft_rate program_time"
    ).split(),
}


def has(dataset: xr.Dataset, notebook: str) -> bool:
    """Whether a dataset has readings that this notebook shows."""
    return any(bool(dataset[name].notnull().any()) for name in NOTEBOOKS[notebook])


def of(dataset: xr.Dataset) -> list[str]:
    """The notebooks that show a dataset's readings; empty if no notebook shows any of them."""
    return [notebook for notebook in NOTEBOOKS if has(dataset, notebook)]
