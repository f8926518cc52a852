"""All experiments of one report: their studies, and their verdicts corrected for each other."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import xarray as xr

from analysis.inference.multiplicity import holm
from analysis.inference.verdict import Verdict
from analysis.studies import blas, noise, scaling, size
from analysis.studies.blas import Blas
from analysis.studies.noise import Noise
from analysis.studies.scaling import Scaling
from analysis.studies.size import Size


@dataclass(frozen=True)
class Studies:
    """The study of each campaign that there are data for; every verdict carries Holm's p."""

    scaling: Scaling
    size: Size | None = None
    noise: Noise | None = None
    blas: Blas | None = None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Every verdict of every study, in a fixed order."""
        return (
            *(contrast.verdict for contrast in self.scaling.contrasts),
            *(level.growth for level in (self.noise.levels if self.noise else ())),
            *((self.blas.claim,) if self.blas else ()),
        )


def analyse(datasets: Mapping[str, xr.Dataset], today: xr.Dataset | None = None) -> Studies:
    """Analyse the datasets, by campaign, and correct their verdicts within each kind of evidence.

    `hpl_scaling` has to be there; `today` is another run of it. Raises FalloffError when a dataset
    holds no HPL trial.
    """
    further = {"hpl_size": size, "hpl_noise": noise, "hpl_blas": blas}
    return corrected(
        Studies(
            scaling.analyse(datasets["hpl_scaling"], today),
            *(study.analyse(datasets[name]) if name in datasets else None for name, study in further.items()),
        )
    )


def corrected(studies: Studies) -> Studies:
    """The same studies with Holm's correction over all of their verdicts."""
    verdicts = iter(holm(studies.verdicts))
    judged, levels, blas_study = studies.scaling.contrasts, studies.noise, studies.blas
    contrasts = tuple(replace(contrast, verdict=next(verdicts)) for contrast in judged)
    if levels:
        levels = replace(levels, levels=tuple(replace(it, growth=next(verdicts)) for it in levels.levels))
    if blas_study:
        blas_study = replace(blas_study, claim=next(verdicts))
    return replace(
        studies, scaling=replace(studies.scaling, contrasts=contrasts), noise=levels, blas=blas_study
    )
