"""A user's own MPI program as a campaign: its file in data/campaigns, from the command line that starts it."""

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from analysis import paths
from analysis.descriptions.campaigns import Campaign
from runners import executables
from runners.journal import write_whole
from runners.record import FalloffError

CAMPAIGN = "program"  # begins the name of each of them
_NODES = (2, 4, 8, 16, 32)  # as far as there are fewer than ranks
_EXAMPLE = "falloff run program --keep NAME -- mpirun -np 8 ./program"
_TEXT = """\
# Written by `falloff run program --keep {name}`. `falloff run {campaign}` goes on with it.

extends = "common/program"
name = "{campaign}"
title = "{name} on {fewest} to {most} nodes, in slow motion"

[factors]
nodes = {nodes}
program = ["{name}"]

[settings]
command = {command}
folder = {folder}

[presets.quick]
factors = {{ nodes = {ends} }}
blocks = 3

[presets.full]
"""


def described(argv: Sequence[str], name: str, folder: Path) -> str:
    """Write the campaign that runs a program in this folder on 2 to as many nodes as `argv` asks for ranks; its name.

    Raises FalloffError if the command line is none of `mpirun -np N PROGRAM ...`, or a campaign of that name is there and says
    something else.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name):
        raise FalloffError(f"name the results by --keep NAME: letters, digits and _: {_EXAMPLE}")
    campaign, text = f"{CAMPAIGN}_{name}", _text(argv, name, folder)
    file = executables.users_folder(paths.CAMPAIGNS) / f"{campaign}.toml"
    for there in (paths.CAMPAIGNS / file.name, file):
        if there.exists() and there.read_text(encoding="utf-8") != text:
            remedy = "give another --keep, or move it away"
            raise FalloffError(f"{there} is there and says something else: {remedy}")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text.encode())
    return campaign


def with_digest(campaign: Campaign) -> Campaign:
    """A campaign of a user's own program with the digest of the program, and of the files that its command line names, so
    that another program's runs are other runs."""
    command, folder = (campaign.settings.get(key) for key in ("command", "folder"))
    if campaign.runner != CAMPAIGN or folder is None:
        return campaign
    words = shlex.split(command)
    files = [Path(folder, word) for word in (shutil.which(words[0]) or words[0], *words[1:])]
    content = hashlib.sha256()
    for file in filter(Path.is_file, files):
        with file.open("rb") as stream:
            content.update(hashlib.file_digest(stream, "sha256").digest())
    return campaign.changed(settings={**campaign.settings, "digest": content.hexdigest()[:16]})


def is_one(dataset: xr.Dataset) -> bool:
    """Whether a campaign ran one program between emulated nodes and varied only the network and the number of nodes."""
    if CAMPAIGN not in dataset.runner.values:
        return False
    factors = dataset.falloff.design.factors
    return {*factors} <= {"interconnect", "nodes", "program"} and len(
        factors.get("program", ())
    ) == 1


def _text(argv: Sequence[str], name: str, folder: Path) -> str:
    ranks, words = _split_launcher(argv, folder)
    nodes = [count for count in _NODES if count < ranks] + [ranks]
    ends = sorted({nodes[0], nodes[-1]})
    return _TEXT.format(
        name=name,
        campaign=f"{CAMPAIGN}_{name}",
        fewest=nodes[0],
        most=nodes[-1],
        nodes=nodes,
        ends=ends,
        command=json.dumps(shlex.join(words), ensure_ascii=False),
        folder=json.dumps(str(folder), ensure_ascii=False),
    )


def _split_launcher(argv: Sequence[str], folder: Path) -> tuple[int, list[str]]:
    """The number of ranks, at least 2, and the program's own command line, its path made absolute."""
    words, ranks = list(argv[1:]), 0
    if not argv or not Path(argv[0]).name.startswith(("mpirun", "mpiexec")):
        raise FalloffError(f"start the program by mpirun: {_EXAMPLE}")
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in ("-np", "-n", "-c", "--np") and words and words[0].isdigit():
            ranks = int(words.pop(0))
        elif option not in ("--oversubscribe", "--allow-run-as-root"):
            raise FalloffError(
                f"{option} of mpirun has no meaning on emulated nodes, which have one rank each: {_EXAMPLE}"
            )
    if ranks < 2 or not words:
        raise FalloffError(f"say a number of ranks from 2 and a program: {_EXAMPLE}")
    if "/" in words[0]:
        words[0] = str((folder / words[0]).absolute())
    return ranks, words
