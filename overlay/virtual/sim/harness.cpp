// The functions that Python calls through ctypes (library.py), around the bench of bench.h.

#include "bench.h"

#define API extern "C" __attribute__((visibility("default")))

// Verilator's own ends of a run would end the Python process: they become exceptions instead.
void vl_finish(const char* file, int line, const char*) {
    throw std::runtime_error(std::string("$finish at ") + file + ":" + std::to_string(line));
}
void vl_stop(const char* file, int line, const char*) {
    throw std::runtime_error(std::string("$stop at ") + file + ":" + std::to_string(line));
}
void vl_fatal(const char* file, int line, const char*, const char* message) {
    if (told_at_close) {
        *told_at_close = message;
        return;
    }
    throw std::runtime_error(std::string(message) + " at " + file + ":" + std::to_string(line));
}

namespace {

// Stop conditions of bitloom_run, and what it returns (those that hold; 0: the cycles are used up).
enum Stop : uint32_t {
    STOP_WORDS = 1,        // the sink queue holds at least `words` stream words
    STOP_SOURCE_EMPTY = 2, // every pushed word has been taken
    STOP_SINK_CLOSED = 4,  // the sink has no credit left (full, or closed by tlast)
    STOP_INTERRUPT = 8,    // interrupt is high
    STOP_IDLE = 16,        // no stream transfer, push or register write for `idle_cycles`
    STOP_DMA = 32          // an interrupt of the DMA is high
};
const int64_t FAILED = -2; // of any call: protocol violation or a fatal message, see bitloom_message()

// How a write is put on the bus. Python fills it as an array of uint32.
struct WriteShape {
    uint32_t strobes;        // wstrb, 15 = whole word
    uint32_t address_delay;  // cycles before awvalid rises
    uint32_t data_delay;     // cycles before wvalid rises
    uint32_t response_delay; // cycles in which a waiting response is not taken
    uint32_t forgive;        // 1: this write resets the device, waiting results may vanish
};

// Interrupts of the DMA: bit 0 of mm2s, bit 1 of s2mm.
uint32_t dma_interrupts(const Model* model) {
#if DMA
    return model->top.mm2s_introut | model->top.s2mm_introut << 1;
#else
    (void)model;
    return 0;
#endif
}

template <typename Body> int64_t guarded(Model* model, Body body) {
    try {
        return body();
    } catch (const std::exception& error) {
        model->fail(error.what());
        return FAILED;
    }
}

}  // namespace

API Model* bitloom_new() {
    Model* model = new Model;
    return model;
}

API void bitloom_delete(Model* model) {
    model->close_waveform();
    try {
        model->top.final();
    } catch (const std::exception&) {
    }
    delete model;
}

// Every queue is emptied, rst is high for `cycles` cycles.
API int64_t bitloom_reset(Model* model, uint64_t cycles) {
    return guarded(model, [&] {
        model->reset(cycles);
        return int64_t(model->message.empty() ? 0 : FAILED);
    });
}

// Appends `count` stream words (low part first in `words`), lasts[i] != 0 marks tlast; lasts may be null.
API void bitloom_push(Model* model, const uint32_t* words, const uint8_t* lasts, uint64_t count) {
    const size_t before = model->source.words.size();
    model->source.words.resize(before + count);
    std::memcpy(model->source.words.data() + before, words, count * sizeof(StreamWord));
    model->source.lasts.resize(before + count, 0);
    if (lasts) std::memcpy(model->source.lasts.data() + before, lasts, count);
    model->state.progress_cycle = model->state.cycle;
}

// Takes up to `count` stream words out of the sink queue, returns how many.
API uint64_t bitloom_pop(Model* model, uint32_t* words, uint8_t* lasts, uint64_t count) {
    Queue& sink = model->sink;
    if (count > sink.size()) count = sink.size();
    if (!count) return 0;
    std::memcpy(words, sink.words.data() + sink.head, count * sizeof(StreamWord));
    std::memcpy(lasts, sink.lasts.data() + sink.head, count);
    sink.drop(count);
    return count;
}

// Forgets what the source has not sent; a word that is on the bus goes too (as when a DMA is reset).
API void bitloom_clear_source(Model* model) {
    model->source.clear();
    model->presenting = false;
}

// The sink takes `credit` stream words from now on (~0: no limit), and none after a tlast if `close_on_last`.
API void bitloom_sink(Model* model, uint64_t credit, uint32_t close_on_last) {
    model->credit = credit;
    model->close_on_last = close_on_last;
}

// Probabilities times 2^32, 0 = never, 2^32 = always.
API void bitloom_stalls(Model* model, uint64_t source, uint64_t sink, uint64_t seed) {
    model->source_stalls.threshold = source;
    model->sink_stalls.threshold = sink;
    model->source_stalls.seed(2 * seed);
    model->sink_stalls.seed(2 * seed + 1);
}

// checks: protocol rules on the model's outputs. probe: two more evaluations a cycle, which find a tvalid that
// depends on tready of the same cycle.
API void bitloom_checks(Model* model, uint32_t checks, uint32_t probe) {
    model->checks = checks;
    model->probe_ready = probe;
}

