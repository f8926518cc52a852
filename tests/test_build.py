"""Tools: built once, from checked sources; found where the user says; with errors that name the
remedy.
"""

import pytest

from runners import build, executables
from runners.records.record import FalloffError

needs_built = pytest.mark.skipif(
    not (build.BUILT / "stamp").exists(), reason="xhpl is not built here: run `make setup`"
)


@needs_built
def test_only_a_changed_input_builds_again(monkeypatch):
    """With the same inputs nothing is fetched; programs with a stamp of other inputs are not taken
    for up to date.
    """

    def fetched(*_):
        raise FalloffError("fetched again")

    monkeypatch.setattr(build, "unpack", fetched)
    assert build.build() is False
    monkeypatch.setattr(build, "_answer", lambda *_: "another compiler")
    with pytest.raises(FalloffError, match="fetched again"):
        build.build()


@needs_built
@pytest.mark.skipif(
    not (build.BUILT / "xhpl_reference").exists(),
    reason="the reference BLAS is missing: libblas-dev",
)
def test_the_reference_binary_holds_the_reference_blas(tmp_path):
    """It solves a system, and OpenBLAS is neither in it nor loaded by it, as it is by xhpl."""
    build.require_passing(build.BUILT / "xhpl_reference", tmp_path)
    held = {
        name: b"openblas" in (build.BUILT / name).read_bytes()
        for name in ("xhpl", "xhpl_reference")
    }
    assert held == {"xhpl": True, "xhpl_reference": False}


def test_without_the_reference_blas_only_its_binary_is_left_out(tmp_path, monkeypatch):
    """The other programs are made, and one of an earlier build goes."""

    def made(folder, words):
        for name in build.PROGRAMS:
            (folder / name).touch()

    monkeypatch.setattr(build, "reference_blas", lambda compiler: None)
    monkeypatch.setattr(build, "_compiler", lambda: "true")
    monkeypatch.setattr(build, "run_make", made)
    monkeypatch.setattr(build, "require_passing", lambda *_: None)
    monkeypatch.setattr(build, "unpack", lambda *_: None)
    monkeypatch.setattr(build.mpi_functions, "wrappers", lambda compiler: "")
    (tmp_path / "xhpl_reference").touch()
    assert build.build(tmp_path) is True
    assert {file.name for file in tmp_path.iterdir()} == {*build.PROGRAMS, "stamp"}


@pytest.mark.parametrize(("content", "said"), [(b"not HPL", "sha256"), (None, "No such file")])
def test_an_unknown_tarball_is_not_unpacked(content, said, tmp_path, monkeypatch):
    """A tarball with another checksum is refused before it is opened, and so is a path that leads
    nowhere.
    """
    tarball = tmp_path / "hpl.tar.gz"
    if content:
        tarball.write_bytes(content)
    monkeypatch.setenv("HPL_SOURCE", str(tarball))
    with pytest.raises(FalloffError, match=f"{said}.*HPL_SOURCE="):
        build.unpack(tmp_path)
    assert not (tmp_path / "source").exists()


def test_the_source_is_pinned_whichever_mirror_brings_it(tmp_path, monkeypatch):
    """Apt is asked for one file of one checksum at each mirror in turn; without any, its words and
    the remedy.
    """
    helper = tmp_path / "helper"
    helper.write_text(
        '#!/bin/sh\nshift 3\necho "$1 $3" >> "${0%/*}/asked"\n'
        'case $1 in http://good.*) echo tarball > "$2" ;;\n'
        '*) echo "E: 404 of $1" >&2; exit 100 ;; esac\n'
    )
    helper.chmod(0o755)
    monkeypatch.setattr(build, "_HELPER", helper)
    monkeypatch.setattr(build, "mirrors", lambda: ["http://bad.invalid", "http://good.invalid"])
    assert build.fetch(tmp_path / "first").read_text() == "tarball\n"
    pinned = f"pool/main/h/hpcc/hpcc_1.5.0.orig.tar.gz SHA256:{build.SHA256}"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [f"http://{name}.invalid/{pinned}" for name in ("bad", "good")]
    monkeypatch.setattr(build, "mirrors", lambda: ["http://bad.invalid"])
    with pytest.raises(FalloffError, match="404 of http://bad.invalid/pool.*HPL_SOURCE="):
        build.fetch(tmp_path / "second")


def program(path):
    """An executable file at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_looks_first_where_the_user_says_then_here_then_on_path(tmp_path, monkeypatch):
    """The configured path wins over what was built here, and that over another xhpl that happens to
    be on PATH.
    """
    configured, on_path, built = (
        program(tmp_path / place / "xhpl") for place in ("mine", "path", "built")
    )
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(executables, "BUILT", tmp_path / "built")
    assert executables.find("xhpl", {"xhpl": configured}) == configured
    assert executables.find("xhpl", {}) == built
    monkeypatch.setattr(executables, "BUILT", tmp_path / "nothing")
    assert executables.find("xhpl", {}) == on_path


def test_a_missing_tool_is_refused_with_the_remedy(tmp_path, monkeypatch):
    """A tool that is nowhere names the command that brings it; a wrong path is not replaced by
    PATH.
    """
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(executables, "BUILT", tmp_path)
    with pytest.raises(FalloffError, match="make setup"):
        executables.find("xhpl", {})
    program(tmp_path / "path" / "xhpl")
    with pytest.raises(FalloffError, match="nowhere/xhpl"):
        executables.find("xhpl", {"xhpl": "/nowhere/xhpl"})
