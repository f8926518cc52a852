"""The report: facts from the data, sentences from a template, figures, and both forms of the document."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from analysis import publish, store, style, summary
from analysis.claims import evaluate, ledger
from analysis.experiments import hpl_agreement, hpl_invariance, hpl_noise, hpl_table1, scale_model
from analysis.facts import beyond as beyond_facts
from analysis.facts import blas as blas_facts
from analysis.facts import calibration as calibration_facts
from analysis.facts import chain as chain_facts
from analysis.facts import claims as claims_facts
from analysis.facts import conduct
from analysis.facts.common import common
from analysis.facts import cost as cost_facts
from analysis.facts import fan_out as fan_out_facts
from analysis.facts import link_bonding as link_bonding_facts
from analysis.facts import long_path as long_path_facts
from analysis.facts import paper as paper_facts
from analysis.facts import payload as payload_facts
from analysis.facts import payoff as payoff_facts
from analysis.facts import prediction as prediction_facts
from analysis.facts.published import published_sources
from analysis.facts import rules as rules_facts
from analysis.facts import scaling as scaling_facts
from analysis.facts import size as size_facts
from analysis.facts import switch as switch_facts
from analysis.facts import token_exchange as token_exchange_facts
from analysis.facts import top500 as top500_facts
from analysis.facts import topology as topology_facts
from analysis.facts import trust as trust_facts
from analysis.figures import beyond as beyond_figures
from analysis.figures import blas as blas_figures
from analysis.figures import cost as cost_figures
from analysis.figures import fan_out as fan_out_figures
from analysis.figures import link_bonding as link_bonding_figures
from analysis.figures import long_path as long_path_figures
from analysis.figures import paper as paper_figures
from analysis.figures import payload as payload_figures
from analysis.figures import payoff as payoff_figures
from analysis.figures import prediction as prediction_figures
from analysis.figures import scaling as scaling_figures
from analysis.figures import size as size_figures
from analysis.figures import switch as switch_figures
from analysis.figures import token_exchange as token_exchange_figures
from analysis.figures import top500 as top500_figures
from analysis.figures import topology as topology_figures
from analysis.rules import check
from analysis.rules.exhibits import exhibits
from analysis.studies.together import Studies
from analysis.wording import templates
from runners import manifest
from runners.journal import write_whole

# The sections, each under its name in `Studies`, the facts and the templates.
SECTIONS = {
    "scaling": (scaling_facts, scaling_figures),
    "size": (size_facts, size_figures),
    "blas": (blas_facts, blas_figures),
    "paper": (paper_facts, paper_figures),
    "beyond": (beyond_facts, beyond_figures),
    "payload": (payload_facts, payload_figures),
    "cost": (cost_facts, cost_figures),
    "switch": (switch_facts, switch_figures),
    "long_path": (long_path_facts, long_path_figures),
    "fan_out": (fan_out_facts, fan_out_figures),
    "token_exchange": (token_exchange_facts, token_exchange_figures),
    "link_bonding": (link_bonding_facts, link_bonding_figures),
    "prediction": (prediction_facts, prediction_figures),
    "payoff": (payoff_facts, payoff_figures),
    "topology": (topology_facts, topology_figures),
    "top500": (top500_facts, top500_figures),
}

# Experiments that bring their own figures, finding and section, by their names in `Studies`.
EXPERIMENTS = {
    "noise": hpl_noise,
    "scale_model": scale_model,
    "table1": hpl_table1,
    "agreement": hpl_agreement,
    "invariance": hpl_invariance,
}

DIGITS = 10  # of a digest that are shown: enough to tell it from all others here
UNDATED = 0  # s since 1970: where nothing ran there is no date

KINDS = ("emulated", "simulated", "measured")  # of evidence, in the order of the prose


@dataclass(frozen=True)
class Report:
    """Where the report and its supplement lie, each in two forms."""

    html: Path
    pdf: Path
    supplement_html: Path
    supplement_pdf: Path


def facts(studies: Studies, entries: Sequence[evaluate.Entry] | None = None) -> dict:
    """Every number that prose may quote, in base units: each section's under its name, None where there are no data
    for it, and what concerns all of them.

    `entries` are the judged claims of the ledger; without them they are judged here.
    """
    claims = ledger.load()
    entries = evaluate.evaluate(claims, studies) if entries is None else entries
    campaigns = [conduct.campaign(dataset) for dataset in studies.datasets.values()]
    return {
        "kinds": [kind for kind in KINDS if any(it["evidence"] == kind for it in campaigns)],
        "statements": any([studies.scaling, studies.noise, studies.blas, studies.link_bonding]),
        **{name: collected.collect(study) if study else None for name, study, collected, _ in _sections(studies)},
        **{name: _experiment(module, getattr(studies, name)) for name, module in EXPERIMENTS.items()},
        "claims": claims_facts.collect(claims, entries, studies.datasets),
        "trust": trust_facts.collect(),
        "published": published_sources(),
        "campaigns": campaigns,
        "settings": conduct.settings(studies.datasets.values()),
        "calibration": calibration_facts.collect(),
    }


def verdicts(known: dict) -> str:
    """The verdicts and findings in words, a Markdown list, from the facts; the report's first page says them."""
    return templates().get_template("verdicts.md.j2").render(known)


