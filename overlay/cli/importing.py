"""The command import: a network from outside becomes a model file."""

from pathlib import Path
from typing import Any

import click

from bitloom.golden import file
from bitloom.golden.atomic import inside
from bitloom.golden.host import file as hosts
from bitloom.golden.host.host import Host
from bitloom.golden.names import check_name, shown
from bitloom.golden.reading.file import naming, read_file
from bitloom.overlay.evaluation.host_transform import fitting_transforms
from bitloom.overlay.importers.choose import ENGINES, costs_text
from bitloom.overlay.importers.class_names import MOST_BYTES, fitting, lines_of
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.explain import rows, write_explanation
from bitloom.overlay.importers.imported import Imported, import_file, network_name, parse_input
from bitloom.overlay.importers.verify import Checked, verify

from .options import FILE, check_place
from .progress import bar, working
from .show import dump, grid, json_option, table


@click.command("import")
@click.argument("source", metavar="FILE", type=FILE)
@click.option("--out", type=FILE, help="The model file.  [default: FILE with .npz in the working folder]")
@click.option("--name", default="", show_default=False, help="Name of the network.  [default: FILE's]")
@click.option("--input", "given", help="What the network is fed with, where it quantises nothing: KIND[BITS][:SCALE].")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="auto",
    help="The engine that is to compute all layers; auto: the one that costs less.",
)
@click.option(
    "--classes",
    "names",
    type=FILE,
    help="Text file with the names of the classes, a line each.  [default: those in FILE]",
)
@click.option("--real-weights", is_flag=True, help="Keep the real numbers of which binary weights are the signs.")
@click.option("--check", "images", type=click.IntRange(0, 4096), default=8, help="Random images to verify with.")
@click.option("--explain", is_flag=True, help="Show what became of each node; write it to NAME.import.md and .html.")
@json_option
def import_command(
    source: Path,
    out: Path | None,
    name: str,
    given: str | None,
    engine: str,
    names: Path | None,
    real_weights: bool,
    images: int,
    explain: bool,
    as_json: bool,
) -> None:
    """Make a model of a trained network: QONNX (Brevitas, QKeras), ONNX with quantised layers, or int8 TFLite.

    Scales, batch normalisation and activations become integer thresholds or requantisation, exactly: for every sum of
    products that can occur, or the line "exact" says how many are one level off. So it does for additions of two maps:
    ONNX rounds halves to even, an Add layer away from zero. Each rewriting is then computed again on random and on
    extreme images.

    --input says what comes in where the file doesn't, as unsigned8:1/255 for pixels that count from 0 to 1,
    signed8:1/128 or bipolar. Beside the model goes NAME.host.json, with what the host does: images become integers,
    integers become scores.
    """
    spec = parse_input(given) if given is not None else None
    if name:
        check_name("--name", name)
    classes = _classes(names) if names is not None else None
    target = out or inside(Path(), f"{name or network_name(source)}.npz")
    _check_target(target)
    try:
        with working("reading and rewriting"):
            imported = import_file(source, spec=spec, engine=engine, name=name, real_weights=real_weights)
    except ImportRefused as e:
        if len(e.lines) == 1:
            raise ValueError(f"{source}: {e}") from None
        count = f"{source}: {len(e.lines)} things can't be imported:"
        raise click.ClickException("\n".join([count, *(f"  {line}" for line in e.lines)])) from None
    imported, named = _named(imported, classes, names)
    checked: list[Checked] = []
    if images:
        with bar("verifying each rewriting", "rewritings") as update, naming(source):
            checked = verify(imported, images, progress=update)
    target.parent.mkdir(parents=True, exist_ok=True)
    file.save(imported.model, target)
    hosts.save(imported.host, inside(target.parent, hosts.path_of(target).name))
    written = [target, hosts.path_of(target)]
    if explain:
        written += write_explanation(imported, checked, target)
    if as_json:
        dump({**_facts(imported, checked, written), "classes": list(imported.model.network.classes), "named": named})
        return
    _show(imported, checked, written, named, explain)


