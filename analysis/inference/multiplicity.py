"""Several statements from one campaign: Holm's correction, within each kind of evidence."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analysis.inference.verdict import LEVEL, Verdict


def holm(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts in the same order, corrected for all that are judged together; sets `p_holm`.

    Holm's step-down procedure (Holm 1979) runs over the verdicts of one kind of evidence that have a p;
    kinds never mix. A verdict that was decided alone and whose p_holm exceeds LEVEL becomes `undecided`.

    One p for each statement is enough, although it may claim either `flat` or `falls off`: no fall is both
    inside the margin and beyond it, so that at most one of the two claims can be wrong and a statement
    has one chance of a wrong claim, not two. (At a fall of exactly the margin it has both.)
    Controlled is the chance, at most LEVEL, that any claim on this kind of evidence is wrong. For
    step-down tests whose claims have a direction, that is proven for independent statements (Shaffer
    1980, Annals of Statistics 8, 1342); contrasts share runs, and `analysis.calibration`
    measures it.
    """
    together = defaultdict(list)
    for index, verdict in enumerate(verdicts):
        if verdict.p is not None:
            together[verdict.evidence].append(index)
    corrected = list(verdicts)
    for family in together.values():
        p_holm = holm_p(np.array([verdicts[index].p for index in family]))
        for index, p in zip(family, p_holm):
            corrected[index] = _corrected(verdicts[index], float(p), len(family))
    return tuple(corrected)


def holm_p(p: np.ndarray) -> np.ndarray:
    """Holm's corrected p, shape (..., statements) as `p`: step down over the last axis.

    The k-th smallest of m is multiplied by m - k + 1, is never below the one before it and never above 1.
    """
    order = np.argsort(p, axis=-1)
    steps = np.arange(p.shape[-1], 0, -1)
    stepped = np.maximum.accumulate(steps * np.take_along_axis(p, order, axis=-1), axis=-1)
    corrected = np.empty_like(stepped)
    np.put_along_axis(corrected, order, np.minimum(stepped, 1), axis=-1)
    return corrected


def _corrected(verdict: Verdict, p_holm: float, statements: int) -> Verdict:
    if verdict.kind == "undecided" or p_holm <= LEVEL:
        return replace(verdict, p_holm=p_holm)
    explanation = (
        f"Decided alone as {verdict.kind} (p = {verdict.p:.3f}), not among the {statements} statements "
        f"on {verdict.evidence} evidence (Holm)."
    )
    return replace(verdict, kind="undecided", p_holm=p_holm, explanation=explanation)
