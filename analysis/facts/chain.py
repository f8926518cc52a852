"""What the report's appendix says of the figures' chains of evidence."""

import re

import xarray as xr

from analysis import paths
from analysis.evidence import content
from analysis.evidence.chain import command
from analysis.evidence.exhibits import EXHIBITS
from analysis.studies.together import Studies
from runners import manifest

_FIGURE = re.compile(r"\(figures/(\w+)\.svg\)\{#fig:([\w-]+)")


def described(studies: Studies) -> list[dict]:
    """Every dataset, and after it the shorter one that was made today: its digests, trials and command."""
    return [
        _dataset(name, of[name], today)
        for name in studies.datasets
        for of, today in ((studies.datasets, False), (studies.today, True))
        if name in of
    ]


def collect(markdown: str, described: list[dict]) -> dict:
    """The chains of the figures in a report's text: `figures`, each with what it rests on; `datasets` and `files`.

    `described` is from the function of that name.
    """
    shown = [(EXHIBITS[name], anchor) for name, anchor in _FIGURE.findall(markdown)]
    there = {it["name"] for it in described}
    used = {name for exhibit, _ in shown for name in exhibit.datasets}
    return {
        "figures": [
            {
                "anchor": anchor,
                "name": exhibit.figure,
                "rests_on": [*(name for name in exhibit.datasets if name in there), *exhibit.files],
            }
            for exhibit, anchor in shown
        ],
        "datasets": [it for it in described if it["name"] in used],
        "files": {name: manifest.digest((paths.DATA / name).read_bytes()) for e, _ in shown for name in e.files},
    }


def _dataset(name: str, dataset: xr.Dataset, today: bool) -> dict:
    return {
        "name": name,
        "today": today,
        "dataset_sha256": content.digest(dataset),
        "transcripts_sha256": dataset.attrs.get("transcripts_sha256"),
        "trials": dataset.sizes["trial"],
        "command": command(dataset),
    }
