"""What an archive says of itself to machines: a Workflow Run RO-Crate, CodeMeta, and Zenodo's deposit, all from CITATION.cff and
the campaigns' own records."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml
from rocrate.model import ContextEntity, File
from rocrate.rocrate import ROCrate

from analysis import paths
from analysis.evidence import chain
from analysis.evidence.chain import Chain
from analysis.quoting import as_written

CRATE, CODEMETA, ZENODO = "ro-crate-metadata.json", "codemeta.json", ".zenodo.json"
WORKFLOW = "falloff.py"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_LICENSES = {"MIT": "https://spdx.org/licenses/MIT"}
_UNDATED = "1980-01-01"  # as the archive's own entries, where nothing ran


def files(names: Collection[str], chains: Sequence[Chain], commit: str) -> dict[str, bytes]:
    """The three files by name, of an archive with files of these names and these campaigns."""
    cited = yaml.safe_load((paths.ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    made = {
        CRATE: crate(names, chains, cited),
        CODEMETA: codemeta(cited, commit),
        ZENODO: zenodo(cited),
    }
    return {name: (json.dumps(one, indent=1) + "\n").encode() for name, one in made.items()}


def crate(names: Collection[str], chains: Sequence[Chain], cited: Mapping[str, Any]) -> dict:
    """A Workflow Run RO-Crate: the command line as the workflow, and each campaign as a run of it from its plan to its
    transcripts."""
    made = ROCrate(version="1.1")
    made.name, made.description = (
        cited["title"],
        "Code, data and report of Falloff, as packed by `falloff evidence archive`",
    )
    made.license = _LICENSES[cited["license"]]
    made.datePublished = max((one.dataset.attrs["ended"] for one in chains), default="") or _UNDATED
    authors = [made.add(ContextEntity(made, f"#{one['name']}", {"@type": "Organization", "name": one["name"]})) for one in cited["authors"]]  # fmt: skip
    made.root_dataset["author"] = authors
    made.root_dataset["conformsTo"] = [
        made.add(
            ContextEntity(
                made,
                url,
                {"@type": "CreativeWork", "name": name, "version": url.rpartition("/")[2]},
            )
        )
        for url, name in PROFILES.items()
    ]
    python = ContextEntity(made, "https://www.python.org", {"@type": "ComputerLanguage", "name": "Python", "url": "https://www.python.org"})  # fmt: skip
    workflow = _file(made, WORKFLOW, {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "falloff", "version": str(cited["version"]), "programmingLanguage": made.add(python),
    })  # fmt: skip
    made.root_dataset["mainEntity"] = workflow
    parts = [workflow, *(_file(made, name) for name in sorted({*names} - {WORKFLOW, CRATE}))]
    made.root_dataset["hasPart"] = parts
    known = {part.id: part for part in parts}
    made.root_dataset["mentions"] = [_run(made, one, workflow, authors, known) for one in chains]
    return made.metadata.generate()


def _file(made: ROCrate, name: str, properties: Mapping[str, Any] | None = None) -> File:
    return made.add(File(made, None, name, properties=dict(properties or {"name": name})))


def _run(made, one: Chain, workflow: File, agents: Sequence, known: Mapping[str, File]):
    """A campaign as an action of the workflow."""
    folder = next((top for top in (paths.ROOT, paths.HOME) if one.folder.is_relative_to(top)), one.folder.parent)  # fmt: skip
    inside = one.folder.relative_to(folder).as_posix()
    about = {
        "@type": "CreateAction",
        "name": as_written(one.about),
        "description": chain.command(one.dataset),
        "instrument": workflow,
        "agent": list(agents),
        "object": [file for name, file in known.items() if name == f"{inside}/trials.json"],
        "result": [
            file for name, file in known.items() if name.startswith(f"{inside}/transcripts")
        ],
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
    for when, key in (("started", "startTime"), ("ended", "endTime")):
        if one.dataset.attrs[when]:
            about[key] = one.dataset.attrs[when]
    return made.add(ContextEntity(made, f"#{one.folder.name}", about))


def codemeta(cited: Mapping[str, Any], commit: str) -> dict:
    """The software as CodeMeta 3.0 describes it."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": "Falloff",
        "description": cited["title"],
        "version": str(cited["version"]),
        "license": _LICENSES[cited["license"]],
        "author": [{"@type": "Organization", "name": one["name"]} for one in cited["authors"]],
        "keywords": list(cited["keywords"]),
        "programmingLanguage": "Python",
        "operatingSystem": "Linux",
        **({"identifier": commit} if commit else {}),
    }


def zenodo(cited: Mapping[str, Any]) -> dict:
    """What Zenodo takes for a deposit."""
    return {
        "title": cited["title"],
        "upload_type": "software",
        "description": cited["message"],
        "version": str(cited["version"]),
        "creators": [{"name": one["name"]} for one in cited["authors"]],
        "license": cited["license"],
        "keywords": list(cited["keywords"]),
    }
