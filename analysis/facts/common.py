"""What the section of any HPL campaign has to say of it before its results."""

import json

import xarray as xr

from analysis.facts.conduct import campaign, faults
from analysis.statistics.judgement import LEVEL
from analysis.studies.scaling import short_names


def common(dataset: xr.Dataset, points: xr.Dataset) -> dict:
    """How the campaign was designed and conducted, and what failed; `points` is from `derive.points`."""
    return {
        "campaign": campaign(dataset),
        "design": {"looks": [], "one_sided": LEVEL, **json.loads(dataset.attrs["design"])},
        "names": short_names(dataset),
        "evidence": points.evidence.item(),
        "caveat": dataset.attrs.get("caveat", ""),
        "blocks": {
            "run": points.sizes["block"],
            "valid": int(points.rate.notnull().all([dim for dim in points.rate.dims if dim != "block"]).sum()),
        },
        "share_of": points.share.attrs["of"],
        "settings": json.loads(dataset.attrs["settings"]),
        "testbed": json.loads(dataset.attrs["testbed_settings"]),
        "faults": faults(dataset, points),
    }
