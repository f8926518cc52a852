"""How a user's own data were judged, and what they cannot tell: the paragraphs of templates/methods.md and limits.md, each only
where its data are."""

from collections.abc import Collection, Sequence

import xarray as xr

from analysis.dataset_sections import HPL, MESSAGES, STREAMS, TWIN
from analysis.publish import TEMPLATES
from analysis.subjects.hpl_points import MARGIN
from analysis.wording import listed, percent


def sections(names: Collection[str], datasets: Sequence[xr.Dataset]) -> str:
    """The report's sections on methods and limits (Markdown), for the names of its notebooks and the datasets that they show."""
    imported = [dataset.falloff.is_imported for dataset in datasets]
    unordered = [dataset.falloff.is_unordered for dataset in datasets]
    is_there = {
        "planned": not all(imported),
        "imported": any(imported),
        "hpl": HPL in names,
        "unplanned": HPL in names and any(imported),
        "blocks": HPL in names and not all(unordered),
        "unordered": HPL in names and any(unordered),
        "no blocks": any(unordered),
        "messages": MESSAGES in names,
        "wire": MESSAGES in names or STREAMS in names,
        "twin": TWIN in names,
        "evidence": True,
    }
    words = {
        "margin": percent(MARGIN, 0),
        "kinds": listed(sorted({dataset.falloff.evidence for dataset in datasets})),
    }
    parts = []
    for title in ("Methods", "Limits"):
        text = (TEMPLATES / f"{title.lower()}.md").read_text(encoding="utf-8").strip()
        paragraphs = [paragraph.partition(": ") for paragraph in text.split("\n\n")]
        chosen = [text for key, _, text in paragraphs if is_there[key]]
        parts += [f"# {title}", *chosen] if chosen else []
    return "\n\n".join(parts).format(**words)
