"""Run a campaign, show how far it is, and what is installed and missing."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.commands.grammar import (
    CAMPAIGN,
    TESTBED,
    Name,
    Number,
    argument,
    asks_what_if,
    command,
    described,
    keep_option,
    option,
)
from runners import executables
from runners.records.record import FalloffError, unknown

# A paced and a simulated campaign, of each of which a tiny trial is run.
TRIED = ("hpl_scaling", "hpl_paper_simulated")


@command(
    "run",
    examples="""
        falloff run --list
        falloff run hpl_scaling --plan
        falloff run hpl_scaling --preset quick
        falloff run hpl_scaling --testbed mycluster --submit
        falloff run program --keep mine -- mpirun -np 8 ./program
        falloff run nightly --minutes 5 --testbed mycluster --pack nights/2026-11-26
    """,
)
@argument("campaign", type=CAMPAIGN, required=False, help="A name in data/campaigns.")
@argument(
    "argv", nargs=-1, metavar="[-- PROGRAM...]", help="`program` only: the command line to run."
)
@keep_option
@asks_what_if
@option(
    "--minutes M", "`nightly` only: the length of a session, 5 by default.", type=Number(0, 1440)
)
@option("--list", "List the campaigns.", "listed")
@option(
    "--plan", "Run nothing; print when each look is due and how likely it is to decide.", "planned"
)
@option("--testbed NAME", "A name in data/testbeds; by default the campaign's own.", type=TESTBED)
@option(
    "--preset NAME",
    "The campaign's stopping rule: quick or full.",
    type=Name(lambda: ("quick", "full")),
    default="full",
)
@option(
    "--repeats K",
    "Run exactly K blocks instead.",
)
@option("--fresh", "Start over; earlier trials are moved aside.")
@option("--submit", "Run the missing trials as a Slurm job.")
@option(
    "--pack FOLDER",
    "Also write a compressed copy of the campaign to FOLDER, and go on with one that is there.",
    "packed",
)
def run(
    campaign: str | None,
    argv: tuple[str, ...],
    program: str | None,
    minutes: float | None,
    listed: bool,
    planned: bool,
    testbed: str | None,
    preset: str,
    repeats: int | None,
    fresh: bool,
    submit: bool,
    packed: Path | None,
    **asked: Any,
) -> int:
    """Run a campaign, or its missing trials.

    Keep the transcripts and the dataset, and print its notebook's statements. You may interrupt a
    run at any time; the same command continues it.

    `falloff run program --keep NAME -- mpirun -np 8 ./program` runs any MPI program, unchanged, on
    2, 4 and 8 emulated nodes in slow motion, as the campaign program_NAME: does it fall off on
    GigE, does it stay flat on 10GE? It alone takes what-ifs: --network gige, --twice bandwidth,
    --half latency.

    `falloff run nightly` is a short session for every night: suspects in part, tokens of one size
    and HPL, each on all nodes. It always starts over. `falloff history` reads the sessions.
    """
    if listed:
        from analysis.descriptions import campaigns

        for name in described(paths.CAMPAIGNS):
            try:
                about = campaigns.read(name)
                row = f"{name:16} {about.testbed:22} {about.title}"
            except FalloffError as error:  # the others are listed anyway
                row = f"{name:16} {'?':22} {error}"
            print(row)
        return 0
    from analysis import experiment, planning, running
    from analysis.quoting import as_written
    from analysis.statements import statement
    from analysis.watch import nightly

    if not campaign:
        raise FalloffError("which campaign? `falloff run --list` prints those that there are")
    if argv or program or any(asked.values()):
        from analysis.subjects import program as programs
        from analysis.subjects.what_if import WhatIf

        if campaign != programs.CAMPAIGN:
            example = programs.EXAMPLE
            raise FalloffError(f"only `program` takes a command line and other networks: {example}")
        what_if = WhatIf(**asked)
        campaign = programs.described(argv, program or "", Path.cwd(), what_if, testbed or "")
    if campaign == nightly.SESSION:
        if planned or submit or repeats:
            raise FalloffError("nightly takes --minutes, --testbed and --pack, and no other option")
        plans = planning.plan_nightly(testbed or "", minutes or nightly.MINUTES)
        packs = [packed and packed.with_name(f"{packed.name}-{plan.name}") for plan in plans]
        for dataset in [_run(plan, True, pack) for plan, pack in zip(plans, packs)]:
            experiment.require_reading(dataset)
        return 0
    if minutes:
        raise FalloffError("only `nightly` takes --minutes: others have presets and --repeats")
    plan = planning.plan_campaign(campaign, testbed or "", preset, repeats or 0)
    if planned:
        print(planning.text(plan))
        return 0
    if packed:
        if not fresh:
            running.go_on_from(packed, plan)
        _require_origin(packed, plan, running.sessions_of(plan, fresh))
    if submit and (number := running.submit_campaign(plan, fresh=fresh)):
        status = f"`falloff status {campaign}` shows how far it is"
        print(f"Submitted job {number}. {status}; when it is over,")
        print("this command submits what is still missing, or makes the dataset.")
        return 0
    dataset = _run(plan, fresh and not submit, packed)
    is_busy = (dataset.status == "busy").any()
    has_nothing = statement.gave_nothing(dataset)
    try:
        experiment.require_reading(dataset)
        print("\n".join(_statements(campaign, dataset, experiment.stored_datasets())))
        if differing := dataset.falloff.differing_sessions:
            print(f"The campaign's sessions differ in {as_written(differing)}.")
        if is_busy:
            print(statement.without_reading(dataset))
    except FalloffError as reason:  # the data are kept, whatever they say
        print(f"No statement: {reason}")
        if has_nothing and not is_busy:
            print("Once that is fixed, run the same command with --fresh.")
    if is_busy:
        print("Run the same command again to repeat the trials that a busy machine disturbed.")
    return int(has_nothing)


def _statements(campaign: str, dataset: Any, others: Mapping[str, Any]) -> list[str]:
    """The primary statements that notebooks make of a campaign's dataset, as lines of plain text;
    of a program's, all, with its tables.

    Notebooks read the `others` that they need. Raises FalloffError if no notebook states
    anything on the campaign, or the dataset is not sufficient.
    """
    from analysis.statements import notebooks
    from analysis.subjects import program
    from analysis.wording import plain

    if program.is_one(dataset):
        file = paths.NOTEBOOKS / "59_program.ipynb"
        made = notebooks.run(file, {**others, campaign: dataset}, campaign=campaign)
        tables = [table for table in made.tables if table.label.endswith(("-times", "-factors"))]
        stated = [plain(str(statement)) for statement in made.statements]
        return stated + [f"\n{table.body}" for table in tables]
    lines = [
        plain(str(statement))
        for made in notebooks.stated({campaign: dataset}, others).values()
        for statement in made.statements
        if statement.primary and statement.campaign == campaign
    ]
    if not lines:
        raise FalloffError(
            f"no notebook judges campaign {campaign} by itself, or these data do not suffice"
        )
    return lines


def _run(plan: Any, fresh: bool, packed: Path | None) -> Any:
    """Run a plan's missing trials and keep its dataset, which is returned."""
    from analysis import running
    from analysis.commands.progress import shown
    from analysis.dataset import store
    from runners.records import manifest
    from runners.records.journal import Folder

    with shown() as listen:
        folder = running.run_campaign(plan, fresh=fresh, listen=listen)
    dataset, assembled = paths.DATASETS / f"{folder.name}.nc", store.read(folder)
    store.save(assembled, dataset)
    if packed:
        _require_origin(packed, plan, Folder(folder).provenance()["sessions"])
        manifest.pack(folder, packed)
        store.save(assembled, packed / manifest.DATASET)
        manifest.write(packed)
    print(f"Transcripts: {folder}\nDataset: {dataset}")
    return assembled


