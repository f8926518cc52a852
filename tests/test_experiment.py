"""From names to a dataset: what a notebook or the command line asks for, and what is refused."""

from types import SimpleNamespace

import pytest

import experiment
from analysis import paths
from analysis.experiments import hpl_scaling
from runners.journal import Folder
from runners.record import FalloffError

GOOD = {"preset": "stored", "testbed": "emulated", "blocks": 0, "out": "build"}


def test_good_parameters_are_taken():
    """Plain data under the known names; modules, functions and private names around them do not matter."""
    around = {"In": ["x"], "Out": {}, "_": 3, "experiment": experiment, "print": print}
    assert experiment.Parameters.check({**GOOD, **around}) == experiment.Parameters(**GOOD)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"block": 3}, "'block' is unknown"),
        ({"blocks": "3"}, "blocks = '3' is not int"),
        ({"blocks": True}, "blocks = True is not int"),
        ({"blocks": -1, "preset": "quick"}, "never negative"),
        ({"blocks": 4}, "must be 0 for the stored preset"),
        ({"out": 7, "testbeds": "x"}, "'testbeds' is unknown; out = 7 is not str"),
    ],
)
def test_wrong_parameters_are_refused_before_anything_runs(change, said):
    """papermill takes any name and type; the first call of a notebook does not, and lists what there is."""
    with pytest.raises(FalloffError) as refusal:
        experiment.Parameters.check({**GOOD, **change})
    assert said in str(refusal.value) and "There are: preset" in str(refusal.value)


def test_a_notebooks_own_parameters_are_its_own_business():
    """They are named where they are expected, and unknown everywhere else."""
    assert experiment.Parameters.check(
        {**GOOD, "prices": {}}, besides=["prices"]
    ) == experiment.Parameters(**GOOD)
    with pytest.raises(FalloffError, match="'prices' is unknown"):
        experiment.Parameters.check({**GOOD, "prices": {}})


def analyse(hpl_paper, hpl_beyond=None, hpl_noise=None, today=None):
    """An experiment that tells what it was given: the testbed of each campaign, and how many trials today's run has."""
    given = {"hpl_paper": hpl_paper, "hpl_beyond": hpl_beyond, "hpl_noise": hpl_noise}
    told = {name: data and set(data.testbed.values.tolist()) for name, data in given.items()}
    return {**told, "today": today and today.sizes["trial"]}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """`study(**changes)` of that experiment, which runs nothing: what it was given, which campaigns `ran` and what was
    `saved`."""
    ran = []

    def run_campaign(plan, **_):
        ran.append((plan.name, plan.testbed["name"], len(plan.blocks)))
        return paths.REFERENCE / "hpl_payload-scale_model"

    monkeypatch.setattr(experiment, "run_campaign", run_campaign)

    def of(**changes):
        parameters = experiment.Parameters(
            **{**GOOD, "testbed": "", "out": str(tmp_path), **changes}
        )
        given = experiment.study(parameters, SimpleNamespace(analyse=analyse))
        return SimpleNamespace(
            **given, ran=ran, saved={file.name for file in tmp_path.glob("*.nc")}
        )

    return of


def test_stored_campaigns_are_read_and_saved(study):
    """Nothing is run."""
    found = study()
    assert (found.hpl_paper, found.hpl_noise, found.today, found.ran) == (
        {"smith"},
        {"scale_model"},
        None,
        [],
    )
    assert found.saved == {"hpl_paper-smith.nc", "hpl_beyond-smith.nc", "hpl_noise-scale_model.nc"}


def test_quick_runs_only_what_is_compared_with_the_reference(study):
    """A short run of today stands beside the reference; all else is the reference."""
    found = study(preset="quick")
    assert found.ran == [("hpl_paper", "smith", 1)] and found.hpl_paper == {"smith"} and found.today
    assert (
        "hpl_paper-smith.nc" in found.saved and "hpl_paper-scale_model-today.nc" in found.saved
    )  # whose run it reads here


def test_full_runs_every_campaign(study):
    """What is run takes the place of the reference."""
    found = study(preset="full")
    assert [name for name, *_ in found.ran] == ["hpl_paper", "hpl_beyond", "hpl_noise"]
    assert found.hpl_paper == found.hpl_noise == {"scale_model"} and found.today is None


def test_on_another_testbed_the_experiments_own_campaign_is_run(study):
    """Of which there is no reference: it is the study, and the others are stored."""
    found = study(preset="quick", testbed="scale_model")
    assert [ran[:2] for ran in found.ran] == [("hpl_paper", "scale_model")]
    assert (found.hpl_paper, found.hpl_beyond, found.today) == ({"scale_model"}, {"smith"}, None)
    with pytest.raises(
        FalloffError, match="no reference campaign 'hpl_paper-scale_model' is stored"
    ):
        study(testbed="scale_model")


def test_blocks_take_the_place_of_the_stopping_rule(study):
    """Of what is run."""
    assert study(preset="quick", blocks=3).ran == [("hpl_paper", "smith", 3)]


