"""Pictures that commands write."""

import pytest

from bitloom.overlay.picture import ENDINGS, picture

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install 'bitloom-fpga[explore]'")


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_picture_is_the_same_bytes(ending, tmp_path, monkeypatch):
    """matplotlib writes the time and its version, and draws the names of clip paths and markers at random."""
    written = []
    for number, epoch in enumerate(("0", "1000000000")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)  # the time that matplotlib would write
        path = tmp_path / f"{number}{ending}"
        with picture(path, (4, 3)) as axes:
            axes.plot([1, 2, 3], [2, 1, 3], marker="o", label="line")
            axes.legend()
        written.append(path.read_bytes())
    assert len(written[0]) > 1000
    assert written[0] == written[1]
    assert b"atplotlib" not in written[0].replace(b"matplotlib.axis", b"")
