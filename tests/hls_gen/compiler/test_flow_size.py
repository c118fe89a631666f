import pytest

from bitloom.hls_gen.compiler.flow import Deadlock, System, least_spill, simulate, smooth

from .flows import convolutions, ring


@pytest.mark.parametrize("npus", [2, 3])
def test_least_spill_store(npus: int) -> None:
    """One word less is a deadlock; with ``smooth`` all is as if there were no limit."""

    def with_words(words: int | None) -> System:
        return ring(npus, convolutions(4), spill_words=words, tuple_words=48)

    system = with_words(3)  # 3 counts for nothing
    least, most = least_spill(system), smooth(system)
    assert 0 < least <= most
    simulate(with_words(least))
    with pytest.raises(Deadlock):
        simulate(with_words(least - 1))
    assert simulate(with_words(most)) == simulate(with_words(None))


def test_no_spill_store_where_the_tuple_memory_holds_the_maps() -> None:
    assert least_spill(ring(2, convolutions(4), tuple_words=4096)) == 0


def test_no_spill_store_where_the_ring_is_not_closed() -> None:
    system = ring(4, convolutions(4))
    assert (least_spill(system), smooth(system)) == (0, 0)


def test_no_spill_store_helps() -> None:
    with pytest.raises(Deadlock, match="words in its tuple memory"):
        least_spill(ring(2, convolutions(4), tuple_words=8))
