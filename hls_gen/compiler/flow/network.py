"""The processes of a system and the stores between them (Kahn's process network; hls_gen/compiler/flow/kahn.py)."""

from collections.abc import Callable, Sequence

from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present

from .addition import AddedSteps, AdditionUnit, CollectedSteps, KeptSteps
from .gearbox import Gearbox, Gears, LineGearbox, different
from .kahn import FlowProcess, Process, Stamps
from .layer import Reading
from .line_former import LineFormer, formed_lines
from .loader import WeightLoader
from .pool_unit import FromPool, PassBy, PoolIssuer, PoolResults, outlet
from .ports import FrameSource, MapResults, RawResults
from .record import Record
from .results import ResultStages, ResultsUnit, Taker
from .sequencer import Issuer, writer
from .skid import Skid, SkidSource, StreamRegister
from .stores import Fork, JoinedSource, SkipFifo, SkipSide, SkipSource
from .streams import Fifo, PingPong, Router, Sink, Source, TupleMemory
from .system import System
from .window_former import WindowFormer


class ProcessNetwork:
    """The processes and the stores of a system.

    Parameters
    ----------
    system
        NPUs and layers.
    frames
        How many frames are run.
    at_once
        How many of them come without being admitted; None: all.
    """

    def __init__(self, system: System, frames: int, at_once: int | None = None):
        self.system = system
        self.frames = frames
        self.record = Record()
        """The components of which the network is made."""
        self._make = self.record.make
        self.processes: list[FlowProcess] = []
        self.done = Stamps("a frame to leave")
        """Cycles in which frames have left."""
        self.admitted = Stamps("a frame to be admitted")
        """A stamp for each frame that the host may send."""
        for _ in range(frames if at_once is None else at_once):
            self.admit()
        self.issuers: dict[int, Issuer] = {}
        self._fifos: dict[str, Fifo] = {}
        self._skips: dict[int, SkipFifo] = {}
        """By NPU: its skip store, if maps wait in it."""
        self._pairs: dict[int, PingPong] = {}
        self._tuple_memories: dict[str, TupleMemory] = {}
        self._sinks: dict[int, Sink] = {}
        """By layer: where its map goes."""
        self._sources: dict[int, Source] = {}
        """By layer: where its map comes from."""
        self._puts: dict[int, list[Stamps]] = {n: [] for n in range(len(system.npus))}
        """By NPU: what is stamped as words leave it."""
        self._takes: dict[int, list[Stamps]] = {n: [] for n in range(len(system.npus))}
        """By NPU: what is stamped as words come into its tuple memory."""
        self.loader = self._loader()
        self.frame_source = self._host()
        for n in range(len(system.npus)):
            self._loop(n)
            self._edge(n)
        for n in range(len(system.npus)):
            self._skip(n)
        for n in range(len(system.npus)):
            if system.of(n):
                self._npu(n)

    def admit(self) -> None:
        """Let the host send the next frame as soon as it can."""
        self.admitted.append(0)

    def _loader(self) -> WeightLoader | None:
        """Make the process that brings weights, if any are streamed."""
        system = self.system
        if not system.weights:
            return None
        npus = [system.mapping[packet.layer] for packet in system.weights]
        loader = WeightLoader(npus, system.weights, system.weights_before, system.stream_bits)
        process = self._make(WeightLoader.process, loader, self.frames)
        self.processes.append(FlowProcess("loader", None, process, loader.writes))
        self._takes[0].append(loader.entered)
        return loader

    def _host(self) -> FrameSource:
        """Make the source of frames and the sink of results."""
        system = self.system
        first = system.npus[0].npu
        npu = system.npus[system.mapping[-1]].npu
        outputs = system.outputs
        layers = [system.layers[i] for i in outputs]
        results: Sink
        if layers[-1].raw:
            steps = sum(layer.reading.windows * layer.tuple_steps for layer in layers)
            results = self._make(RawResults, steps * npu.results.ol, self.done)
        else:
            maps = [layer.map_words for layer in layers]
            results = self._make(MapResults, maps, npu.array.map_bits, system.stream_bits, self.done)
        self._sinks |= dict.fromkeys(outputs, results)
        self._puts[system.mapping[-1]].append(self.done)
        reading = [i for i, layer in enumerate(system.layers) if layer.inlet == "host"]
        words = sum(system.layers[i].coming_words for i in reading)
        binariser = first.ports.binariser is not None
        bits = first.host_word_bits, system.stream_bits
        loader = self.loader
        weights = (loader.entered, loader.released) if loader else (None, None)
        frames = self._make(FrameSource, words, *bits, binariser, self.done, self.admitted, *weights)
        self._sources |= dict.fromkeys(reading, self._make(SkidSource, self._behind_former(reading[0], frames)))
        return frames

    def _behind_former(self, layer: int, source: Source) -> Source:
        """The words of ``source``, or windows of them, where a former stands in front of the layer. In an NPU with a
        former they pass a skid register."""
        formed = self.system.layers[layer].formed
        if self.system.npus[self.system.mapping[layer]].npu.former_sizes:
            source = self._make(SkidSource, source)
        return self._make(WindowFormer, source, formed, self.frames) if formed else source

    def _loop(self, n: int) -> None:
        """The map store of NPU ``n``, if it has work for one."""
        readers = self._by_inlet(n, "loop")
        if not readers:
            return
        puts = Stamps("words in its map store")
        takes = Stamps("room in its map store")
        words = self.system.npus[n].npu.stores.map_words
        fifo = self._fifos[f"npu{n}.map_words"] = self._make(Fifo, words, puts, takes)
        self._puts[n].append(puts)
        self._takes[n].append(takes)
        self._sources |= dict.fromkeys(readers, fifo)
        self._sinks |= dict.fromkeys(self._by_outlet(n, "loop"), fifo)

    def _by_inlet(self, n: int, inlet: str) -> list[int]:
        """Numbers of the layers of NPU ``n`` that read maps which come by an inlet."""
        return [i for i in self.system.of(n) if self.system.layers[i].inlet == inlet]

    def _by_outlet(self, n: int, outlet: str) -> list[int]:
        """Numbers of the layers of NPU ``n`` whose maps leave by an outlet."""
        return [i for i in self.system.of(n) if self.system.layers[i].outlet == outlet]

    def _skip(self, n: int) -> None:
        """The skip store of NPU ``n``, if maps wait in it; other maps' sinks are there already."""
        system = self.system
        count = len(self.system.npus)
        keepers = [k for k in range(count) if system.skip_store_npu(k) == n]
        makers = [i for k in keepers for i in system.of(k) if system.layers[i].skips]
        if not makers:
            return
        if system.npus[n].npu.keeps_steps:  # no map's words go there: `_addition` puts steps
            self._skips[n] = self._skip_store(system.npus[n].skip_words, [(1, True)])
            return
        maps = [(system.layers[i].map_words, system.layers[i].is_added) for i in makers]
        store = self._skips[n] = self._skip_store(system.npus[n].skip_words, maps)
        self._puts[n] += [store.inlet.puts, store.addition.puts]
        self._takes[n] += [store.inlet.takes, store.inlet.seen]
        for i in makers:
            before = self._sinks.get(i)
            self._sinks[i] = store if before is None else self._make(Fork, before, store)
        for i in system.of(n):
            layer = system.layers[i]
            source = self._make(SkipSource, store, store.inlet)
            if layer.inlet == "skip":
                self._sources[i] = source
            elif layer.joined_words is not None:
                self._sources[i] = self._make(JoinedSource, [self._sources[i], source], layer.joined_words)

    def _edge(self, n: int) -> None:
        """The components between NPU ``n`` and the one before, if maps come that way."""
        system = self.system
        before = (n - 1) % len(self.system.npus)
        readers = self._by_inlet(n, "ring")
        if not readers:
            return
        words = f"words from NPU {before}"
        room = f"room towards NPU {n}"
        full = Stamps(words)
        cleared = Stamps(room)
        maps = [(system.layers[i].coming_words, system.layers[i].chunk_words) for i in readers]
        pair = self._pairs[n] = self._make(PingPong, maps, full, cleared)
        entry: Sink = pair
        self._takes[n].append(cleared)
        if n or system.spill_words == 0:
            self._puts[before].append(full)
        else:
            puts = Stamps(words)
            takes = Stamps(room)
            entry = fifo = self._fifos["spill_words"] = self._make(Fifo, system.spill_words, puts, takes)
            self._puts[before].append(puts)
            process = self._make(writer, [(count, fifo) for count, _ in maps], pair, self.frames)
            self.processes.append(FlowProcess("spill store", None, process, (takes, full)))
        self._sinks |= dict.fromkeys(self._by_outlet(before, "ring"), entry)
        is_formed = "host" not in system.npus[n].npu.ports.inlets
        self._sources |= {i: self._behind_former(i, pair) if is_formed else pair for i in readers}

    def _npu(self, n: int) -> None:
        """The processes of NPU ``n``."""
        system = self.system
        frames = self.frames
        make = self._make
        flow_npu = self.system.npus[n]
        npu = flow_npu.npu
        numbers = self.system.of(n)
        layers = [system.layers[i] for i in numbers]

        def add(name: str, process: Process, *writes: Stamps) -> None:
            self.processes.append(FlowProcess(name, n, process, writes))

        written = Stamps("words in its tuple memory")
        given = Stamps("room in its tuple memory")
        tuple_words = npu.sequencer.tuple_words
        memory = self._tuple_memories[f"npu{n}.tuple_words"] = make(TupleMemory, tuple_words, written, given)
        maps = [(layer.input_words, self._sources[i]) for i, layer in zip(numbers, layers)]
        lines = formed_lines([layer.reading for layer in layers])
        words = make(StreamRegister, make(LineFormer, memory, lines)) if npu.array_forms_lines else memory
        add("writer", make(writer, maps, words, frames), written, *self._takes[n])

        arrived = Stamps("sums of the array")
        credit = Stamps("room for results")
        loader = self.loader if self.loader and n in self.loader.there else None
        there, done = (loader.there[n], loader.done[n]) if loader else (None, None)
        issuer = self.issuers[n] = Issuer(flow_npu, written, given, arrived, credit, there, done)
        add("issuer", make(Issuer.process, issuer, layers, frames), given, arrived, *([] if done is None else [done]))

        sinks = dict.fromkeys(self._sinks[i] for i, layer in zip(numbers, layers) if layer.raw)
        to_host = self._gearboxes([(1, make(Gearbox, npu.results.ol, 1, sink)) for sink in sinks])
        raw_stages = make(ResultStages, 0, to_host)
        outlets: Taker = self._outlets(n)
        several = npu.array.accumulators > 1
        latencies = flow_npu.latencies
        depth = latencies.activation - 1
        puts = self._puts[n]
        added, addition_writes = self._added_steps(n)
        store = self._skips.get(system.skip_store_npu(n))
        addition_writes += [store.addition.puts] if store is not None and npu.keeps_steps else []
        pooled = [layer for layer in layers if flow_npu.pools(layer)]
        if npu.gives_ways and not pooled:
            stages = make(ResultStages, depth, self._behind_activation(n, outlets, added))
            results = ResultsUnit(several, arrived, credit, stages, raw_stages)
            add("results unit", make(ResultsUnit.process, results, layers, frames), credit, *puts, *addition_writes)
            return
        pool_unit = present(npu.pool_unit)
        readings = [flow_npu.pool_reading(layer) for layer in pooled]
        written = Stamps("words in its pool memory")
        given = Stamps("room in its pool memory")
        emitted = Stamps("words of its pool unit")
        taken = Stamps("room behind its pool unit")
        memory = self._tuple_memories[f"npu{n}.pool_words"] = make(TupleMemory, pool_unit.words, written, given)
        to_pool = self._to_pool(npu, readings, memory)
        taker: Taker = to_pool
        behind: Taker = outlets
        result = [self.done] if layers[-1].raw else []
        left = Stamps("maps to leave its pool unit")
        if npu.passes_by:
            steps = [
                (layer.reading.windows * layer.tuple_steps, flow_npu.outlet_words(layer) * flow_npu.pools(layer))
                for layer in (system.layers[i] for i in system.activated(n))
            ]
            taker = make(PassBy, steps, to_pool, outlets, left)
            behind = make(FromPool, [pool_steps for _, pool_steps in steps if pool_steps], outlets, left)
            result = [*puts]
        stages = make(ResultStages, depth, self._behind_activation(n, taker, added))
        results = ResultsUnit(several, arrived, credit, stages, raw_stages)
        process = make(ResultsUnit.process, results, layers, frames)
        add("results unit", process, credit, written, *result, *addition_writes)
        pool = PoolIssuer(flow_npu, written, given, emitted, taken)
        add("pool issuer", make(PoolIssuer.process, pool, readings, frames), given, emitted)
        if npu.depthwise:
            stages = make(ResultStages, latencies.pool_activation - 1, make(Skid, behind))
            pool_results = PoolResults(latencies.pool, npu.pool_word_steps, emitted, taken, stages)
            pooled_maps = [(reading.windows, layer.tuple_steps) for reading, layer in zip(readings, pooled)]
            process = make(PoolResults.process, pool_results, pooled_maps, frames)
        else:
            process = make(outlet, latencies.pool, readings, frames, emitted, taken, outlets)
        ends = [stamps for stamps in puts if not (layers[-1].raw and stamps is self.done)]
        add("outlet", process, taken, left, *ends)

    def _to_pool(self, npu: Npu, readings: Sequence[Reading], memory: TupleMemory) -> Gearbox:
        """The gearbox in front of the pool unit of an NPU, with the line former behind it where there is one;
        ``memory`` is the unit's tuple memory."""
        lanes = npu.results.ol, present(npu.pool_unit).pfp
        if not (npu.pool_forms_lines and readings):
            return self._make(Gearbox, *lanes, memory)
        return self._make(LineGearbox, *lanes, self._make(LineFormer, memory, formed_lines(readings)))

    def _added_steps(self, n: int) -> tuple[AddedSteps, list[Stamps]]:
        """Steps that the addition of NPU ``n`` takes from the skip store, and the stamps that it writes as it does. A
        process of its own collects the words."""
        npu = self.system.npus[n].npu
        layers = [self.system.layers[i] for i in self.system.of(n)]
        store = self._skips.get(n) or self._skip_store(None, [])
        words = self._make(SkipSource, store, store.addition)
        takes = [store.addition.takes, store.addition.seen]
        together, pieces = gear(npu.skip_lanes, npu.results.ol)
        count = sum(layer.reading.windows * -(-layer.tuple_steps // pieces) for layer in layers if layer.adds)
        offered = Stamps("a step of the words in its skip store")
        freed = Stamps("room in front of its addition")
        collected = self._make(CollectedSteps, words, together, count * self.frames, offered, freed)
        self.processes.append(FlowProcess("collector", n, collected.process(), (*takes, offered), component=collected))
        return self._make(AddedSteps, collected, pieces), [freed]

    def _behind_activation(self, n: int, taker: Taker, added: AddedSteps) -> Taker:
        """The skid register behind the activation of NPU ``n``, in front of ``taker``; and between them, if the NPU has
        one, the addition, which takes ``added`` and has a skid register of its own."""
        flow_npu = self.system.npus[n]
        activated = [self.system.layers[i] for i in self.system.activated(n)]
        if not flow_npu.latencies.addition:
            return self._make(Skid, taker)
        steps = [layer.reading.windows * layer.tuple_steps for layer in activated]
        if flow_npu.npu.keeps_steps:
            to = self._skips.get(self.system.skip_store_npu(n)) or self._skip_store(None, [])
            maps = [(count, layer.is_added) for count, layer in zip(steps, activated)]
            taker = self._make(KeptSteps, maps, to, taker)
        maps = [(count, layer.adds) for count, layer in zip(steps, activated)]
        behind = self._make(Skid, taker)
        return self._make(Skid, self._make(AdditionUnit, flow_npu.latencies.addition, maps, added, behind))

    def _outlets(self, n: int) -> Taker:
        """The gearboxes at the outlets of NPU ``n``: one for each width of words."""
        system = self.system
        flow_npu = self.system.npus[n]
        lanes = flow_npu.npu.outlet_lanes
        layers = system.activated(n)
        boxes: dict[tuple[int, bool], Gearbox] = {}
        for box in dict.fromkeys(system.gearbox(i) for i in layers):
            maps = [(system.layers[i].map_words, self._sinks[i]) for i in layers if system.gearbox(i) == box]
            boxes[box] = self._make(Gearbox, lanes, box[0], self._make(Router, maps))
        words = [flow_npu.outlet_words(system.layers[i]) for i in layers]
        return self._gearboxes([(count, boxes[system.gearbox(i)]) for i, count in zip(layers, words)])

    def _gearboxes(self, maps: list[tuple[int, Gearbox]]) -> Gears | Gearbox:
        """The gearboxes of ``Gears``, or the only one that there is: they take steps and are flushed alike."""
        boxes = different(maps)
        return boxes[0] if len(boxes) == 1 else self._make(Gears, maps)

    def _skip_store(self, depth: int | None, maps: list[tuple[int, bool]]) -> SkipFifo:
        """A skip store of so many words."""
        return self._make(SkipFifo, depth, maps, SkipSide(), SkipSide())

    def stores(
        self, level: Callable[[TupleMemory | Fifo | SkipFifo | PingPong], int] = lambda store: store.level()
    ) -> dict[str, int]:
        """Most words that each store held at a time, which ``level`` gives of a store; by default itself."""
        stores: dict[str, TupleMemory | Fifo | SkipFifo | PingPong] = {**self._tuple_memories, **self._fifos}
        stores |= {f"npu{n}.skip_words": store for n, store in self._skips.items()}
        stores |= {f"npu{n}.buffer_words": pair for n, pair in self._pairs.items()}
        return {name: level(store) for name, store in sorted(stores.items())}
