"""What a shorter run of today says of a reference, in words and as a table: it agrees only where it could have disagreed."""

from collections.abc import Mapping

from analysis.exhibit import Basis, Table
from analysis.statistics.reproduction import NOT_REPRODUCED, REPRODUCED, TOO_SHORT, Reproduction
from analysis.wording import UNKNOWN, between, counted, fixed, listed, percent

HEADS = {
    REPRODUCED: "**Today's run agrees** on",
    NOT_REPRODUCED: "**Today's run disagrees** on",
    TOO_SHORT: "Today's run is too short to judge",
}
# By statement; None where today's run has no runs for it.
Compared = Mapping[str, Reproduction | None]


def in_words(compared: Compared) -> str:
    """On which statements today's run agrees, disagrees, or is too short, and those for which it has no runs."""
    sentences = []
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


def table(label: str, compared: Compared, what: str, basis: Basis) -> Table:
    """Each statement with the loss today and in the reference [%]; `what` is lost, such as "Fall"."""
    columns = (
        "Statement",
        "Today",
        "Blocks",
        f"{what} today",
        f"{what} in the reference",
        "What is left, today / reference (90 % interval)",
    )
    caption = (
        "Today's run against the reference. Reproduced: the interval of the last column lies inside the margin; not reproduced: it "
        "lies beyond, or the answers exclude each other"
    )
    rows = [(statement, *_cells(each)) for statement, each in compared.items()]
    return Table(label, columns, "llrrrl", rows, caption, basis)


def _cells(found: Reproduction | None) -> tuple[str, ...]:
    if found is None:
        return "not run", *4 * (UNKNOWN,)
    lost = [percent(None if left is None else 1 - left) for left in (found.today, found.reference)]
    ratio = UNKNOWN
    if None not in (found.today, found.reference):
        ratio = fixed(found.today / found.reference, 3)
    if found.interval and found.interval[0] < found.interval[1]:
        ratio += f" ({between(found.interval, 3)})"
    return found.kind, str(found.blocks), *lost, ratio
