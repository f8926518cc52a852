"""What an archive says of itself to machines: a Workflow Run RO-Crate, CodeMeta, and Zenodo's
deposit, all from CITATION.cff and the campaigns' own records."""

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
    return {name: (json.dumps(data, indent=1) + "\n").encode() for name, data in made.items()}


def crate(names: Collection[str], chains: Sequence[Chain], cited: Mapping[str, Any]) -> dict:
    """A Workflow Run RO-Crate: the command line as the workflow, and each campaign as a run of it
    from its plan to its transcripts."""
    made = ROCrate(version="1.1")
    made.name = cited["title"]
    made.description = "Code, data and report of Falloff, as packed by `falloff evidence archive`"
    made.license = _LICENSES[cited["license"]]
    ended = [source.dataset.attrs["ended"] for source in chains]
    made.datePublished = max(ended, default="") or _UNDATED
    authors = [_entity(made, f"#{author['name']}", **author) for author in _authors(cited)]
    made.root_dataset["author"] = authors
    made.root_dataset["conformsTo"] = [
        _entity(
            made, url, **{"@type": "CreativeWork", "name": name, "version": url.rpartition("/")[2]}
        )
        for url, name in PROFILES.items()
    ]
    about = {"@type": "ComputerLanguage", "name": "Python", "url": "https://www.python.org"}
    python = _entity(made, about["url"], **about)
    workflow = _file(made, WORKFLOW, {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "name": "falloff", "version": str(cited["version"]), "programmingLanguage": python,
    })  # fmt: skip
    made.root_dataset["mainEntity"] = workflow
    others = sorted({*names} - {WORKFLOW, CRATE})
    files = {name: _file(made, name, {"name": name}) for name in others}
    made.root_dataset["hasPart"] = [workflow, *files.values()]
    made.root_dataset["mentions"] = [
        _run(made, source, workflow, authors, files) for source in chains
    ]
    return made.metadata.generate()


def _entity(made: ROCrate, identity: str, **about: Any) -> ContextEntity:
    return made.add(ContextEntity(made, identity, about))


def _file(made: ROCrate, name: str, about: Mapping[str, Any]) -> File:
    return made.add(File(made, None, name, properties=dict(about)))


def _authors(cited: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"@type": "Organization", "name": author["name"]} for author in cited["authors"]]


def _run(
    made: ROCrate, source: Chain, workflow: File, agents: Sequence, files: Mapping[str, File]
) -> ContextEntity:
    """A campaign as an action of the workflow."""
    folder, attributes = source.folder, source.dataset.attrs
    tops = [top for top in (paths.ROOT, paths.HOME) if folder.is_relative_to(top)]
    inside = folder.relative_to([*tops, folder.parent][0]).as_posix()
    moments = {"startTime": attributes["started"], "endTime": attributes["ended"]}
    return _entity(
        made,
        f"#{folder.name}",
        **{"@type": "CreateAction"},
        name=as_written(source.about),
        description=chain.command(source.dataset),
        instrument=workflow,
        agent=list(agents),
        object=[file for name, file in files.items() if name == f"{inside}/trials.json"],
        result=[file for name, file in files.items() if name.startswith(f"{inside}/transcripts")],
        actionStatus="http://schema.org/CompletedActionStatus",
        **{key: moment for key, moment in moments.items() if moment},
    )


def codemeta(cited: Mapping[str, Any], commit: str) -> dict:
    """The software as CodeMeta 3.0 describes it."""
    return {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": "Falloff",
        "description": cited["title"],
        "version": str(cited["version"]),
        "license": _LICENSES[cited["license"]],
        "author": _authors(cited),
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
        "creators": [{"name": author["name"]} for author in cited["authors"]],
        "license": cited["license"],
        "keywords": list(cited["keywords"]),
    }
