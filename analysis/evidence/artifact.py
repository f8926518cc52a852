"""The artifact description in the form of the SC conference: contributions, artifacts, figures and minutes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from analysis.evidence.chain import Chain
from analysis.evidence.citation import Citation
from analysis.evidence.exhibits import EXHIBITS
from analysis.publish import TEMPLATES
from analysis.studies.together import DATASETS
from analysis.wording import templates
from runners import manifest

NAME = "ARTIFACT-DESCRIPTION.md"
CONSTANTS = {"minute": 60.0, "giga": 1e9, "algorithm": manifest.ALGORITHM}  # s, B


def text(chains: Sequence[Chain], citation: Citation, code: Mapping, packages: Sequence[str]) -> str:
    """The description as Markdown, from the campaigns' chains; `code` as for `crate.metadata`, and `packages` are
    what is to be installed."""
    facts = collect(chains)
    known = {"citation": asdict(citation), "code": code, "packages": packages, **CONSTANTS, **facts}
    return templates().get_template("artifact.md.j2").render(known)


def collect(chains: Sequence[Chain]) -> dict:
    """Contributions (the report's sections that have data), artifacts (campaigns) and hosts, each with its number."""
    artifacts = [
        {**asdict(chain), "id": f"A{number}", "names": _names(chain)} for number, chain in enumerate(chains, 1)
    ]
    known = {name for artifact in artifacts for name in artifact["names"]}
    contributions = []
    for section in dict.fromkeys(exhibit.section for exhibit in EXHIBITS.values()):
        shown = [
            it for it in EXHIBITS.values() if it.section == section and it.datasets and known.issuperset(it.datasets)
        ]
        own = [it for it in artifacts if any(name in exhibit.datasets for exhibit in shown for name in it["names"])]
        if own:
            contributions.append({"id": f"C{len(contributions) + 1}", "title": _title(section), "artifacts": own})
    for artifact in artifacts:
        artifact["contributions"] = [it["id"] for it in contributions if artifact in it["artifacts"]]
        artifact["figures"] = [it.figure for it in EXHIBITS.values() if set(it.datasets) & set(artifact["names"])]
    return {"contributions": contributions, "artifacts": artifacts, "hosts": _hosts(chains)}


def _title(section: str) -> str:
    """The heading of the report's section; its plain name where the data make the heading, or it has no template."""
    file = TEMPLATES / f"{section}.md.j2"
    found = re.search(r"^#+ ([^{}\n]+)$", file.read_text(encoding="utf-8"), re.M) if file.exists() else None
    return found[1] if found else section.replace("_", " ").capitalize()


def _names(chain: Chain) -> list[str]:
    """What the report calls a campaign's dataset; nothing where the report does not show it."""
    return [name for name, source in DATASETS.items() if source == (chain.campaign, chain.testbed)]


def _hosts(chains: Sequence[Chain]) -> list[dict]:
    """Each kind of machine that drove campaigns, with the versions of its tools."""
    hosts: dict[tuple, dict] = {}
    for session in (session for chain in chains for session in chain.sessions):
        key = (session.system, session.kernel, session.cpu_model, session.cpus, session.memory_bytes)
        found = hosts.setdefault(key, {**asdict(session), "tools": set()})
        found["tools"] |= set(session.tools.values())
    return [{**host, "tools": sorted(host["tools"])} for host in hosts.values()]
