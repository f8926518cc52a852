"""The archive's metadata as an RO-Crate: its files with their digests, and an action for each campaign.

Source: RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) with the profile Process Run Crate 0.5
(https://w3id.org/ro/wfrun/process/0.5): a CreateAction has its instrument, object and result.
"""

import json
import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocrate.model import ContextEntity
from rocrate.rocrate import ROCrate

from analysis.evidence.chain import Chain
from analysis.evidence.citation import Citation

NAME = "ro-crate-metadata.json"
PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"

# By the names alone: what a machine's own table of types says would make the same archive differ.
_TYPES = mimetypes.MimeTypes()
_COMPRESSED = {"xz": "application/x-xz", "gzip": "application/gzip"}


@dataclass(frozen=True)
class Stored:
    """A file of the archive: its size in bytes and its digest."""

    size: int
    sha256: str


def metadata(
    files: Mapping[str, Stored], chains: Iterable[Chain], citation: Citation, code: Mapping, published: str
) -> bytes:
    """The text of ro-crate-metadata.json.

    `files` are by their names in the archive, `code` has `git_commit` and `git_dirty` (None: not known), and
    `published` is the ISO 8601 date of the archive. The same arguments give the same bytes.
    """
    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms["sha256"] = SHA256
    authors = _authors(crate, citation)
    license_ = _entity(crate, f"https://spdx.org/licenses/{citation.license}", "CreativeWork", name=citation.license)
    profile = _entity(crate, PROFILE, "CreativeWork", name="Process Run Crate", version=PROFILE.rpartition("/")[2])
    root = crate.root_dataset
    root["datePublished"], root["name"] = published, citation.title
    root["description"] = "Code, raw transcripts, datasets and report of benchmark campaigns on cluster interconnects"
    root["keywords"], root["author"], root["license"], root["conformsTo"] = (
        list(citation.keywords),
        authors,
        license_,
        profile,
    )
    for name, file in sorted(files.items()):
        crate.add_file(dest_path=name, properties=_described(name, file))
    falloff = _software(crate, "Falloff", citation.version, code)
    for chain in chains:
        _act(crate, chain, files, falloff, authors)
    return (json.dumps(crate.metadata.generate(), indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _described(name: str, file: Stored) -> dict:
    kind, compressed = _TYPES.guess_type(name)
    kind = _COMPRESSED.get(compressed, kind)
    known = {"name": name, "contentSize": str(file.size), "sha256": file.sha256}
    return {**known, **({"encodingFormat": kind} if kind else {})}


def _act(crate: ROCrate, chain: Chain, files: Mapping[str, Stored], falloff: ContextEntity, authors: list) -> None:
    """A campaign as an action: from its plan, by Falloff and its hosts' tools, to all else in its folder."""
    inside = [crate.dereference(name) for name in files if name.startswith(f"{chain.folder}/")]
    plan = [entity for entity in inside if entity.id.endswith("/trials.json")]
    described = [f"data/campaigns/{chain.campaign}.toml", f"data/testbeds/{chain.testbed}.toml"]
    versions = sorted({version for session in chain.sessions for version in session.tools.values()})
    properties = {
        "@type": "CreateAction",
        "name": f"Campaign {chain.campaign} on {chain.testbed}: {chain.title}",
        "description": f"{chain.command} ({chain.evidence} evidence, {len(chain.links)} transcripts, "
        f"dataset {chain.dataset_sha256})",
        "agent": authors,
        **({"startTime": chain.started, "endTime": chain.ended} if chain.started else {}),
    }
    action = crate.add_action(
        [falloff, *(_entity(crate, f"#{version}", "SoftwareApplication", name=version) for version in versions)],
        identifier=f"#{chain.folder}",
        object=plan + [crate.dereference(name) for name in described if name in files],
        result=[entity for entity in inside if entity not in plan],
        properties=properties,
    )
    crate.root_dataset.append_to("mentions", action)


def _software(crate: ROCrate, name: str, version: str, code: Mapping) -> ContextEntity:
    commit = f"commit {code['git_commit']}" if code["git_commit"] else "commit not known"
    state = f"{commit}{' with changes' if code['git_dirty'] else ''}"
    return _entity(
        crate, "#falloff", "SoftwareApplication", name=name, version=version, softwareVersion=f"{version}, {state}"
    )


def _authors(crate: ROCrate, citation: Citation) -> list[ContextEntity]:
    return [_entity(crate, f"#{name}", "Person", name=name) for name in citation.persons] + [
        _entity(crate, f"#{name}", "Organization", name=name) for name in citation.groups
    ]


def _entity(crate: ROCrate, identifier: str, kind: str, **properties: str) -> ContextEntity:
    return crate.dereference(identifier.replace(" ", "%20")) or crate.add(
        ContextEntity(crate, identifier.replace(" ", "%20"), properties={"@type": kind, **properties})
    )
