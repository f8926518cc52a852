"""What the report's appendix says of the figures' chains of evidence."""

import re
from collections.abc import Iterator

import xarray as xr

from analysis import paths
from analysis.evidence import content
from analysis.evidence.chain import command
from analysis.evidence.exhibits import EXHIBITS
from analysis.studies.together import Studies
from runners import manifest

_FIGURE = re.compile(r"\(figures/(\w+)\.svg\)\{#fig:([\w-]+)")


def collect(markdown: str, studies: Studies) -> dict:
    """The chains of the figures in a report's text: `figures`, each with what it rests on; `datasets` and `files`."""
    shown = [(EXHIBITS[name], anchor) for name, anchor in _FIGURE.findall(markdown)]
    return {
        "figures": [
            {
                "anchor": anchor,
                "name": exhibit.figure,
                "rests_on": [*(name for name in exhibit.datasets if name in studies.datasets), *exhibit.files],
            }
            for exhibit, anchor in shown
        ],
        "datasets": [_dataset(name, *it) for name, *it in _datasets({e for e, _ in shown}, studies)],
        "files": {name: manifest.digest((paths.DATA / name).read_bytes()) for e, _ in shown for name in e.files},
    }


def _datasets(exhibits: set, studies: Studies) -> Iterator[tuple[str, xr.Dataset, bool]]:
    """Each dataset that the figures rest on, and after it the shorter one that was made today."""
    used = {name for exhibit in exhibits for name in exhibit.datasets}
    for name in studies.datasets:
        for of, today in ((studies.datasets, False), (studies.today, True)):
            if name in used and name in of:
                yield name, of[name], today


def _dataset(name: str, dataset: xr.Dataset, today: bool) -> dict:
    return {
        "name": name,
        "today": today,
        "dataset_sha256": content.digest(dataset),
        "transcripts_sha256": dataset.attrs.get("transcripts_sha256"),
        "trials": dataset.sizes["trial"],
        "command": command(dataset),
    }
