"""Compare a shorter run of today with a reference, in words and as a table. It agrees only where it
could have disagreed."""

from collections.abc import Mapping

import xarray as xr

from analysis.findings import gave_nothing, without_reading
from analysis.statistics.reproduction import NOT_REPRODUCED, REPRODUCED, TOO_SHORT, Reproduction
from analysis.wording import counted, listed

HEADS = {
    REPRODUCED: "**Today's run agrees** on",
    NOT_REPRODUCED: "**Today's run disagrees** on",
    TOO_SHORT: "Today's run is too short to judge",
}
# By statement; None if today's run has no data for it.
Compared = Mapping[str, Reproduction | None]


def failed_in_words(run: xr.Dataset) -> str:
    """How many trials of today's run failed, and why; empty if none did."""
    failed = without_reading(run)
    head = "**Today's run failed**: " if gave_nothing(run) else "Of today's run "
    return f"{head}{failed}" if failed else ""


def in_words(compared: Compared, run: xr.Dataset) -> str:
    """The statements on which today's run agrees, disagrees or is too short, and those for which it
    has no runs. The number of failed trials comes first. A run without any result is not
    compared."""
    sentences = list(filter(None, [failed_in_words(run)]))
    if gave_nothing(run):
        return sentences[0]
    for kind, head in HEADS.items():
        blocks = {
            name: each.blocks for name, each in compared.items() if each and each.kind == kind
        }
        if blocks:
            sentences.append(
                f"{head} {listed([*blocks])} ({counted(max(blocks.values()), 'block')})."
            )
    absent = [name for name, each in compared.items() if each is None]
    if absent:
        sentences.append(f"It has no runs for {listed(absent)}.")
    return " ".join(sentences)
