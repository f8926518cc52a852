"""How one's own data were judged, and what they cannot tell: paragraphs for the report, each only where its data are."""

from collections.abc import Iterator, Sequence

import xarray as xr

from analysis import attributes
from analysis.importing import BLOCKS
from analysis.notebooks import OF_OWN_FILES
from analysis.own_data import HPL, MESSAGES, STREAMS, TWIN
from analysis.store import IMPORTED
from analysis.subjects import hpl_points
from analysis.wording import listed, percent


def is_import(dataset: xr.Dataset) -> bool:
    """Whether a dataset is of imported files."""
    return attributes.testbed(dataset).get("kind") == IMPORTED


def is_unordered(dataset: xr.Dataset) -> bool:
    """Whether runs of one point are no blocks."""
    return is_import(dataset) and attributes.design(dataset).get("repeats") != BLOCKS


def methods(shown: Sequence[tuple[str, xr.Dataset]]) -> str:
    """The methods of the sections, each a notebook's name and its dataset (Markdown)."""
    return "\n\n".join(_methods(shown))


def _methods(shown: Sequence[tuple[str, xr.Dataset]]) -> Iterator[str]:
    names, datasets = {name for name, _ in shown}, [each for _, each in shown]
    if any(name not in OF_OWN_FILES and not is_import(each) for name, each in shown):
        yield (
            "Every campaign was planned before it ran: points, margin, order and when to stop. A block is one run of every point in "
            "random order. Values are compared within blocks, as logarithms, and intervals are Student's $t$ over the blocks. *Falls off* "
            "needs a whole interval beyond the margin, *flat* one that lies inside it [@schuirmann]. Secondary statements are corrected for each "
            "other [@holm]. A run whose bytes went over another network, or that fails its tool's own check, has no value."
        )
    if any(name == HPL and not hpl_points.is_planned(each) for name, each in shown):
        yield (
            "HPL counts its operations and divides by the time of the slowest process [@hpl]. A run that failed HPL's residual check has no "
            "rate. The efficiency is the rate over what all nodes can compute: over Rpeak where that was given, else over the rate "
            "on one node or on the fewest nodes. Where several settings were tried, a point has those with the highest harmonic mean [@hoefler]."
        )
        yield (
            "Rates are compared as logarithms. A *fall* is the relative loss of efficiency from the fewest to the most nodes, or that of "
            f"the ratio of two networks. It is *flat* when its whole 90 % interval lies inside a margin of {percent(hpl_points.MARGIN, 0)} [@schuirmann]. It "
            "*falls off* when the whole interval lies beyond the margin. Several statements are corrected for each other [@holm]. "
            + _of_repeats(datasets)
        )
        yield (
            "Laws of the efficiency over nodes are fitted by least squares: a constant, Amdahl's [@amdahl], universal scalability [@gunther] and a power law. "
            "The law of HPL's messages [@hpl] is fitted where each node runs one process. A law that misses its data is not quoted. Each law is also fitted to at most half of the nodes, and the error is that of its "
            "prediction for the most nodes."
        )
    if MESSAGES in names:
        yield (
            "The time of a message is a latency and a time for each byte [@hockney], fitted by relative errors, in up to four pieces of sizes. A line that misses a "
            "mean time by more than a quarter is not quoted. OSU's and IMB's times are half a round trip."
        )
    if TWIN in names:
        yield from _twin()
    if MESSAGES in names or STREAMS in names:
        yield (
            "What a wire carries is the TCP payload in full frames with timestamps over IPv4, after all headers and gaps, at the rate that the "
            "network's name says and with frames of 1500 bytes unless the MTU was given."
        )


def _twin() -> Iterator[str]:
    yield (
        "Networks that are not there are simulated: HPL's own code runs under SimGrid [@simgrid] on nodes and links whose rates are fitted to "
        "the messages by size and to one node's rate. HPL on several nodes is not read by the fit. A faster Ethernet carries TCP's payload in full "
        "frames, at its worse end four fifths of that; its latency is the fitted network's. Each node has one process."
    )


def _of_repeats(datasets: Sequence[xr.Dataset]) -> str:
    unordered = [is_unordered(dataset) for dataset in datasets]
    parts = []
    if not all(unordered):
        parts.append(
            "Where runs were made in blocks, they are compared within a block, and the interval is Student's $t$ over the blocks."
        )
    if any(unordered):
        parts.append(
            "Where the order of the runs is not known, the interval of a difference is Welch's [@welch]."
        )
    return " ".join(parts)


def limits(shown: Sequence[tuple[str, xr.Dataset]]) -> str:
    """What the data of the sections cannot tell (Markdown)."""
    names, datasets = {name for name, _ in shown}, [each for _, each in shown]
    imports = [each for each in datasets if is_import(each)]
    lines = []
    if imports:
        lines.append(
            "The files record neither the machines nor what else ran on them. Nobody fixed statements, margin or number of runs before they were made."
        )
    if any(is_unordered(each) for each in imports):
        lines.append(
            "The order of the runs is not known. If all runs of one point were made one after the other, a slow change of the machine looks like a "
            "difference between points, and no interval shows it. Runs in blocks, each point once and in random order, would."
        )
    if HPL in names:
        lines.append(
            "HPL is one program. It computes much for each byte that it sends, so that other programs can lose more on the same network."
        )
    if MESSAGES in names or STREAMS in names:
        lines.append("Two hosts say nothing about many that send at once through the same switch.")
    if TWIN in names:
        lines.append(
            "The ranges of what is foretold hold only the uncertainty of the fitted numbers. How wrong the model is, is known only where HPL was run. "
            "The simulation has no loss and no incast, and its nodes are alike."
        )
    kinds = sorted({str(each.evidence.values[0]) for each in datasets})
    lines.append(
        f"All evidence is {listed(kinds)}: it holds for this cluster as it was then, and for no other."
    )
    return "\n\n".join(lines)
