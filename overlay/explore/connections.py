"""How the NPUs of a search may be connected, and what an NPU may be in each connection: one list of layers for chains
that the search cuts, and for rings of a network without forks; one for each mapping of a graph, whose maps NPUs copy
(docs/decisions/0024), and of several networks, each of which has its own mapping.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from bitloom.golden.network import Model
from bitloom.hls_gen.design.copy_names import is_copy

from .alike import alike
from .candidate import Candidate
from .cuts import copying_layers, cut_chains
from .demands import engines_in_common, layers, possible_engines
from .engines import Engines
from .layer_demand import LayerDemand
from .one_npu import NpuChoices
from .ring import rings
from .task import Connection
from .variations import MapSetting

MappedLayers = tuple[list[LayerDemand], tuple[int, ...], list[range]]
"""The layers of all networks with their copies, the NPU of each, and the numbers of each network's."""


class Connections:
    """The connections of NPUs for one network, or for several on NPUs that they have in common.

    Parameters
    ----------
    models
        The networks.
    settings
        Settings that are tried beside foldings.
    streamed
        Whether weights stay on the device, come down the stream, or both is tried.
    stream_bits, lut_rows
        As of `NpuChoices`.

    Attributes
    ----------
    engines
        Engines that may compute the layers of the first network, the best ones first.
    choices
        Choices for an NPU where nothing is copied, by engines and setting.
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
        self._models = models
        self._stream_bits = stream_bits
        self._lut_rows = lut_rows
        self.engines = list[Engines]()
        self.choices = dict[tuple[Engines, MapSetting], NpuChoices]()
        self._each = dict[Engines, Sequence[Engines]]()
        several = len(models) > 1
        together = engines_in_common(models) if several else [[engines] for engines in possible_engines(models[0])]
        reason = ValueError()
        for in_common in together:
            try:
                orders = dict.fromkeys(setting.map_order for setting in settings)
                layers_of = {order: self._layers(in_common, order) for order in orders}
            except ValueError as error:
                reason = error
                continue
            self.engines.append(in_common[0])
            self._each[in_common[0]] = in_common
            for setting in settings:
                for where in (replace(setting, streamed=streams) for streams in streamed):
                    npus = self._npus(where, in_common[0], *layers_of[setting.map_order])
                    elder = None if several else self._elder(in_common[0], where)
                    if elder:
                        npus = replace(npus, elder=elder, alike=alike(npus.layers, elder.layers))
                    self.choices[in_common[0], where] = npus
        if not self.engines:
            raise reason
        self.settings = tuple(dict.fromkeys(where for _, where in self.choices))
        self.layers = self.choices[self.engines[0], self.settings[0]].layers
        self._copying: dict[tuple[Connection, MapSetting], NpuChoices] = {}
        self._layers_of: dict[tuple[Connection, str], MappedLayers] = {}

    @cached_property
    def first(self) -> MapSetting:
        """The setting of the sweep: the first one of those in which window formers can feed most layers."""
        formed = {
            where: sum(layer.with_former is not None for layer in choices.layers)
            for (engines, where), choices in self.choices.items()
            if engines == self.engines[0] and where.streamed == self.settings[0].streamed
        }
        return max(formed, key=lambda where: formed[where], default=self.settings[0])

    @cached_property
    def swept(self) -> list[MapSetting]:
        """Settings of the sweep: the first one, and of a network whose first layer is binary, where a window former
        pays at short intervals only, the ordinary one, too."""
        ordinary = [] if self.layers[0].engine == "integer" else [self.settings[0]]
        return list(dict.fromkeys([self.first, *ordinary]))

    @property
    def graph(self) -> bool:
        """Whether maps wait in a skip store."""
        return any(layer.taker is not None for layer in self.layers)

    @cached_property
    def possible(self) -> list[Connection]:
        """Chains and rings that are tried; the first one is the chain that most is tried of."""
        chains = [Connection(engines) for engines in self.engines]
        return [*chains, *(connection for connection in self._mapped() if self._is_possible(connection))]

    def _mapped(self) -> list[Connection]:
        """Rings, and chains with a mapping of a graph or of each of several networks, as far as is known without a
        plan."""
        first = self.engines[0]
        each = self._each[first]
        several = len(self._models) > 1
        rounds = [Connection(first, mapping, closed=True) for mapping in rings([engines.names for engines in each])]
        if not (self.graph or several):
            return rounds
        if len(set(first.names)) > 1:
            return []
        bits = max(layer.feature_bits for layer in self.layers)
        return [*rounds, *(Connection(first, mapping) for mapping in cut_chains(self._models, each, bits))]

    def _is_possible(self, connection: Connection) -> bool:
        """Whether maps find their ways."""
        try:
            self.of(connection, self.first)
        except ValueError:
            return False
        return True

    def of(self, connection: Connection, setting: MapSetting) -> NpuChoices:
        """The choices for an NPU of this connection and setting.

        Raises
        ------
        ValueError
            If maps don't find their ways there.
        """
        if connection.mapping is None or not (self.graph or len(self._models) > 1):
            return self.choices[connection.engines, setting]
        if (connection, setting) not in self._copying:
            if (connection, setting.map_order) not in self._layers_of:
                self._layers_of[connection, setting.map_order] = self._mapped_layers(connection, setting.map_order)
            layers, mapping, networks = self._layers_of[connection, setting.map_order]
            self._copying[connection, setting] = replace(
                self._npus(setting, connection.engines, layers, networks), mapping=mapping
            )
        return self._copying[connection, setting]

    def _mapped_layers(self, connection: Connection, map_order: str) -> MappedLayers:
        """The layers of all networks with their copies, the NPU of each, and the numbers of each network's."""
        each = list[list[LayerDemand]]()
        on = tuple[int, ...]()
        rest = connection.mapping or ()
        for model, engines in zip(self._models, self._each[connection.engines]):
            of_model = replace(connection, engines=engines, mapping=rest[: len(engines.names)])
            layers, mapping = copying_layers(model, of_model, map_order)
            each = [*each, layers]
            on = (*on, *mapping)
            rest = rest[len(engines.names) :]
        numbered, networks = _numbered(each)
        return numbered, on, networks

    def connection_of(self, candidate: Candidate) -> Connection:
        """How a candidate's NPUs are connected: with its mapping, which is that of the first network, or as a chain."""
        count = len(candidate.mapping)
        kind = (candidate.engines, candidate.closed)
        fits = (
            connection
            for connection in self.possible
            if connection.mapping is not None
            if (connection.engines, connection.closed, connection.mapping[:count]) == (*kind, candidate.mapping)
        )
        return next(fits, Connection(candidate.engines))

    def in_settings(self, candidate: Candidate) -> dict[MapSetting, NpuChoices]:
        """Choices for an NPU, with the connection of a candidate's NPUs, by setting."""
        connection = self.connection_of(candidate)
        return {setting: self.of(connection, setting) for setting in self.settings}

    def _layers(self, engines: Sequence[Engines], map_order: str) -> tuple[list[LayerDemand], list[range]]:
        """The layers of all networks, numbered through, and the numbers of each one's; no numbers for one network."""
        each = zip(self._models, engines)
        return _numbered([layers(model, map_order, choice) for model, choice in each])

    def _elder(self, engines: Engines, where: MapSetting) -> NpuChoices | None:
        """Choices for an NPU with the first engines, or, if these are the first ones, in the first map order; None
        where pool units, or all NPUs, differ."""
        first = self.engines[0]
        if engines != first:
            return self.choices[first, where] if engines.depthwise == first.depthwise else None
        settings = (setting for of, setting in self.choices if of == first)
        same = (setting for setting in settings if replace(setting, map_order=where.map_order) == where)
        return next((self.choices[first, setting] for setting in same), None)

    def _npus(
        self, where: MapSetting, engines: Engines, layers: Sequence[LayerDemand], networks: Sequence[range]
    ) -> NpuChoices:
        """Choices for an NPU with these layers; where copies are among the layers, or layers of several networks, all
        layers are on one NPU."""
        on_one_npu = bool(networks) or any(is_copy(layer.name) for layer in layers)
        return NpuChoices(
            layers,
            self._stream_bits,
            self._lut_rows,
            where.counters,
            where.streamed,
            engines.depthwise,
            networks,
            (0,) * len(layers) if on_one_npu else (),
        )


def _numbered(each: Sequence[list[LayerDemand]]) -> tuple[list[LayerDemand], list[range]]:
    """The layers of all networks, numbered through, and the numbers of each one's; no numbers for one network."""
    numbered = list[LayerDemand]()
    networks = list[range]()
    for demands in each:
        networks.append(range(len(numbered), len(numbered) + len(demands)))
        numbered += [layer.numbered_from(len(numbered)) for layer in demands] if numbered else demands
    return numbered, networks if len(each) > 1 else []
