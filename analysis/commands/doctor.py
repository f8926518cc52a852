"""What is installed and what is missing, and a node's rates."""

import sys
from contextlib import suppress

from analysis.commands import names
from analysis.commands.grammar import command, option, switch
from runners import executables
from runners.records.record import FalloffError

# A paced and a simulated campaign, of each of which a tiny trial is run.
TRIED = ("hpl_scaling", "hpl_paper_simulated")


@command(
    "doctor",
    examples="""
        falloff doctor
        falloff doctor --testbed mycluster
        falloff doctor --rates
    """,
)
@option(
    "--testbed",
    type=names.TESTBED,
    metavar="NAME",
    help="Check the nodes of this cluster in data/testbeds.",
)
@switch("--rates", help="Measure one node's rates; print TOML for a simulated testbed.")
def doctor(testbed, rates) -> int:
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
            print(
                f"  here     {tool}: {executables.find(tool, testbeds['emulated'].get('tools', {}))}"
            )
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
    remedy = (
        "`make setup` installs what it may. Until then reports are built from the stored reference."
    )
    print(
        remedy
        if missing
        else "Nothing is missing: `make report` runs the experiments on this machine."
    )
    print(
        "Your own cluster: "
        "`falloff doctor --testbed NAME`, then `falloff run suspects --testbed NAME`."
    )
    return int(bool(missing))


def print_rates(testbed: str | None) -> None:
    """Measure the rates of one node and print them as TOML for data/testbeds. Without a testbed the
    node is this machine."""
    from analysis.descriptions import testbeds
    from analysis.descriptions.networks import between
    from runners.engine import session
    from runners.records import lock
    from runners.tools import node_rates

    machine = testbeds.read(testbed).plain() if testbed else {"kind": "this machine"}
    is_cluster = machine["kind"] == "cluster"  # all other testbeds run on this machine
    of = f"a node of {testbed}" if is_cluster else ""
    with lock.measuring(machine, "a node's rates", lambda line: print(line, file=sys.stderr)):
        if testbed:
            networks = machine.get("networks") or between({})
            # Opening a testbed takes a network, although nothing is sent.
            idle = dict([next(iter(networks.items()))])
            with session.testbed_module(machine).open_testbed(machine, idle) as opened:
                measured = node_rates.run_on(opened, *idle)
        else:
            measured = node_rates.run_here()
    print(node_rates.as_toml(measured, of), end="")
