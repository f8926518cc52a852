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


def in_words(compared: Mapping[str, Reproduction | None]) -> str:
    """On which statements today's run agrees, disagrees, or is too short; None where it did not run what one needs."""
    found = {statement: each for statement, each in compared.items() if each is not None}
    said = []
    for kind, head in HEADS.items():
        statements = [statement for statement, each in found.items() if each.kind == kind]
        if statements:
            blocks = max(found[statement].blocks for statement in statements)
            said.append(f"{head} {listed(statements)} ({counted(blocks, 'block')}).")
    absent = [statement for statement in compared if statement not in found]
    if absent:
        said.append(f"It has no runs for {listed(absent)}.")
    return " ".join(said)


def table(
    label: str, compared: Mapping[str, Reproduction | None], what: str, basis: Basis
) -> Table:
    """Each statement with the loss today and in the reference [%]; `what` is lost, such as "Fall"."""
    rows = [(statement, *_cells(found)) for statement, found in compared.items()]
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
