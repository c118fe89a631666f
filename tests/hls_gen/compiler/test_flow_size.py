import pytest

from bitloom.hls_gen.compiler.flow import Deadlock, Spill, System, simulate, spill

from .flows import convolutions, ring


@pytest.mark.parametrize("npus", [2, 3])
def test_least_spill_store(npus: int) -> None:
    """One word less is a deadlock; with ``smooth`` all is as if there were no limit."""

    def with_words(words: int | None) -> System:
        return ring(npus, convolutions(4), spill_words=words, tuple_words=48)

    system = with_words(3)  # 3 counts for nothing
    depths = spill(system)
    assert 0 < depths.least <= depths.smooth
    simulate(with_words(depths.least))
    with pytest.raises(Deadlock):
        simulate(with_words(depths.least - 1))
    smooth, unlimited = (simulate(with_words(n)) for n in (depths.smooth, None))
    assert smooth == unlimited


def test_no_spill_store_where_the_tuple_memory_holds_the_maps() -> None:
    depths = spill(ring(2, convolutions(4), tuple_words=4096))
    assert depths.least == 0


def test_no_spill_store_where_the_ring_is_not_closed() -> None:
    assert spill(ring(4, convolutions(4))) == Spill(least=0, smooth=0)


def test_no_spill_store_helps() -> None:
    with pytest.raises(Deadlock, match="words in its tuple memory"):
        spill(ring(2, convolutions(4), tuple_words=8))
