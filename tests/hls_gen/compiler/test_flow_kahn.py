import pytest

from bitloom.hls_gen.compiler.flow.kahn import Blocked, Deadlock, FlowProcess, Process, Stamps, run


def copy(source: Stamps, target: Stamps, count: int, delay: int) -> Process:
    for k in range(count):
        while len(source) <= k:
            yield ((source, k),)
        target.append(source[k] + delay)


def test_stamps_do_not_depend_on_the_order_of_the_processes() -> None:
    stamps = []
    for backwards in (False, True):
        lines = [Stamps(f"stamps {k}") for k in range(4)]
        lines[0].extend(range(0, 50, 5))
        processes = [
            FlowProcess(f"delay {k}", 0, copy(lines[k], lines[k + 1], 10, k + 1), [lines[k + 1]]) for k in range(3)
        ]
        run(processes[::-1] if backwards else processes)
        stamps.append(lines[3])
        assert all(process.waits == () for process in processes)
    assert list(stamps[0]) == list(stamps[1]) == [t + 6 for t in range(0, 50, 5)]


@pytest.mark.parametrize("first", [0, 1])
def test_either_of_two_waits_lets_a_process_go_on(first: int) -> None:
    """It is woken by the one that comes, and by the other one only if it waits for that again."""
    lines = [Stamps("a"), Stamps("b")]
    out = Stamps("out")
    seen: list[tuple[int, int]] = []

    def reader() -> Process:
        while not all(lines):
            yield tuple((line, 0) for line in lines if not line)
            seen.append((len(lines[0]), len(lines[1])))
        out.append(lines[0][0] + lines[1][0])

    def give(k: int) -> Process:
        if k != first and not out_of_first:
            yield ((out_of_first, 0),)
        lines[k].append(k + 1)
        if k == first:
            out_of_first.append(0)
        yield from ()

    out_of_first = Stamps("the first to have given")
    givers = [FlowProcess(f"gives {k}", 0, give(k), [lines[k], *([out_of_first] * (k == first))]) for k in range(2)]
    run([FlowProcess("reader", 0, reader(), [out]), *givers])
    assert list(out) == [3]
    assert seen[-1] == (1, 1)


def starved(npus: list[int | None], names: list[str]) -> Deadlock:
    """Processes in a circle, each of which waits for the next."""
    count = len(npus)
    lines = [Stamps(name) for name in names]

    def wait(k: int) -> Process:
        yield ((lines[k], 0),)

    processes = [FlowProcess(f"component {k}", npus[k], wait(k), [lines[(k - 1) % count]]) for k in range(count)]
    with pytest.raises(Deadlock) as caught:
        run(processes)
    return caught.value


def test_deadlock_between_npus_names_what_crosses() -> None:
    """Inside an NPU and between two NPUs nobody is named."""
    deadlock = starved([0, 0, None, 1, 1], ["beats", "room towards NPU 1", "more room", "words", "room towards NPU 0"])
    assert str(deadlock) == "flow: deadlock: NPU 0 waits for room towards NPU 1, NPU 1 for room towards NPU 0"
    assert deadlock.npus == (0, 1)
    assert deadlock.cycle[2] == Blocked(npu=None, process="component 2", waits_for="more room")


def test_deadlock_inside_an_npu_names_its_components() -> None:
    deadlock = starved([3, 3], ["words", "room in its map store"])
    assert (
        str(deadlock)
        == "flow: deadlock: component 0 of NPU 3 waits for words, component 1 of NPU 3 for room in its map store"
    )


def test_only_the_cycle_is_named() -> None:
    """A process that waits for one of the cycle is not part of it."""
    a, also_a, b = Stamps("a"), Stamps("a for somebody else"), Stamps("b")

    def wait(stamps: Stamps) -> Process:
        yield ((stamps, 0),)

    processes = [
        FlowProcess("outside", 0, wait(also_a), []),
        FlowProcess("first", 1, wait(b), [a, also_a]),
        FlowProcess("next", 1, wait(a), [b]),
    ]
    with pytest.raises(Deadlock) as caught:
        run(processes)
    assert [blocked.process for blocked in caught.value.cycle] == ["first", "next"]
