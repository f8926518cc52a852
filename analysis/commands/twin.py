"""A simulated twin of a cluster."""

import sys

from analysis import paths
from analysis.commands import names
from analysis.commands.grammar import (
    PATH,
    SeveralValues,
    argument,
    asks_what_if,
    command,
    figure_option,
    option,
    switch,
)
from runners.records.record import FalloffError


@command(
    "twin",
    cls=SeveralValues,
    examples="""
        falloff twin data/raw/twin_tokens-* data/raw/suspects-* data/raw/hpl_scaling-* --name mytwin
        falloff run hpl_scaling --testbed mytwin
        falloff twin mine --name mytwin --network 10gige 25gige 100gige --out mine
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
@asks_what_if
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
def twin(campaigns, name, asked, out, fit_only, figure) -> None:
    """Fit a simulated twin to your cluster, and ask what if.

    The fit takes latency and bandwidth by message size, and a node's compute rate, from campaigns
    of one cluster. It writes them as a testbed for SimGrid. HPL is then predicted where it was run
    (the fit does not read those runs) and on networks that you do not have. Imported outputs of OSU
    or IMB and of HPL suffice.
    """
    from analysis import experiment, running
    from analysis.commands.progress import shown
    from analysis.evidence import verify
    from analysis.statements import style
    from analysis.subjects import twin_prediction
    from analysis.subjects.twin import fit, text

    datasets = experiment.named(
        [folder for campaign in campaigns for folder in verify.measured_folders(campaign)]
    )
    fitted = fit(datasets)
    for network, reason in fitted.refused.items():
        print(f"left out: {network}: {reason}".replace("\u00a0", " "), file=sys.stderr)
    points = None
    try:
        points = twin_prediction.held_out_points(datasets, fitted)
    except FalloffError:
        if not fit_only:
            raise
    file = running.write_twin(name, fitted, datasets, points)
    print(text(fitted).replace("\u00a0", " "))
    print(f"Testbed: {file}\n`falloff run hpl_scaling --testbed {name}` simulates on it.\n")
    if fit_only:
        return
    with shown() as listen:
        runs = running.simulate_twin(name, points, asked, out, listen=listen)
    study = twin_prediction.predict(fitted, points, *runs)
    print(twin_prediction.text(study))
    figure.parent.mkdir(parents=True, exist_ok=True)
    style.save(twin_prediction.figure(study), figure)
    print(f"\nFigure: {figure}")
