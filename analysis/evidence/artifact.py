"""The artifact description in the form of the SC conference: contributions, artifacts, figures and minutes."""

from collections.abc import Mapping, Sequence

from analysis import experiments
from analysis.evidence.chain import Chain, Session
from analysis.evidence.citation import Citation
from analysis.wording import UNKNOWN, counted, moment, number, plain
from runners import manifest

NAME = "ARTIFACT-DESCRIPTION.md"


def text(chains: Sequence[Chain], citation: Citation, code: Mapping, packages: Sequence[str]) -> str:
    """The description as Markdown, from the campaigns' chains; `code` as for `crate.metadata`, and `packages` are
    what is to be installed."""
    names = {chain.campaign: f"A{number}" for number, chain in enumerate(chains, 1)}
    commit = f"commit `{code['git_commit']}`" if code.get("git_commit") else "commit not known"
    changed = " with changes that no commit has" if code.get("git_dirty") else ""
    busy = sum(chain.busy_s for chain in chains) / 60
    return f"""# Artifact Description: {citation.title}

Made by `falloff archive` from the campaigns' own records. Version {citation.version}, {commit}{changed}.

## Overview of contributions and artifacts

### Main contributions

{_contributions(names)}

### Computational artifacts

| Artifact | Campaign | Evidence | Figures |
|:--|:--|:--|:--|
{_lines(f"| {names[it.campaign]} | `{it.campaign}` on `{it.testbed}` | {it.evidence} | {_figures(it.campaign)} |" for it in chains)}

A figure's whole chain is printed by `falloff trace FIGURE`.

## Hardware

{_lines(dict.fromkeys(_machine(session) for chain in chains for session in chain.sessions))}

Emulated and simulated campaigns need one such machine. Measured ones need the cluster that their `trials.json` describes; to
verify them and to rebuild their figures needs no cluster.

## Software

{_lines(sorted({f"- {plain(version)}" for chain in chains for session in chain.sessions for version in _versions(session)}))}
- Python packages: {", ".join(map(plain, packages))}. Their locked versions are in `requirements.lock`, the Debian packages in `debian-packages.txt`.

## Installation

    make setup

Without root it names what is missing; to verify and to build the report from the stored data needs the Python packages only.

## Artifact evaluation

Each artifact is first checked against its own record, then shown, then made anew where there is a machine for it:

    falloff verify
    falloff report --preset stored

{_lines(_artifact(chain, names[chain.campaign]) for chain in chains)}

## Minutes

Execution is what all trials of an artifact took together, as measured. Setup and analysis were not recorded.

| Artifact | Execution (measured) | Trials | From | to |
|:--|--:|--:|:--|:--|
{_lines(f"| {names[it.campaign]} | {number(it.busy_s / 60) if it.busy_s else UNKNOWN} | {len(it.links)} | {moment(it.started)} | {moment(it.ended)} |" for it in chains)}

All executions together: {number(busy)} minutes.
"""


def _contributions(names: Mapping[str, str]) -> str:
    """Each experiment of which there are campaigns, with their artifacts."""
    lines = []
    for module in experiments.modules():
        own = [names[campaign] for campaign in experiments.campaigns(module) if campaign in names]
        if own:
            subject = (module.__doc__ or "").splitlines()[0]
            lines.append(f"- **C{len(lines) + 1}** {plain(subject)} ({', '.join(own)})")
    return "\n".join(lines)


def _artifact(chain: Chain, name: str) -> str:
    run = chain.command.startswith("falloff run")
    takes = ", expected to take what its trials took when they were run." if run else ". It was run elsewhere."
    return f"""### {name}: {plain(chain.title)}

- **Figures**: {_figures(chain.campaign)}.
- **Inputs**: `{chain.folder}/trials.json`, {counted(len(chain.links), "transcript")} beside it ({manifest.ALGORITHM} of all `{chain.transcripts_sha256}`).
- **Expected result**: `falloff verify {chain.folder}` says ok; the rebuilt dataset's content has the {manifest.ALGORITHM} `{chain.dataset_sha256}`.
- **Execution**: `{chain.command}`{takes}
"""


def _figures(campaign: str) -> str:
    labels = [f"`{label}`" for label, figure in experiments.traced().items() if campaign in figure.campaigns]
    return ", ".join(labels) or "none"


def _machine(session: Session) -> str:
    model = plain(session.cpu_model or "processor not recorded")
    processors = counted(session.cpus, "processor") if session.cpus else "number of processors not recorded"
    memory = f"{number(session.memory_bytes / 1e9)} GB of memory" if session.memory_bytes else "memory not recorded"
    return f"- {model}, {processors}, {memory}"


def _versions(session: Session) -> list[str]:
    return [f"{session.system or 'system not recorded'}, kernel {session.kernel or 'not recorded'}", *session.tools.values()]


def _lines(lines) -> str:
    return "\n".join(lines)
