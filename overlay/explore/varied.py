"""What a search varies beside foldings, in words."""

from .tries import Tries


def varied(tries: Tries) -> tuple[str, ...]:
    """What a search varies beside foldings.

    Parameters
    ----------
    tries
        The search's data.

    Returns
    -------
    tuple of str
        A few words each.
    """
    ways = tries.ways()
    one = len(tries.layers) == 1 or bool(tries.also)
    sizes, cut = (
        sorted({max(way.mapping) + 1 for way in ways if way.mapping and way.closed == closed})
        for closed in (True, False)
    )
    found = ["lanes of one NPU" if one else "pipelines, cascades and single NPUs"]
    if sizes:
        found.append(f"rings of {' and '.join(map(str, sizes))} NPUs")
    if cut:
        found.append(f"chains of {' and '.join(map(str, cut))} NPUs that are cut between fork and join")
    orders = list(dict.fromkeys(setting.map_order for setting in tries.settings))
    found.append(f"map order {' and '.join(orders)}")
    if any(setting.counters for setting in tries.settings):
        found.append("tables and counters")
    if not tries.also:
        found.append("both dataflows")
    if len(tries.layers) > 1 and any(setting.streamed for setting in tries.settings):
        found.append("streamed weights")
    engines = {engine for way in ways for engine in way.engines.names}
    if len(engines) > 1:
        found.append("NPUs of both engines")
    if any(layer.joined for made in tries.choices.values() for layer in made.layers):
        found.append("window former")
    if any(way.engines.depthwise for way in ways):
        found.append("pool units with weights")
    if "integer" in engines and tries.budget.dsp is not None:
        added = any(layer.adds is not None for layer in tries.layers)
        found.append("shared multipliers" + " and additions in LUTs" * added)
    return tuple(found)
