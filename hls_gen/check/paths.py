"""Combinational paths through a module: none back to itself, none from ready to valid."""

from .module import Module
from .scope import Ref


def check_loops(module: Module) -> None:
    """No signal depends on itself without a register between."""
    done: set[Ref] = set()
    reported: set[frozenset[str]] = set()
    for start in [driver.ref for drivers in module.drivers.values() for driver in drivers]:
        path: list[Ref] = []
        on_path: set[Ref] = set()
        todo = [(start, False)]
        while todo:
            ref, leave = todo.pop()
            if leave:
                on_path.remove(path.pop())
                done.add(ref)
            elif ref in on_path:
                names = [r.name for r in path[path.index(ref) :]]
                if frozenset(names) not in reported:
                    reported.add(frozenset(names))
                    names = _from_smallest(names)
                    module.scope.report(names[0], f"combinational loop {' <- '.join([*names, names[0]])}")
            elif ref not in done:
                path.append(ref)
                on_path.add(ref)
                todo.append((ref, True))
                todo += [(r, False) for r in module.edges(ref)]


def check_streams(module: Module) -> None:
    """valid never waits for ready."""
    for signal in module.scope.signals.values():
        if signal.port == "output" and signal.name.endswith("valid"):
            ready = signal.name.removesuffix("valid") + "ready"
            if ready in {source.name for source in module.inputs_of(signal.whole)}:
                module.scope.report(signal.name, f"valid must not depend on {ready} in the same cycle")


def _from_smallest(names: list[str]) -> list[str]:
    """A loop's names from the first in the alphabet on, so that messages stay the same; one for a run of the same."""
    short = [name for i, name in enumerate(names) if name != names[i - 1]] or names[:1]
    first = short.index(min(short))
    return short[first:] + short[:first]
