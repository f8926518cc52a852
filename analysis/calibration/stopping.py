"""When a synthetic campaign ends: with how many blocks each is judged under a stopping rule.

Two rules look at the data: `precision` (runners.plan.Stopping) after every block from FIRST_LOOK on, and `two stages`, the
extension of an undecided campaign to twice its blocks, once. `fixed` and `invalid blocks` do not look.
"""

from dataclasses import dataclass

import numpy as np

from analysis.inference.verdict import decide, half_width

RULES = ("fixed", "invalid blocks", "two stages", "precision")

# The precision rule looks from so many blocks on. A few blocks that agree by luck would end a campaign just
# when its interval is too narrow: looks from 2 blocks on leave a 95 % interval with 88 % coverage, from 8 with 94 %.
FIRST_LOOK = 8


@dataclass(frozen=True)
class Running:
    """Mean and sample standard deviation of D after each block, (campaigns, blocks, contrasts)."""

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, differences: np.ndarray) -> "Running":
        """From D, (campaigns, blocks, contrasts); the standard deviation of one block is NaN."""
        count = np.arange(1, differences.shape[1] + 1)[:, np.newaxis]
        mean = differences.cumsum(axis=1) / count
        squares = np.maximum((differences**2).cumsum(axis=1) - count * mean**2, 0)
        with np.errstate(invalid="ignore"):
            return cls(mean, np.sqrt(squares / (count - 1)))

    def after(self, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each campaign's mean and sd, (campaigns, contrasts), after its `blocks`, (campaigns,)."""
        rows = np.arange(len(blocks))
        return self.mean[rows, blocks - 1], self.sd[rows, blocks - 1]


def blocks_judged(
    rule: str, planned: int, running: Running, valid: np.ndarray, precision: float, limit: float
) -> np.ndarray:
    """With how many blocks each campaign is judged, (campaigns,), when so many are planned.

    `valid`, (campaigns, blocks), says which blocks `invalid blocks` keeps; validity does not depend on D,
    so that any as many blocks will do. `precision` is the rule's half-width of the 95 % interval of the
    primary fall, `limit` the margin on the log scale. Both look at the first contrast only.
    Raises ValueError for a rule that is not among RULES.
    """
    match rule:
        case "fixed":
            return np.full(len(valid), planned)
        case "invalid blocks":
            return valid[:, :planned].sum(axis=1)
        case "two stages":
            decided = decide(running.mean[:, planned - 1, 0], running.sd[:, planned - 1, 0], planned, limit)
            return np.where(decided.kind == "undecided", 2 * planned, planned)
        case "precision":
            looks = np.arange(min(FIRST_LOOK, planned), planned + 1)
            narrow = half_width_of_fall(running, looks) <= precision
            narrow[:, -1] = True
            return looks[narrow.argmax(axis=1)]
    raise ValueError(rule)


def half_width_of_fall(running: Running, looks: np.ndarray) -> np.ndarray:
    """Half the 95 % interval of the first contrast's relative fall at each look, (campaigns, looks)."""
    mean, sd = running.mean[:, looks - 1, 0], running.sd[:, looks - 1, 0]
    return np.exp(mean) * np.sinh(half_width(sd, looks, 0.95))
