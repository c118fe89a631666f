"""How a build's network was compiled: the order of its maps and its plan, neither of which the program keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from driver.compile import compile_model
from driver.manifest import Manifest
from driver.packets import packets
from driver.plan import Plan, plan
from driver.program import Program
from golden.file import model_digest
from golden.network import Model

from ..build import Build

ORDERS = ("auto", "pull", "raster")


@dataclass(frozen=True)
class Compiled:
    """A network of a build. orders : of ORDERS, those that make its program; ``plan`` is of the first."""

    build: Build
    model: Model
    program: Program
    manifest: Manifest
    orders: tuple[str, ...]
    plan: Plan


def compiled(build: Build, model: Model) -> Compiled:
    """``model`` as ``build`` has it; ValueError if its program is of another model, or not what compiling it makes."""
    program, digest = build.program(model.network.name), model_digest(model)
    if digest != program.model_digest:
        raise ValueError(f"{build.folder}: {program.name} was compiled from {program.model_digest[:16]}, "
                         f"got the model {digest[:16]}: build again")  # fmt: skip
    manifest = Manifest.load(build.bit.with_suffix(".manifest.json"))
    work = _work(program, manifest)
    orders = [order for order in ORDERS if makes(program, model, manifest, order, work, program.mapping)]
    if not orders:
        raise ValueError(f"{build.folder}: the program of {program.name} must be what the compiler makes of it, "
                         "got another: build again")  # fmt: skip
    geometries = [npu.parameters for npu in manifest.npus]
    made = plan(model, geometries, orders[0], work, mapping=program.mapping)
    return Compiled(build, model, program, manifest, tuple(orders), made)


def makes(
    program: Program,
    model: Model,
    manifest: Manifest,
    order: str,
    work: Mapping[str, str],
    mapping: Sequence[int] | None,
) -> bool:
    """Whether ``program`` is what compiling with these makes (driver.compile)."""
    try:
        made = compile_model(model, manifest, order, work, mapping=mapping)
    except ValueError:  # maps in this order need more memory than there is
        return False
    same = ("parameters", "weights", "frame_source", "result_index")
    return all(np.array_equal(getattr(made, key), getattr(program, key)) for key in same)


def _work(program: Program, manifest: Manifest) -> dict[str, str]:
    """Order of work by layer: "input" where a layer's row says that there are kernel groups inside."""
    rows: dict[int, list[int]] = {n: [0] * program.mapping.count(n) for n in range(len(manifest.npus))}
    for head, memory, words in packets(manifest, program.parameters, program.name):
        fields = {f.name: f for f in memory.fields}
        if memory.name == "layers" and "inner_groups_minus_1" in fields:
            values = [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]
            rows[head.npu] = [fields["inner_groups_minus_1"].of(value) for value in values]
    own = {n: iter(found) for n, found in rows.items()}
    inner = [next(own[n]) for n in program.mapping]
    return {name: "input" if groups else "output" for (name, _), groups in zip(program.layers, inner)}
