"""How the NPUs of a search may be joined, and what an NPU may be in each way: one list of layers for chains that the
search cuts, and for rings; one with copies for each mapping of a graph whose maps NPUs copy (docs/decisions/0024).
"""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.network import Model
from bitloom.hls_gen.design.copies import is_copy

from .candidate import Candidate
from .cuts import copying_layers, cut_chains
from .demands import engines_in_common, layers, possible_engines
from .engines import Engines
from .layer_demand import LayerDemand
from .one_npu import NpuChoices
from .ring import rings
from .task import Joining
from .variations import MapSetting


class Joinings:
    """The ways to join NPUs for one network, or for several on an NPU that they have in common.

    Parameters
    ----------
    models
        The networks.
    settings
        What is tried beside foldings.
    streamed
        Whether weights stay on the device, come down the stream, or both is tried.
    stream_bits, lut_rows
        As of `NpuChoices`.

    Attributes
    ----------
    engines
        What may compute the layers of the first network, the best one first.
    choices
        What an NPU may be where nothing is copied, by engines and setting.
    settings
        All settings, with and without streamed weights.

    Raises
    ------
    ValueError
        If no engine computes the network, or none computes all networks.
    """

    def __init__(
        self,
        models: Sequence[Model],
        settings: Sequence[MapSetting],
        streamed: Sequence[bool],
        stream_bits: int,
        lut_rows: int,
    ):
        self._models, self._stream_bits, self._lut_rows = models, stream_bits, lut_rows
        self.engines, self.choices = list[Engines](), dict[tuple[Engines, MapSetting], NpuChoices]()
        several = len(models) > 1
        together = engines_in_common(models) if several else [[engines] for engines in possible_engines(models[0])]
        reason = ValueError()
        for own in together:
            try:
                made = {setting: self._layers(own, setting) for setting in settings}
            except ValueError as error:
                reason = error
                continue
            self.engines.append(own[0])
            for setting in settings:
                for where in (replace(setting, streamed=one) for one in streamed):
                    self.choices[own[0], where] = self._npus(where, own[0], *made[setting])
        if not self.engines:
            raise reason
        self.settings = tuple(dict.fromkeys(where for _, where in self.choices))
        self.layers = self.choices[self.engines[0], self.settings[0]].layers
        self._copying: dict[tuple[Joining, MapSetting], NpuChoices] = {}
        self._ways: list[Joining] | None = None

    @property
    def graph(self) -> bool:
        """Whether maps wait in a skip store."""
        return any(layer.taker is not None for layer in self.layers)

    def ways(self) -> list[Joining]:
        """Chains and rings that are tried; the first one is the chain that most is tried of."""
        if self._ways is None:
            self._ways = [Joining(engines) for engines in self.engines]
            if len(self._models) == 1:
                self._ways += [way for way in self._mapped() if self._is_possible(way)]
        return self._ways

    def _mapped(self) -> list[Joining]:
        """Rings, and chains of a graph with copies, as far as is known without a plan."""
        first = self.engines[0]
        found = [Joining(first, mapping, closed=True) for mapping in rings(first.names)]
        if not self.graph:
            return found
        if len(set(first.names)) > 1:
            return []
        bits = max(layer.feature_bits for layer in self.layers)
        return [*found, *(Joining(first, mapping) for mapping in cut_chains(self._models[0], first, bits))]

    def _is_possible(self, way: Joining) -> bool:
        """Whether maps find their ways."""
        try:
            self.of(way, self.settings[0])
        except ValueError:
            return False
        return True

    def of(self, way: Joining, setting: MapSetting) -> NpuChoices:
        """What an NPU may be.

        Raises
        ------
        ValueError
            If maps don't find their ways there.
        """
        if way.mapping is None or not self.graph:
            return self.choices[way.engines, setting]
        if (way, setting) not in self._copying:
            given = self._copying.get((way, replace(setting, streamed=not setting.streamed)))
            if given is None:
                made, mapping = copying_layers(self._models[0], way, setting)
            else:
                made, mapping = list(given.layers), tuple(given.mapping)
            self._copying[way, setting] = replace(self._npus(setting, way.engines, made, []), mapping=mapping)
        return self._copying[way, setting]

    def way_of(self, candidate: Candidate) -> Joining:
        """How a candidate's NPUs are joined."""
        mapped = Joining(candidate.engines, candidate.mapping, candidate.closed)
        return mapped if candidate.closed or mapped in self.ways() else Joining(candidate.engines)

    def in_settings(self, candidate: Candidate) -> dict[MapSetting, NpuChoices]:
        """What an NPU may be as a candidate's NPUs are joined, by setting."""
        way = self.way_of(candidate)
        return {setting: self.of(way, setting) for setting in self.settings}

    def _layers(self, engines: Sequence[Engines], setting: MapSetting) -> tuple[list[LayerDemand], list[range]]:
        """The layers of all networks, numbered through, and the numbers of each one's; no numbers for one network."""
        found, networks = list[LayerDemand](), list[range]()
        for model, own in zip(self._models, engines):
            made = layers(model, setting.map_order, own, counters=setting.counters)
            networks.append(range(len(found), len(found) + len(made)))
            found += [layer.numbered_from(len(found)) for layer in made] if found else made
        return found, networks if len(self._models) > 1 else []

    def _npus(
        self, where: MapSetting, engines: Engines, made: Sequence[LayerDemand], networks: Sequence[range]
    ) -> NpuChoices:
        """What an NPU may be for these layers; where copies are among them they are all on one."""
        copies = any(is_copy(layer.name) for layer in made)
        return NpuChoices(
            made, self._stream_bits, self._lut_rows, where.counters, where.streamed, engines.depthwise, networks,
            (0,) * len(made) if copies else (),
        )  # fmt: skip
