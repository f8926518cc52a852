"""A simulated twin of a cluster."""

import sys

import click

from analysis import paths
from commands import names
from commands.grammar import PATH, argument, command, figure_option, option, switch
from runners.record import FalloffError


class RateList(click.ParamType):
    """Rates in Gbit/s with commas between, as a tuple in bit/s."""

    name = "rates"

    def convert(self, value, param, ctx) -> tuple[float, ...]:
        """Raises click.BadParameter unless each is a number above 0."""
        if isinstance(value, tuple):
            return value
        try:
            rates = tuple(1e9 * float(word) for word in value.split(",") if word.strip())
        except ValueError:
            self.fail(f"{value!r} is no list of numbers, such as 10,25,100.", param, ctx)
        if not all(0 < rate < 1e15 for rate in rates):
            self.fail(f"{value!r}: a rate is above 0 Gbit/s.", param, ctx)
        return rates


@command(
    "twin",
    examples="""
        falloff twin data/raw/twin_tokens-* data/raw/suspects-* data/raw/hpl_scaling-* --name mytwin
        falloff run hpl_scaling --testbed mytwin
        falloff twin mine --name mytwin --faster 10,25,100 --out mine
    """,
)
@argument(
    "campaigns",
    type=names.REFERENCE,
    nargs=-1,
    required=True,
    metavar="CAMPAIGN...",
    help="Folders of campaigns or imports, or names in data/reference.",
)
@option(
    "--name",
    required=True,
    metavar="NAME",
    help="The twin's name: writes data/testbeds/NAME.toml.",
)
@option(
    "--faster",
    type=RateList(),
    default="",
    metavar="GBIT/S,...",
    help="Predict HPL on Ethernets of these rates, such as 10,25,100.",
)
@option(
    "--out",
    type=PATH,
    default=paths.RAW,
    show_default="data/raw",
    metavar="FOLDER",
    help="The folder for the simulated runs.",
)
@switch("--fit-only", help="Write the description and simulate nothing.")
@figure_option("twin")
def twin(campaigns, name, faster, out, fit_only, figure) -> None:
    """Fit a simulated twin to your cluster, and ask what if.

    The fit takes latency and bandwidth by message size, and a node's compute rate, from campaigns
    of one cluster. It writes them as a testbed for SimGrid. HPL is then predicted where it was run
    (the fit does not read those runs) and on networks that you do not have. Imported outputs of OSU
    or IMB and of HPL suffice.
    """
    import experiment
    from analysis import prediction, running, style
    from analysis.evidence import verify
    from analysis.subjects.twin import fit, text
    from commands.progress import shown

    datasets = experiment.named(
        [folder for campaign in campaigns for folder in verify.measured_folders(campaign)]
    )
    fitted = fit(datasets, faster)
    for network, reason in fitted.refused.items():
        print(f"left out: {network}: {reason}".replace("\u00a0", " "), file=sys.stderr)
    points = None
    try:
        points = prediction.held_out_points(datasets, fitted)
    except FalloffError:
        if not fit_only:
            raise
    most = int(points.nodes.max()) if points is not None else 16
    job = prediction.job(points) if points is not None else None
    file = running.write_twin(name, fitted, 2 * most, datasets, job)
    print(text(fitted).replace("\u00a0", " "))
    print(f"Testbed: {file}\n`falloff run hpl_scaling --testbed {name}` simulates on it.\n")
    if fit_only:
        return
    with shown() as listen:
        runs = running.simulate_twin(name, fitted, points, out, listen=listen)
    study = prediction.predict(fitted, points, *runs)
    print(prediction.text(study))
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(prediction.figure(study), figure)
    print(f"\nFigure: {figure}")