def _require_origin(target: Path, plan: Any, sessions: Sequence[Mapping[str, Any]]) -> None:
    """Raise FalloffError if a run of these sessions must not be packed into `target`.

    What is shipped, in data/reference of this checkout or another one, has to be of one commit of
    the history, without changes. Elsewhere anybody packs any run.
    """
    from runners.records import provenance

    if target.resolve().parts[-3:-1] != paths.REFERENCE.parts[-2:]:
        return
    described = [f"data/campaigns/{plan.name}.toml", f"data/testbeds/{plan.testbed['name']}.toml"]
    new = [f"{name} is not committed" for name in described if name not in provenance.tracked()]
    if faults := new or provenance.faults(sessions):
        began = sessions[0].get("host", {}).get("git_commit")
        go_on = f", go on from a checkout of {began[:10]}" if began and len(sessions) > 1 else ""
        raise FalloffError(
            f"{target} is shipped, so it takes only a run on one commit of the history, without "
            f"changes: {', '.join(faults)}.\nCommit and run it with --fresh{go_on}, or pack it "
            "elsewhere"
        )


@command("status")
@argument(
    "campaign",
    type=CAMPAIGN,
    required=False,
    help="A name in data/campaigns; without it, all that were run.",
)
def status(campaign: str | None) -> None:
    """Show which trials are done, and the state of a campaign's job."""
    from runners.engine.status import text
    from runners.records.journal import Folder

    folders = [Folder(file.parent) for file in sorted(paths.RAW.glob("*/trials.json"))]
    campaigns, texts = set(), []
    for folder in folders:
        try:
            name = folder.plan().name
            campaigns.add(name)
            if campaign in (None, name):
                texts.append(text(folder))
        except FalloffError as error:  # the other campaigns are still shown
            texts.append(f"{folder.path.name}: {error}")
    campaigns.update(described(paths.CAMPAIGNS))
    if campaign and campaign not in campaigns:
        raise unknown("campaign", campaign, campaigns)
    if not texts:
        raise FalloffError(
            f"no trial of {campaign or 'any campaign'} was run here: "
            f"`falloff run {campaign or 'CAMPAIGN'}` begins one"
        )
    print("\n".join(texts))