def abstract(known: dict) -> str:
    """The report's abstract, one paragraph of Markdown, from the facts."""
    said = str(templates().get_template("abstract.md.j2").module.abstract(known))
    return re.sub("[ \n]+", " ", said).strip()  # hard spaces stay


def text(known: dict, left_out: list[str], document: str = "report") -> str:
    """The Markdown of a `document`, report or supplement, from the report's facts.

    Figures are files in `figures/`; `left_out` as for `build`.
    """
    return templates().get_template(f"{document}.md.j2").render(known, abstract=abstract(known), left_out=left_out)


def chains(markdown: str, described: list[dict]) -> str:
    """The appendix on what the figures in a report's Markdown rest on, of the datasets `described`, as Markdown."""
    known = chain_facts.collect(markdown, described)
    return templates().get_template("chain.md.j2").render(known, shown=DIGITS, algorithm=manifest.ALGORITHM)


def build(studies: Studies, out: Path, left_out: list[str], own: bool = False) -> Report:
    """Write the report (`falloff`) and its supplement (`supplement`) as HTML and PDF, their figures and the claims'
    dataset `claims.nc`, and every finding as data, `summary.json`, into the folder `out`.

    `left_out` says, in a line each, what could not be done and the remedy; the first page shows it. The same data
    give the same bytes. Raises FalloffError, before anything is written, where a figure or table breaks one of the
    twelve rules; of a user's `own` data that is a note on stderr.
    """
    claims = ledger.load()
    entries = evaluate.evaluate(claims, studies)
    known, drawn = facts(studies, entries), draw(studies)
    described = chain_facts.described(studies)
    brief, supplement = (
        f"{said}\n\n{chains(said, described)}"
        for said in (text(known, left_out), text(known, left_out, "supplement"))
    )
    documents = {
        "falloff": judged(studies, drawn, brief, own, beside=supplement),
        "supplement": judged(studies, drawn, supplement, own),
    }
    style.save_all(drawn, out / "figures")
    store.save(evaluate.dataset(entries, claims), out / "claims.nc")
    write_whole(out / "summary.json", summary.text(studies))
    dated = _timestamp([*studies.datasets.values(), *studies.today.values()])
    for name, markdown in documents.items():
        write_whole(out / f"{name}.html", publish.to_html(markdown, out))
        write_whole(out / f"{name}.pdf", publish.to_pdf(markdown, out, dated))
    return Report(*(out / f"{name}.{form}" for name in documents for form in ("html", "pdf")))


def judged(studies: Studies, drawn: dict[str, Figure], markdown: str, own: bool = False, beside: str = "") -> str:
    """The Markdown with its last appendix, how each exhibit meets the twelve rules; raises as `build` does.

    `beside` is the Markdown of the document that holds what this one leaves out, such as a base's own value.
    """
    known = replace(rules_facts.known_of(studies), elsewhere=check.labels(beside))
    found, faults = check.judge(drawn, markdown, exhibits(), known)
    brief = bool(beside)
    said = rules_facts.collect(found, studies, tested=not brief)
    appendix = templates().get_template("rules.md.j2").render(rules=said, brief=brief)
    _, of_appendix = check.judge({}, appendix, exhibits())
    check.require(faults + of_appendix, own)
    return f"{markdown}\n\n{appendix}"


def draw(studies: Studies) -> dict[str, Figure]:
    """Every figure that the data allow, by name."""
    drawn = {}
    for name, study, _, figures in _sections(studies):
        # The emulated runs have a panel beside the paper's cases.
        beside = (studies.scaling,) if name == "paper" else ()
        drawn |= figures.draw(study, *beside) if study else {}
    for name, module in EXPERIMENTS.items():
        drawn |= module.draw(getattr(studies, name)) if getattr(studies, name) and hasattr(module, "draw") else {}
    return drawn


def _experiment(module, study) -> dict | None:
    """How an experiment's campaign was conducted, where it has one, and its words, whole and `brief`; None without data."""
    if study is None:
        return None
    conducted = common(study.dataset, study.points) if hasattr(study, "dataset") else {}
    section = module.section(study)
    return {**conducted, "finding": module.finding(study), "section": section, "brief": _brief(section, module.finding(study))}


def _brief(section: str, finding: str) -> str:
    """A section's heading, its finding and its figures; the tables are in the supplement."""
    lines = section.splitlines()
    return "\n\n".join([lines[0], finding, *(line for line in lines if line.startswith("!["))])


def _sections(studies: Studies):
    return [(name, getattr(studies, name), *modules) for name, modules in SECTIONS.items()]


def _timestamp(datasets: Sequence[xr.Dataset]) -> int:
    """When the last of them ended [s since 1970]."""
    ends = [datetime.fromisoformat(it.attrs["ended"]).timestamp() for it in datasets if it.attrs["ended"]]
    return int(max(ends, default=UNDATED))
