"""Building xhpl and dgemm: once, from checked sources, with errors that name the remedy."""

import shutil

import pytest

from runners import build, hpl_source
from runners.record import FalloffError

needs_built = pytest.mark.skipif(
    not (build.BUILT / "stamp").exists(), reason="xhpl is not built here: run `make setup`"
)


@needs_built
def test_a_second_build_does_nothing(monkeypatch):
    """With the same inputs nothing is fetched or compiled again."""
    monkeypatch.setattr(build, "_compile", lambda *_: pytest.fail("compiled again"))
    monkeypatch.setattr(hpl_source, "fetch", lambda *_: pytest.fail("fetched again"))
    before = {file: file.stat().st_mtime_ns for file in build.BUILT.iterdir()}
    assert build.build() is False
    assert {file: file.stat().st_mtime_ns for file in build.BUILT.iterdir()} == before


@needs_built
def test_what_was_built_solves_a_system(tmp_path):
    """The xhpl built here passes its own residual check."""
    build.require_passing(build.BUILT / "xhpl", tmp_path)


@needs_built
def test_a_changed_input_builds_again(tmp_path, monkeypatch):
    """A copy of the programs with a stamp of other inputs is not taken for up to date."""
    folder = tmp_path / "bin"
    shutil.copytree(build.BUILT, folder)
    (folder / "stamp").write_text("of something else")

    def compiled(*_):
        raise FalloffError("compiling")

    monkeypatch.setattr(build, "_compile", compiled)
    with pytest.raises(FalloffError, match="compiling"):
        build.build(folder)


def test_without_a_compiler_names_the_package(monkeypatch, tmp_path):
    """The error for a missing compiler says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FalloffError, match="libopenmpi-dev"):
        build.build(tmp_path)


def test_an_unknown_tarball_is_not_unpacked(tmp_path):
    """A tarball with another checksum is refused before it is opened, and so is a path that leads nowhere."""
    tarball = tmp_path / "hpl.tar.gz"
    tarball.write_bytes(b"not HPL")
    with pytest.raises(FalloffError, match="sha256"):
        hpl_source.unpack(str(tarball), tmp_path)
    assert not (tmp_path / "source").exists()
    with pytest.raises(FalloffError, match="HPL_SOURCE="):
        hpl_source.release(str(tmp_path / "absent.tar.gz"))


def test_an_edit_whose_text_is_absent_fails_loudly(tmp_path):
    """A source that is not what the edits were written for is never compiled half edited."""
    source = tmp_path / "HPL_packL.c"
    source.write_text("int x;\n")
    with pytest.raises(FalloffError, match="MPI_Address"):
        hpl_source.edit(source, (("MPI_Address(", "MPI_Get_address("),))


def test_source_packages_are_sought_where_the_machine_finds_its_packages(tmp_path, monkeypatch):
    """Both notations of apt's sources are turned to source packages; other suites stay out."""
    monkeypatch.setattr(hpl_source, "_codename", lambda: "bookworm")
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "# a comment\ndeb [signed-by=/k.gpg] http://a.invalid/debian bookworm main\n"
        "deb http://b.invalid other main\n"
    )
    (parts / "debian.sources").write_text(
        "Types: deb\nURIs: http://a.invalid/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://c.invalid\nSuites: nodistro\nComponents: main\n"
    )
    lists = hpl_source.source_lists(tmp_path)
    assert lists["sources.list"] == "deb-src [signed-by=/k.gpg] http://a.invalid/debian bookworm main\n"
    assert "Types: deb-src\n" in lists["debian.sources"] and "c.invalid" not in lists["debian.sources"]
