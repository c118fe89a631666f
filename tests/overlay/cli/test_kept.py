"""Messages of commands on files that a build kept, also of one that was killed while it moved its files."""

import json
from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build import folder as folders
from bitloom.overlay.cli.subject import loaded, tell_kept


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> builds.Build:
    model = networks.load("digits-cnn")
    design = size_memories("digits", [model], Npu.of(kfp=8, kgp=4, ol=1, pfp=1, planes=6))
    return builds.build(tmp_path_factory.mktemp("kept") / "build", design, [model])


def test_a_build_names_what_it_kept(build: builds.Build, capsys: pytest.CaptureFixture[str]) -> None:
    (build.folder / "rtl" / "bitloom_top.v").write_text("by hand")
    (build.folder / "rtl" / "mine.v").write_text("mine")
    again = builds.build(build.folder, build.design, [networks.load("digits-cnn")])
    tell_kept(again)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f"bitloom: {build.folder}: rtl/bitloom_top.v is kept: a file of the build takes its place; "
        "it is rtl/bitloom_top.v.kept now\n"
    )
    assert (build.folder / "rtl" / "bitloom_top.v.kept").read_text() == "by hand"
    assert (build.folder / "rtl" / "mine.v").read_text() == "mine"
    assert builds.load(build.folder) == again


def test_a_command_that_ends_the_moves_names_it_too(
    build: builds.Build, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build is interrupted when all that remains is to move its files."""

    def interrupted(folder: Path) -> None:
        if (folder / folders.PART / folders.MOVES).exists():
            raise KeyboardInterrupt
        return ()

    (build.folder / "synthesis" / "popcount.v").write_text("in the folder, and of no build")
    description = json.loads((build.folder / "build.json").read_text())
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folders.replace_build(build.folder, description, {"synthesis/popcount.v": b"new"})
    assert (build.folder / "rtl" / "bitloom_top.v").exists()
    loaded(build.folder)
    assert capsys.readouterr().err == (
        f"bitloom: {build.folder}: synthesis/popcount.v is kept: a file of the build takes its place; "
        "it is synthesis/popcount.v.kept now\n"
    )
    assert (build.folder / "synthesis" / "popcount.v").read_text() == "new"
    assert not (build.folder / "rtl" / "bitloom_top.v").exists()


def test_not_more_than_a_screen(build: builds.Build, capsys: pytest.CaptureFixture[str]) -> None:
    files = tuple(folders.KeptFile(f"rtl/{k}.v", f"rtl/{k}.v") for k in range(25))
    tell_kept(builds.replace(build, kept=files))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 21
    assert lines[0] == (
        f"bitloom: {build.folder}: rtl/0.v is kept: it was changed, and the build has no such file any more"
    )
    assert lines[-1] == f"bitloom: {build.folder}: 5 more files are kept"