@command(
    "doctor",
    examples="""
        falloff doctor
        falloff doctor --testbed mycluster
        falloff doctor --rates
    """,
)
@option("--testbed NAME", "Check the nodes of this cluster in data/testbeds.", type=TESTBED)
@option("--rates", "Measure one node's rates; print TOML for a simulated testbed.")
def doctor(testbed: str | None, rates: bool) -> int:
    """Check what is installed and what is missing, with the remedy."""
    if rates:
        print_rates(testbed)
        return 0
    if testbed:
        from analysis.descriptions import testbeds
        from runners.engine import doctor as nodes_doctor

        return nodes_doctor.report(testbeds.read(testbed).plain())
    return report_here()


def report_here() -> int:
    """Print what this machine has and lacks; returns 1 if it lacks anything, else 0."""
    from analysis import planning, running
    from analysis.statements import notebooks
    from runners.engine import session
    from runners.records import lock

    about = dict.fromkeys(map(notebooks.campaign_of, notebooks.of_experiments()))
    plans = [planning.plan_campaign(name) for name in about if name]
    testbeds = {plan.testbed["name"]: plan.testbed for plan in plans}
    missing = dict.fromkeys(obstacle for plan in plans for obstacle in running.obstacles(plan))
    for tool in sorted({tool for plan in plans for tool in session.tools_of(plan)}):
        with suppress(FalloffError):  # it is among the obstacles
            place = executables.find(tool, testbeds["emulated"].get("tools", {}))
            print(f"  here     {tool}: {place}")
    for name, machine in testbeds.items():
        if not session.testbed_module(machine).unavailable(machine):
            what = f"{machine['nodes']} nodes, {machine['kind']} on this machine"
            print(f"  here     testbed {name}: {what}")
    for plan in plans:
        if plan.name in TRIED and not running.obstacles(plan):
            what = f"a trial of {plan.name} on testbed {plan.testbed['name']}"
            try:
                reason = running.tried(plan)
            except lock.LockBusy as other:
                print(f"  unknown  {what}: {other}")
                continue
            except FalloffError as error:
                reason = str(error)
            if reason:
                missing[f"{what} gives nothing: {reason}"] = None
            else:
                print(f"  here     {what} gives a result")
    for obstacle in missing:
        print(f"  MISSING  {obstacle}")
    advice = "Nothing is missing: `make report` runs the experiments on this machine."
    if missing:
        advice = (
            "`make setup` installs what it may. "
            "Until then reports are built from the stored reference."
        )
    cluster = "`falloff doctor --testbed NAME`, then `falloff run suspects --testbed NAME`."
    print(f"{advice}\nYour own cluster: {cluster}")
    return int(bool(missing))


def print_rates(testbed: str | None) -> None:
    """Measure the rates of one node and print them as TOML for data/testbeds. Without a testbed the
    node is this machine."""
    from analysis.descriptions import testbeds
    from analysis.descriptions.networks import between
    from runners.engine import session
    from runners.records import lock
    from runners.tools import node_rates

    machine: dict[str, Any] = {"kind": "this machine"}
    if testbed:
        machine = testbeds.read(testbed).plain()
    # All other testbeds run on this machine.
    of = f"a node of {testbed}" if machine["kind"] == "cluster" else ""
    with lock.measuring(machine, "a node's rates", partial(print, file=sys.stderr)):
        if testbed:
            networks = machine.get("networks") or between({})
            # Opening a testbed takes a network, although nothing is sent.
            idle = dict([next(iter(networks.items()))])
            with session.testbed_module(machine).open_testbed(machine, idle) as opened:
                measured = node_rates.run_on(opened, *idle)
        else:
            measured = node_rates.run_here()
    print(node_rates.as_toml(measured, of), end="")
