"""What the report's Markdown says of each figure and table: caption, columns, means, intervals, n and evidence."""

import re
from dataclasses import dataclass

FIGURE = re.compile(r"^!\[(?P<caption>.*?)\]\(figures/(?P<name>\w+)\.svg\)\{#(?P<label>fig:[\w-]+)", re.S | re.M)
TABLE = re.compile(r"^Table: (?P<caption>.*?) ?\{#(?P<label>tbl:[\w-]+)[^}]*\}", re.S | re.M)

NUMBER = r"[\u2212+-]?\d[\d., ]*(?:[\u00d7x]\s*10\S*)?"
BARE = re.compile(rf"[*_]*{NUMBER}(?: \({NUMBER}(?: to {NUMBER})?\))?[*_]*")
UNIT = re.compile(r"\[[^\]]+\]")
# Columns of counts, of names of settings and of what has no unit by definition.
PURE = re.compile(
    r"no\.|nodes|blocks( today)?|n|N|N at .*|NB|P|Q|runs|trials|cases|links|pairs|designs|receivers|senders|processes"
    r"|connections|streams|aicc|p|least p.*|holm's p|free slots|order|.*\bnodes?\b.*|.*ratio.*|.*factor.*|.*slowdown.*"
    r"|.*exponent.*|.*elasticit.*|.*amplification.*"
    r"|.* / .*|depth.*|.*fairness.*|.*times.*|points .*|links a node|wires|in links.*|.*AICc.*",
    re.I,
)
COUNTED = re.compile(
    r"\bn = |\bn is |\b\d[\d ]* (?:valid )?(?:blocks?|runs?|trials?|draws|resamples|cases|campaigns|links?)\b"
)
COUNT_COLUMN = re.compile(r"blocks( today)?|n|runs|trials|cases|links", re.I)
INTERVAL = re.compile(
    r"9\d %[^.;:|]{0,60}?(?:t interval|t band|percentile|Fieller|prediction|profile|bootstrap|range|t$)|"
    r"Fieller|t intervals?\b|t band|prediction interval|McKay|percentile interval|bootstrap-t|standard error|z-based"
)
LEVEL = re.compile(r"9\d %|standard error")
EVIDENCE = re.compile(r"\b(?:emulated|simulated|measured|published|assumed|synthetic|imported)\b", re.I)
MEAN = re.compile(
    r"(?<![\w-])(?:(arithmetic|harmonic|geometric)(?:[- ]\w+)?[ -])?(?:means?|averages?|averaged)\b", re.I
)
VERDICT = re.compile(r"verdict|as much\?|at the margin|judged|the belief is|agrees", re.I)
WAITING = re.compile(r"latency|round trip", re.I)
PERCENTILE = re.compile(r"\b(?:99|99\.9) %(?! (?:t |interval|percentile|range|band))|quantile", re.I)
CHOSEN = re.compile(r"\b(?:the best|best of|selected|chosen|representative|typical|excluded|left out|picked)\b", re.I)


@dataclass(frozen=True)
class Said:
    """An exhibit in words: `label`, the `figure`'s name (empty for a table), `caption`, a table's `columns`, and of
    those, columns of bare numbers without a unit."""

    label: str
    figure: str
    caption: str
    columns: tuple[str, ...] = ()
    unitless: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Caption and columns in one line, with plain spaces."""
        return plain(" | ".join([self.caption, *self.columns]))


def read(markdown: str) -> list[Said]:
    """All figures and tables with a label, in no order of the text: figures first."""
    figures = [Said(it["label"], it["name"], plain(it["caption"])) for it in FIGURE.finditer(markdown)]
    return figures + [_table(it, markdown) for it in TABLE.finditer(markdown)]


def plain(text: str) -> str:
    """Text in one line, hard and soft spaces as spaces."""
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ").replace("\u00ad", "")).strip()


def _table(found: re.Match, markdown: str) -> Said:
    columns, _, *body = _rows_before(markdown[: found.start()]) or [(), ()]
    caption = plain(found["caption"])
    without = [] if UNIT.search(caption) else [row for row in body if not UNIT.search(" ".join(row))]
    cells = [[row[at] for row in without if at < len(row)] for at in range(len(columns))]
    unitless = [name for name, own in zip(columns, cells) if _is_bare(name, own)]
    return Said(found["label"], "", caption, tuple(columns), tuple(unitless))


def _rows_before(text: str) -> list[tuple[str, ...]]:
    """The rows of the table that a text ends with, the first two of them its columns and their alignment."""
    rows = []
    for line in reversed(text.splitlines()):
        if line.startswith("|"):
            rows.append(_cells(line))
        elif line.strip():
            break
    return rows[::-1]


def _cells(line: str) -> tuple[str, ...]:
    return tuple(plain(cell) for cell in line.strip().strip("|").split("|"))


def _is_bare(name: str, cells: list[str]) -> bool:
    """Whether a column holds numbers whose unit neither its name nor a cell says."""
    told = [cell for cell in cells if cell not in ("", "—")]
    numbers = bool(told) and all(BARE.fullmatch(cell) for cell in told)
    return numbers and not UNIT.search(name) and not PURE.fullmatch(name.strip("$ "))
