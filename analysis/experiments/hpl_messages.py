"""What the sources' claims take from the messages that HPL sends; notebook 48 is their analysis."""

from dataclasses import dataclass

import xarray as xr

from analysis import messages

OPENS = {"hpl_payload": {"y": "payload_messages", "x": "size", "series": "nodes"}}


@dataclass(frozen=True)
class Payload:
    """The emulated campaign's dataset, and a profile for each campaign that has one: simulated
    first, then emulated."""

    dataset: xr.Dataset
    profiles: tuple[messages.Profile, ...]


def analyse(hpl_payload: xr.Dataset, hpl_paper: xr.Dataset | None = None) -> Payload:
    """The profiles of two campaigns over interconnect and nodes, of one block each.

    Raises FalloffError when a dataset holds no HPL trial or has several blocks.
    """
    return Payload(hpl_payload, messages.profiles(hpl_paper, hpl_payload))