def _classes(path: Path) -> list[str]:
    """The lines of a text file, without blanks at their ends; what is no text, or too long for any, is refused."""
    with naming(str(path)):
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"must have at most {MOST_BYTES:,} bytes, got {path.stat().st_size:,}")
    data = read_file(path)
    with naming(str(path)):
        return lines_of(data)


def _named(imported: Imported, classes: list[str] | None, path: Path | None) -> tuple[Imported, str]:
    """The network with the names of its classes, the user's or else those that it brings, and where they are from."""
    if classes is not None:
        with naming(str(path)):
            return imported.with_classes(classes), str(path)
    output = imported.model.network.output
    if output.size != output.channels or not imported.host.has_scores:
        return imported, ""
    labels, said = fitting(imported.source.labels, output.channels)
    return imported.with_classes(labels) if labels else imported, said


def _check_target(target: Path) -> None:
    """Refuse a file that can't be written, before the work that it is for."""
    if target.suffix != ".npz":
        raise ValueError(f"--out: must end in .npz, got {shown(str(target))}")
    with naming("--out"):
        check_place(target)


def _facts(imported: Imported, checked: list[Checked], written: list[Path]) -> dict[str, Any]:
    """The facts of the import for --json."""
    return {
        "network": imported.model.network.name,
        "files": [str(path) for path in written],
        "engines": list(imported.choice.engines),
        "why": imported.choice.why,
        "costs": {
            engine: {"refused": cost} if isinstance(cost, str) else {"lut": cost.lut, "dsp": cost.dsp}
            for engine, cost in imported.choice.costs.items()
        },
        "input": str(imported.model.network.input.encoding),
        "layers": [vars(built) for built in imported.emitted.built],
        "verified_values": sum(c.values for c in checked),
        "ties": sum(c.ties for c in checked),
        "outputs": {name: list(shape) for name, shape in imported.host.shapes.items()},
        "classes_need_scores": imported.host.has_scores and not imported.host.keeps_order,
    }


def _real_numbers(host: Host) -> dict[str, str]:
    """The real numbers that the input stands for, and the transform of usual pixels that fits these."""
    real = host.real_range()
    if real is None:
        return {}
    fits = fitting_transforms(host)
    advice = f"; evaluate pixels of 0..255 with --transform {' or '.join(fits)}" if fits else ""
    return {"real numbers": f"{real}{advice}"}


def _ends(host: Host) -> dict[str, str]:
    """Line of the answer on the network's output: a class, or several outputs."""
    if host.has_scores:
        return {"class": "the largest integer" if host.keeps_order else "the largest score, by the host file"}
    return {
        "outputs": ", ".join(f"{name} {' x '.join(map(str, shape or (1,)))}" for name, shape in host.shapes.items())
    }


def _show(imported: Imported, checked: list[Checked], written: list[Path], named: str, explain: bool) -> None:
    """Print what was imported."""
    source = imported.model.network.input
    wrong = sum(built.wrong[0] for built in imported.emitted.built)
    exact = "for every sum" if not wrong else f"for all but {wrong:,} sums of all channels, which are one level off"
    verified = f"{len(checked)} rewritings, {sum(c.values for c in checked):,} values" if checked else "not asked for"
    table(
        imported.model.network.name,
        {
            "input": f"{source.height} x {source.width} x {source.channels}, {source.encoding}",
            **_real_numbers(imported.host),
            "engine": imported.choice.why,
            **costs_text(imported.choice.costs),
            "exact": exact,
            "verified": verified,
            **_ends(imported.host),
            **({"names of classes": named} if named else {}),
            "written": ", ".join(map(str, written)),
        },
    )
    if explain:
        grid("what became of each node", ["node", "operator", "became", "how"], rows(imported), labels=3)
