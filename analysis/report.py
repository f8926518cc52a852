"""The report: facts from the data, sentences from a template, figures, and both forms of the document."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from analysis import publish, style
from analysis.calibration import error_rates
from analysis.facts import blas as blas_facts
from analysis.facts import calibration as calibration_facts
from analysis.facts import noise as noise_facts
from analysis.facts import scaling as scaling_facts
from analysis.facts import size as size_facts
from analysis.figures import blas as blas_figures
from analysis.figures import calibration as calibration_figures
from analysis.figures import noise as noise_figures
from analysis.figures import scaling as scaling_figures
from analysis.figures import size as size_figures
from analysis.inference import planning
from analysis.studies.together import Studies
from analysis.wording import templates

UNDATED = 0  # s since 1970: a dataset in which nothing ran has no date


@dataclass(frozen=True)
class Report:
    """Where the two forms of the report lie."""

    html: Path
    pdf: Path


def facts(studies: Studies, today: xr.Dataset | None = None) -> dict:
    """Every number that prose may quote, in base units: the scaling campaign's, and each other section's
    under its own name, None where there are no data for it. `today` is the run that was analysed with them."""
    primary = studies.scaling.contrasts[0].verdict
    return {
        **scaling_facts.collect(studies.scaling, today),
        "statements": sum(verdict.p is not None for verdict in studies.verdicts),
        "size": size_facts.collect(studies.size) if studies.size else None,
        "noise": noise_facts.collect(studies.noise) if studies.noise else None,
        "blas": blas_facts.collect(studies.blas) if studies.blas else None,
        "calibration": calibration_facts.collect(error_rates.load(), error_rates.results(), primary),
    }


def verdicts(known: dict) -> str:
    """The verdicts and findings in words, a Markdown list, from the facts; the report's first page says them."""
    return templates().get_template("verdicts.md.j2").render(known)


def text(known: dict, left_out: list[str]) -> str:
    """The report's Markdown from its facts; figures are files in `figures/`; `left_out` as for `build`."""
    return templates().get_template("report.md.j2").render(known, left_out=left_out)


def build(studies: Studies, today: xr.Dataset | None, out: Path, left_out: list[str]) -> Report:
    """Write `falloff.html` and `falloff.pdf` and their figures into the folder `out`.

    `today` is the run that was analysed with the studies. `left_out` says, in a line each, what could not be
    done and the remedy; the first page shows it. The same data give the same bytes.
    """
    style.save_all(draw(studies), out / "figures")
    markdown = text(facts(studies, today), left_out)
    made = Report(out / "falloff.html", out / "falloff.pdf")
    made.html.write_text(publish.to_html(markdown, out), encoding="utf-8")
    dated = studies.scaling.dataset if today is None else today
    made.pdf.write_bytes(publish.to_pdf(markdown, out, _timestamp(dated)))
    return made


def draw(studies: Studies) -> dict[str, Figure]:
    """Every figure that the data allow, by name."""
    verdict = studies.scaling.contrasts[0].verdict
    drawn = scaling_figures.draw(studies.scaling)
    for study, figures in (
        (studies.size, size_figures),
        (studies.noise, noise_figures),
        (studies.blas, blas_figures),
    ):
        drawn |= figures.draw(study) if study else {}
    return drawn | {
        "calibration": calibration_figures.error_rates(error_rates.results()),
        "power": calibration_figures.power_over_blocks(
            verdict.sd, verdict.blocks, verdict.margin, planning.LARGE_FALL
        ),
    }


def _timestamp(dataset: xr.Dataset) -> int:
    ended = dataset.attrs["ended"]
    return int(datetime.fromisoformat(ended).timestamp()) if ended else UNDATED
