"""Run a campaign, and show how far it is."""

from collections import ChainMap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis import paths
from analysis.commands import names
from analysis.commands.grammar import (
    COUNT,
    PATH,
    Number,
    SeveralValues,
    argument,
    asks_what_if,
    command,
    keep_option,
    option,
    switch,
)
from runners.records.record import FalloffError, unknown


@command(
    "run",
    cls=SeveralValues,
    examples="""
        falloff run --list
        falloff run hpl_scaling --plan
        falloff run hpl_scaling --preset quick
        falloff run hpl_scaling --testbed mycluster --submit
        falloff run program --keep mine -- mpirun -np 8 ./program
        falloff run nightly --minutes 5 --testbed mycluster --pack nights/2026-11-26
    """,
)
@argument("campaign", type=names.CAMPAIGN, required=False, help="A name in data/campaigns.")
@argument(
    "argv", nargs=-1, metavar="[-- PROGRAM...]", help="`program` only: the command line to run."
)
@keep_option
@asks_what_if
@option(
    "--minutes",
    type=Number(0, 1440),
    metavar="M",
    help="`nightly` only: the length of a session, 5 by default.",
)
@switch("--list", "listed", help="List the campaigns.")
@switch(
    "--plan",
    "planned",
    help="Run nothing; print when each look is due and how likely it is to decide.",
)
@option(
    "--testbed",
    type=names.TESTBED,
    metavar="NAME",
    help="A name in data/testbeds; by default the campaign's own.",
)
@option(
    "--preset",
    type=names.PRESET,
    metavar="NAME",
    default="full",
    help="The campaign's stopping rule: quick or full.",
)
@option("--repeats", type=COUNT, metavar="K", help="Run exactly K blocks instead.")
@switch("--fresh", help="Start over; earlier trials are moved aside.")
@switch("--submit", help="Run the missing trials as a Slurm job.")
@option(
    "--pack",
    "packed",
    type=PATH,
    metavar="FOLDER",
    help="Also write a compressed copy of the campaign to FOLDER.",
)
def run(
    campaign,
    argv,
    program,
    asked,
    minutes,
    listed,
    planned,
    testbed,
    preset,
    repeats,
    fresh,
    submit,
    packed,
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
        print("\n".join(campaign_lines()))
        return 0
    from analysis import experiment, planning, running
    from analysis.quoting import as_written
    from analysis.statements import statement
    from analysis.subjects.what_if import NOTHING
    from analysis.watch import nightly

    if not campaign:
        raise FalloffError("which campaign? `falloff run --list` prints those that there are")
    if argv or program or asked != NOTHING:
        from analysis.subjects.program import CAMPAIGN, EXAMPLE, described

        if campaign != CAMPAIGN:
            raise FalloffError(f"only `program` takes a command line and other networks: {EXAMPLE}")
        campaign = described(argv, program or "", Path.cwd(), asked, testbed or "")
    if campaign == nightly.SESSION:
        if planned or submit or repeats:
            raise FalloffError("nightly takes --minutes, --testbed and --pack, and no other option")
        plans = planning.plan_nightly(testbed or "", minutes or nightly.MINUTES)
        made = [
            _run(plan, True, packed and packed.with_name(f"{packed.name}-{plan.name}"))
            for plan in plans
        ]
        for dataset in made:
            experiment.require_reading(dataset)
        return 0
    if minutes:
        raise FalloffError("only `nightly` takes --minutes: others have presets and --repeats")
    plan = planning.plan_campaign(campaign, testbed or "", preset, repeats or 0)
    if planned:
        print(planning.text(plan))
        return 0
    number = running.submit_campaign(plan, fresh=fresh) if submit else ""
    if number:
        print(
            f"Submitted job {number}. `falloff status {campaign}` shows how far it is; when it is over,"
        )
        print("this command submits what is still missing, or makes the dataset.")
        return 0
    dataset = _run(plan, fresh and not submit, packed)
    is_busy = (dataset.status == "busy").any()
    has_nothing = statement.gave_nothing(dataset)
    try:
        experiment.require_reading(dataset)
        others = experiment.stored_datasets()
        print("\n".join(_statements(campaign, dataset, others)))
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
        file, both = (
            paths.NOTEBOOKS / "59_program.ipynb",
            ChainMap({campaign: dataset}, dict(others)),
        )
        made = notebooks.run(file, both, campaign=campaign)
        tables = [table for table in made.tables if table.label.endswith(("-times", "-factors"))]
        return [plain(str(statement)) for statement in made.statements] + [
            f"\n{table.body}" for table in tables
        ]
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


def _run(plan, fresh: bool, packed: Path | None):
    """Run a plan's missing trials and keep its dataset, which is returned."""
    from analysis import running
    from analysis.commands.progress import shown
    from analysis.dataset import store
    from runners.records import manifest

    with shown() as listen:
        folder = running.run_campaign(plan, fresh=fresh, listen=listen)
    dataset, assembled = paths.DATASETS / f"{folder.name}.nc", store.read(folder)
    store.save(assembled, dataset)
    if packed:
        manifest.pack(folder, packed)
        store.save(assembled, packed / manifest.DATASET)
        manifest.write(packed)
    print(f"Transcripts: {folder}\nDataset: {dataset}")
    return assembled


@command("status")
@argument(
    "campaign",
    type=names.CAMPAIGN,
    required=False,
    help="A name in data/campaigns; without it, all that were run.",
)
def status(campaign) -> None:
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
    campaigns.update(names.described(paths.CAMPAIGNS))
    if campaign and campaign not in campaigns:
        raise unknown("campaign", campaign, campaigns)
    if not texts:
        raise FalloffError(
            f"no trial of {campaign or 'any campaign'} was run here: "
            f"`falloff run {campaign or 'CAMPAIGN'}` begins one"
        )
    print("\n".join(texts))


def campaign_lines() -> list[str]:
    """A line for each campaign in data/campaigns: its name, its testbed, and its title."""
    from analysis.descriptions import campaigns
    from runners import executables

    lines = []
    for file in executables.described(paths.CAMPAIGNS, "*.toml"):
        try:
            campaign = campaigns.read(file.stem)
            testbed, title = campaign.testbed, campaign.title
        except FalloffError as error:  # the others are listed anyway
            testbed, title = "?", str(error)
        lines.append(f"{file.stem:16} {testbed:22} {title}")
    return lines