def test_ones_own_data_are_read_and_nothing_else(study, tmp_path):
    """What the folder has not is missing: the study does without it, or is refused."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine").symlink_to(paths.REFERENCE / "hpl_paper-smith")
    found = study(preset="quick", data=str(tmp_path / "own"))
    assert (found.hpl_paper, found.hpl_beyond, found.today, found.ran) == (
        {"smith"},
        None,
        None,
        [],
    )
    (tmp_path / "own" / "mine").unlink()
    (tmp_path / "own" / "mine").symlink_to(paths.REFERENCE / "hpl_beyond-smith")
    with pytest.raises(FalloffError, match="holds no campaign hpl_paper"):
        study(data=str(tmp_path / "own"))


def test_without_the_tools_the_remedy_is_told(tmp_path, monkeypatch):
    """Where nothing can be run: what is missing, and what would bring it."""
    monkeypatch.setattr(experiment, "folder_of", lambda plan, out: Folder(tmp_path / "campaign"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FalloffError, match="apt-get|root"):
        experiment.study(experiment.Parameters("quick", "", 0, str(tmp_path)), hpl_scaling)


def test_unknown_names_say_what_there_is():
    """A typo in a campaign, a testbed or a reference is answered with the known names."""
    with pytest.raises(FalloffError, match=r"there are: .*\bhpl_scaling\b"):
        experiment.plan_campaign("hpl_scalling")
    with pytest.raises(FalloffError, match="emulated"):
        experiment.plan_campaign("hpl_scaling", "emulatd")
    with pytest.raises(FalloffError, match="hpl_scaling-scale_model"):
        experiment.stored("hpl")


def test_broken_toml_is_named(tmp_path, monkeypatch):
    """A campaign file with a slip of the pen is refused with its name and place."""
    (tmp_path / "mine.toml").write_text("name = \n")
    monkeypatch.setattr(paths, "CAMPAIGNS", tmp_path)
    with pytest.raises(FalloffError, match=r"mine\.toml is not valid TOML.*line 1"):
        experiment.plan_campaign("mine")


def test_hpl_problems_grow_with_the_nodes():
    """N is the paper's over 50: it grows with about the square root of n, in whole blocks, on grids of n processes."""
    for trial in experiment.plan_campaign("hpl_scaling").blocks[0]:
        if trial.role == "point":
            p = trial.point
            assert p["P"] * p["Q"] == p["nodes"] and p["N"] % p["NB"] == 0
            assert abs(p["N"] / (850 * p["nodes"] ** 0.5) - 1) < 0.05


def test_fresh_moves_the_old_trials_aside(tmp_path, monkeypatch):
    """`--fresh` loses nothing: the earlier folder is still there under another name."""
    plan = experiment.plan_campaign("hpl_scaling")
    folder = experiment.folder_of(plan, tmp_path)
    folder.create_or_check(plan)
    (folder.path / "transcripts" / "precious.json").write_text("{}")
    monkeypatch.setattr(experiment, "obstacles", lambda plan: ["not today"])
    with pytest.raises(FalloffError, match="not today"):
        experiment.run_campaign(plan, tmp_path, fresh=True)
    assert [file.name for file in tmp_path.rglob("precious.json")] == ["precious.json"]
    assert not (folder.path / "transcripts" / "precious.json").exists()


def test_the_reference_is_complete():
    """Every trial of its blocks is there, run as the campaign file now says, to the end that it plans."""
    plan = experiment.plan_campaign("hpl_scaling", preset="full")
    dataset = experiment.stored("hpl_scaling", plan.testbed["name"])
    folder = Folder(paths.REFERENCE / f"hpl_scaling-{plan.testbed['name']}")
    assert folder.plan().digest == plan.digest and folder.stopped_by() in ("blocks", "decided")
    assert dataset.block.max() >= (plan.stopping.looks or (12,))[0]
    planned = {trial.id for trial in folder.plan().trials() if trial.block <= dataset.block.max()}
    assert set(dataset.trial_id.values) == planned


def test_a_campaign_without_looks_is_never_decided():
    """Its data end nothing, however many blocks it has."""
    assert experiment.decided(Folder(paths.REFERENCE / "hpl_payload-scale_model")) is False


def test_a_matrix_beyond_this_machines_memory_is_refused(monkeypatch):
    """Emulated nodes share one memory: the paper's matrices are refused there, and simulated anywhere."""
    monkeypatch.setattr(experiment.provenance, "memory_bytes", lambda: 24 * 10**9)
    refused = experiment.obstacles(experiment.plan_campaign("hpl_paper", "emulated", "quick"))
    assert any(
        "115 GB" in line and "24 GB" in line and "--testbed smith" in line for line in refused
    )
    simulated = experiment.obstacles(experiment.plan_campaign("hpl_paper", "smith", "quick"))
    emulated = experiment.obstacles(experiment.plan_campaign("hpl_scaling"))
    assert not any("matrix takes" in line for line in [*simulated, *emulated])


def test_a_variation_needs_a_model():
    """An emulated cluster has no numbers to vary: such a campaign is refused, not run as if nothing were asked."""
    with pytest.raises(FalloffError, match="testbed emulated is no simulated one"):
        experiment.plan_campaign("hpl_contention", "emulated", "quick")


def test_paths_need_a_testbed_that_has_them():
    """A campaign over paths is refused on a simulated cluster, before anything is run; emulated ones have any network."""
    with pytest.raises(FalloffError, match="joined by paths, and those of testbed smith are not"):
        experiment.plan_campaign("tcp_mtu", "smith")
    assert experiment.plan_campaign("tcp_mtu", "emulated").testbed["name"] == "emulated"
