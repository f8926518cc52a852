"""What prose may quote of HPL's messages: sizes and volumes are in bytes, shares are fractions."""

import json

import numpy as np
import xarray as xr

from analysis.facts.conduct import campaign
from analysis.facts.plain import known
from analysis.studies.payload import SMALL, Payload, Profile
from analysis.studies.scaling import short_names


def collect(study: Payload) -> dict:
    """All facts of the profiles, by kind of evidence; what is not known is None."""
    return {"small": SMALL, "profiles": [_profile(profile) for profile in study.profiles]}


def _profile(profile: Profile) -> dict:
    summary, names = profile.summary, short_names(profile.dataset)
    networks = json.loads(profile.dataset.attrs["design"])["factors"]["interconnect"]
    points = [_point(summary.sel(nodes=n), profile) for n in summary.nodes.values]
    first, last = points[0], points[-1]
    return {
        "campaign": campaign(profile.dataset),
        "evidence": profile.evidence,
        "network": names[profile.network],
        "others": [names[other] for other in networks if other != profile.network],
        "same": profile.same,
        "missing": list(profile.missing),
        "one_row": all(point["P"] == 1 for point in points),
        "points": points,
        "least": first,
        "most": last,
        "messages_per_node_growth": last["messages_per_node"] / first["messages_per_node"],
        "bytes_per_node_growth": last["bytes_per_node"] / first["bytes_per_node"],
        "worth_of_latency": _worth_of_latency(profile),
        "apart": last["half_bytes"][0] / last["median"][1],
    }


def _point(at: xr.Dataset, profile: Profile) -> dict:
    nodes = int(at.nodes)
    return {
        "nodes": nodes,
        **{name: int(at[name]) for name in ("N", "P", "Q")},
        "messages": float(at.messages),
        "bytes": float(at.bytes),
        "messages_per_node": float(at.messages) / nodes,
        "bytes_per_node": float(at.bytes) / nodes,
        "mean_size": float(at.mean_size),
        "median": _class(profile, at.median_size),
        "half_bytes": _class(profile, at.half_bytes_size),
        "small_messages": float(at.small_messages),
        "small_bytes": float(at.small_bytes),
        "over_broadcast": known(at.bytes / at.broadcast_bytes) if at.Q > 1 else None,
        "interfaces": known(at.bytes_sent / at.bytes),
    }


def _worth_of_latency(profile: Profile) -> float | None:
    """The bytes that a modelled network transfers in the latency of a message; None where it is no model."""
    network = json.loads(profile.dataset.attrs["testbed_settings"]).get("network", {}).get(profile.network)
    return None if network is None else network["bandwidth"]["value"] * network["latency"]["value"]


def _class(profile: Profile, least: xr.DataArray) -> tuple[float, float]:
    """The sizes [B] from the least of a class to the least of the next; the last class has no end."""
    sizes = profile.messages["size"].values
    above = sizes[sizes > float(least)]
    return float(least), float(above[0]) if above.size else np.inf
