"""The command compile: programs of networks for a build that is there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bitloom.golden import zoo as networks
from bitloom.golden.atomic import inside, write_bytes
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.effects import check_effects
from bitloom.hls_gen.compiler.host_tail import split
from bitloom.hls_gen.compiler.lowering import lowered_for
from bitloom.hls_gen.compiler.mapping import target_of
from bitloom.hls_gen.compiler.partitions import check_partitions, partitions
from bitloom.hls_gen.compiler.schedule import ORDERS
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.programs import compiled

from .options import (
    FOLDER,
    NONE,
    WRITTEN_FOLDER,
    compile_options,
    map_order_option,
    partitions_option,
    words_or_paths,
)
from .progress import working
from .show import dump, grid, json_option
from .subject import hosts_of, loaded

ENDING = ".program.npz"
"""Ending of a program's file."""


@click.command("compile")
@click.argument("given", metavar="NETWORK...", nargs=-1, required=True, shell_complete=words_or_paths(networks.names))
@click.option("--for", "folder", type=FOLDER, required=True, metavar="BUILD", help="Folder of the build.")
@click.option("--out", type=WRITTEN_FOLDER, help="Folder of the programs.  [default: that of the model's file]")
@compile_options(mapping="the build's, or chosen", chunk="the build's", shortcuts="the build's")
@map_order_option("auto", *ORDERS)
@partitions_option(NONE, "none: one program.  [default: the build's]")
@json_option
def compile_command(given: tuple[str, ...], folder: Path, out: Path | None, as_json: bool, **changes: Any) -> None:
    """Compile networks for the hardware of a build.

    NETWORK is a name of ours (digits-cnn) or a model file (.npz). Its program, NETWORK.program.npz, runs on the
    bitstream that is there. A network with the layers of one of the build's, trained anew, fits; of any other one is
    said what doesn't. Without options it is compiled as the build's networks were.
    """
    build = loaded(folder)
    manifest = build.unchanged_manifest()
    models = [networks.find(text) for text in given]
    files = _files(build, given, out)
    asked = {key: value for key, value in changes.items() if value is not None}
    choices = {model.network.name: _choices(build, model, asked) for model in models}
    with working("compiling"):
        if asked:
            _check(build, models, choices, asked)
        programs = list(compiled(models, manifest, choices, hosts_of(given, models)).values())
    for path, program in zip(files, programs):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, program.to_bytes())
    facts = [
        {
            "network": program.name,
            "file": str(path),
            "mapping": [n for each in program.programs for n in each.mapping],
            "ideal_cycles_per_frame": program.ideal_cycles,
            "parameter_words": sum(each.parameters.size for each in program.programs),
        }
        for path, program in zip(files, programs)
    ]
    if as_json:
        dump({"design": build.design.name, "digest": manifest.digest, "programs": facts})
        return
    rows = [
        [
            *(str(fact[key]) for key in ("network", "file")),
            *(f"{fact[key]:,}" for key in ("ideal_cycles_per_frame", "parameter_words")),
        ]
        for fact in facts
    ]
    grid(f"for {build.design.name}", ["network", "program", "ideal cycles a frame", "parameter words"], rows)


def _choices(build: Build, model: Model, asked: Mapping[str, Any]) -> CompileChoices:
    """How a network is compiled: as for the build, but for what was asked. Where it is cut otherwise than the build's
    network, that one's mapping is of other layers, and a mapping is chosen."""
    given = build.choices_for(model)
    if "partitions" in asked:
        given = replace(given.of_partition, mapping=None)
    changed = replace(given, **asked)
    npus = build.design.npus
    alike = target_of(npus, changed) == target_of(npus, given)
    return changed if alike or "mapping" in asked else replace(changed, mapping=None)


def _check(
    build: Build, models: Sequence[Model], choices: Mapping[str, CompileChoices], asked: Mapping[str, Any]
) -> None:
    """ValueError if a choice that was asked for has no effect on any of the networks; the build's own may have none."""
    name, npus = build.design.name, build.design.npus
    every = [(split(model)[0], choices[model.network.name]) for model in models]
    check_partitions(name, [model for model, _ in every], asked.get("partitions", {}))
    partition_models = [
        (program_model.model, how) for model, how in every for program_model in partitions(model, how.partitions, npus)
    ]
    lowered = [lowered_for(partition_model, npus, how.of_partition) for partition_model, how in partition_models]
    check_effects(name, lowered, npus, CompileChoices(**asked))


def _files(build: Build, given: Sequence[str], out: Path | None) -> list[Path]:
    """The file of each program; ValueError if two programs have one file, or the file is one of the build's."""
    files = []
    for text in given:
        stem = Path(text).stem if text.endswith(".npz") else text
        path = inside(out or (Path(text).parent if text.endswith(".npz") else Path()), f"{stem}{ENDING}")
        if path in files:
            raise ValueError(f"--out: programs must be files of different names, got {path} twice")
        if path.resolve() in [program.resolve() for program in build.programs.values()]:
            raise ValueError(f"--out: a program must be no file of the build, got {path}")
        files.append(path)
    return files
