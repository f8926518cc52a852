"""What the commands about evidence do: trace, verify and archive; the parameters are the commands' arguments."""

import json
import sys
from datetime import datetime
from pathlib import Path

from analysis import paths
from runners import manifest
from runners.journal import Folder, read_transcript
from runners.record import FalloffError


def trace(figure: str, transcript: str, as_json: bool) -> int:
    """Print a figure's chain of evidence, or what the tools of one of its trials printed."""
    from analysis import experiments
    from analysis.evidence import chain
    from analysis.evidence import trace as tracing

    traced = experiments.find_figure(figure)
    places = {name: (name, _testbed(name)) for name in traced.campaigns}
    folders = {name: chain.folders(*place) for name, place in places.items()}
    if transcript:
        text = _transcript(figure, transcript, [folder for found in folders.values() for folder in found])
        print(text.decode() if as_json else tracing.raw(read_transcript(text, transcript)))
        return 0
    chains = {name: [chain.of(folder) for folder in found] for name, found in folders.items()}
    notes = {name: _of_the_command(*place, chains[name]) for name, place in places.items()}
    files = {name: manifest.digest((paths.DATA / name).read_bytes()) for name in traced.files}
    if as_json:
        print(json.dumps(tracing.as_json(traced, chains, notes, files), indent=2))
    else:
        print(tracing.text(traced, chains, notes, files))
    return 0


def _testbed(campaign: str) -> str:
    """The testbed that a campaign names."""
    import experiment

    return experiment.read_toml(paths.CAMPAIGNS / f"{campaign}.toml", "campaign").get("testbed", "emulated")


def _transcript(figure: str, wanted: str, folders: list[Path]) -> bytes:
    """A trial's transcript as it was written; `wanted` is a trial, or FOLDER/TRIAL where several have it."""
    within, _, trial = wanted.rpartition("/")
    found = {
        folder.name: text
        for folder in folders
        if within in ("", folder.name)
        for name, text in Folder(folder).texts()
        if name == trial
    }
    if not found:
        names = ", ".join(folder.name for folder in folders)
        raise FalloffError(
            f"no campaign of figure {figure} has a transcript {wanted!r}; they are: {names or 'none here'}"
        )
    if len(found) > 1:
        raise FalloffError(f"several campaigns have it: say one of {', '.join(f'{name}/{trial}' for name in found)}")
    return next(iter(found.values()))


def _of_the_command(campaign: str, testbed: str, chains: list) -> str:
    """Whether the command still makes the same trials here, in words; empty where it does."""
    import experiment

    try:
        plan = experiment.plan_campaign(campaign, testbed, "full")
    except FalloffError as error:
        return f"not described here: {error}"
    others = [chain for chain in chains if chain.campaign_sha256 != plan.digest]
    return "" if not others else f"its description has changed since: the trials are now {plan.digest[:10]}"


def verify(folders: list[Path], renew: bool) -> int:
    """Check campaigns' folders against what was recorded of them; 1 if anything differs.

    With `renew` what they are now is recorded, after what differed was said.
    """
    from analysis.evidence import verify as checks

    differing, renewed = 0, 0
    found = checks.folders(folders)
    for folder in found:
        try:
            check = checks.check(folder)
        except FalloffError as error:
            print(f"DIFFERS  {folder}: {error}")
            differing += 1
            continue
        print(checks.text(check), flush=True)
        differing += bool(check.differences)
        if renew:
            checks.renew(folder)
            renewed += 1
    if renew:
        print(f"Recorded anew: {renewed} campaigns")
        return int(renewed < len(found))  # one that cannot be read stays as it was recorded
    if differing:
        print(f"falloff: {differing} of {len(found)} campaigns differ from what was recorded", file=sys.stderr)
    return int(bool(differing))


def archive(file: Path) -> int:
    """Write code, data and report into one file; a report that was not made yet is built from the stored data."""
    import archiving
    import commands

    report = paths.REPORT / "falloff.html"
    if file.exists():
        raise FalloffError(f"{file} is there already: name another file, or move it away")
    if report.exists():
        print(f"Report: the one of {datetime.fromtimestamp(report.stat().st_mtime):%Y-%m-%d %H:%M}")
    else:
        print("There is no report yet: it is built from the stored data.")
        commands.make_report("stored", paths.REPORT)
    made = archiving.write(file)
    for line in made.left_out:
        print(f"left out: {line}", file=sys.stderr)
    print(f"Archive: {made.file} ({made.files} files, {made.file.stat().st_size / 1e6:.1f} MB)")
    return 0