// At most `cycles` cycles; stops as soon as one condition of `stop` holds and returns those that do.
API int64_t bitloom_run(Model* model, uint64_t cycles, uint32_t stop, uint64_t words, uint64_t idle_cycles) {
    return guarded(model, [&]() -> int64_t {
        for (uint64_t i = 0;; i++) {
            if (!model->message.empty()) return FAILED;
            uint32_t hit = 0;
            if (model->sink.size() >= words) hit |= STOP_WORDS;
            if (!model->source.size()) hit |= STOP_SOURCE_EMPTY;
            if (!model->credit) hit |= STOP_SINK_CLOSED;
            if (model->top.irq) hit |= STOP_INTERRUPT;
            if (dma_interrupts(model)) hit |= STOP_DMA;
            if (model->state.cycle - model->state.progress_cycle >= idle_cycles) hit |= STOP_IDLE;
            if (hit & stop) return hit & stop;
            if (i >= cycles) return 0;
            model->step();
        }
    });
}

// AXI4-Lite write to `port`: 0 the device's registers, 1 the DMA's. Returns bresp, -1 after `limit` cycles without an
// answer, -2 on a violation.
API int64_t bitloom_write(Model* model, uint32_t port, uint32_t address, uint32_t data, const WriteShape* shape,
                          uint64_t limit) {
    return guarded(model, [&]() -> int64_t {
        LitePort& bus = model->ports[port];
        bool address_done = false, data_done = false;
        uint32_t waited = 0;
        int64_t response = -1;
        model->state.progress_cycle = model->state.cycle;
        model->forgive = shape->forgive;
        bus.awaddr = address;
        bus.wdata = data;
        bus.wstrb = shape->strobes;
        for (uint64_t cycle = 0; cycle < limit && response == -1 && model->message.empty(); cycle++) {
            bus.awvalid = !address_done && cycle >= shape->address_delay;
            bus.wvalid = !data_done && cycle >= shape->data_delay;
            bus.bready = waited >= shape->response_delay;
            model->step();
            address_done |= bus.lite.aw;
            data_done |= bus.lite.w;
            waited += bus.lite.b_waits;
            if (bus.lite.b) response = bus.lite.bresp;
        }
        bus.awvalid = bus.wvalid = bus.bready = 0;
        if (shape->forgive) { // the reset takes effect within a few cycles of the answer
            for (int i = 0; i < 4; i++) model->step();
        }
        model->forgive = false;
        return model->message.empty() ? response : FAILED;
    });
}

// AXI4-Lite read from `port`. Returns rresp and sets *data, -1 after `limit` cycles without an answer, -2 on a violation.
API int64_t bitloom_read(Model* model, uint32_t port, uint32_t address, uint32_t* data, uint32_t response_delay,
                         uint64_t limit) {
    return guarded(model, [&]() -> int64_t {
        LitePort& bus = model->ports[port];
        bool address_done = false;
        uint32_t waited = 0;
        int64_t response = -1;
        bus.araddr = address;
        for (uint64_t cycle = 0; cycle < limit && response == -1 && model->message.empty(); cycle++) {
            bus.arvalid = !address_done;
            bus.rready = waited >= response_delay;
            model->step();
            address_done |= bus.lite.ar;
            waited += bus.lite.r_waits;
            if (bus.lite.r) {
                response = bus.lite.rresp;
                *data = bus.lite.rdata;
            }
        }
        bus.arvalid = bus.rready = 0;
        return model->message.empty() ? response : FAILED;
    });
}

API uint64_t bitloom_state_size() { return sizeof(State) / sizeof(uint64_t); }

API void bitloom_state(Model* model, uint64_t* values) {
    model->state.source_queued = model->source.size();
    model->state.sink_queued = model->sink.size();
    model->state.sink_credit = model->credit;
    std::memcpy(values, &model->state, sizeof(State));
}

API uint64_t bitloom_cycles(Model* model) { return model->state.cycle; }

API uint32_t bitloom_interrupt(Model* model) { return model->top.irq; }

API uint32_t bitloom_dma_interrupts(Model* model) { return dma_interrupts(model); }

// The bytes behind the DMA's memory ports, which stay the caller's: `size` from the physical address `base` on.
// Elsewhere there is no memory (DECERR). `refused_bytes` from `refused` on answer with SLVERR.
API void bitloom_memory(Model* model, uint8_t* bytes, uint64_t base, uint64_t size, uint64_t refused,
                        uint64_t refused_bytes) {
#if DMA
    model->memory.bytes = bytes;
    model->memory.base = base;
    model->memory.size = size;
    model->memory.refused = refused;
    model->memory.refused_bytes = refused_bytes;
#else
    (void)model, (void)bytes, (void)base, (void)size, (void)refused, (void)refused_bytes;
#endif
}

// The caller has done something that counts as progress.
API void bitloom_touch(Model* model) { model->state.progress_cycle = model->state.cycle; }

// First violation or fatal message, "" where there is none.
API const char* bitloom_message(Model* model) { return model->message.c_str(); }

// Writes every signal to a file from now on, VCD or FST as the model was built. Returns 0 for VCD,
// 1 for FST, -1 in a build without trace, or FAILED.
API int64_t bitloom_waveform_open(Model* model, const char* path) {
#if TRACE
    if (model->waveform) return -1;
    model->context.traceEverOn(true);
    model->waveform = new Waveform;
    model->top.trace(model->waveform, 99);
    model->of_waveform([&] { model->waveform->open(path); });
    if (!model->message.empty()) return FAILED;
    return model->waveform->isOpen() ? VM_TRACE_FST : -1;
#else
    (void)model, (void)path;
    return -1;
#endif
}

// Returns 0, or FAILED where the end of the waveform could not be written.
API int64_t bitloom_waveform_close(Model* model) {
    return model->close_waveform() ? 0 : FAILED;
}
