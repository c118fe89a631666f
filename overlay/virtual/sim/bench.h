// The world around one model of `bitloom_top`: queues on both streams, stalls, protocol rules, one clock cycle.
//
//   source queue --> s_axis [bitloom_top] m_axis --> sink queue
//                            ^ s_axi: harness.cpp sets its inputs
//
// One simulated cycle is two evaluations:
//   clk = 0, all inputs applied together, eval: everything combinational settles (a tready that depends on a
//   tvalid of the same cycle is right), outputs are sampled, handshakes decided;
//   clk = 1, eval: the clock edge, with the same inputs.
// So no input ever changes at the edge, and a transfer counts in exactly the cycle in which the hardware sees it.
//
// Compile-time: STREAM_BITS (32 or 64), TRACE (0 or 1). No globals: any number of models live side by side.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
typedef VerilatedFstC Waveform;
#elif TRACE
#include "verilated_vcd_c.h"
typedef VerilatedVcdC Waveform;
#endif

#if STREAM_BITS == 64
typedef uint64_t StreamWord;
#elif STREAM_BITS == 32
typedef uint32_t StreamWord;
#else
#error "STREAM_BITS must be 32 or 64"
#endif

namespace {

// xorshift64: one generator for each side, so that a seed means the same stalls whatever the other side does.
struct Stalls {
    uint64_t state = 1;
    uint64_t threshold = 0; // probability times 2^32
    void seed(uint64_t value) {
        value += 0x9E3779B97F4A7C15ull; // splitmix64, so that seeds 0, 1, 2... are far apart
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
        value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
        state = (value ^ (value >> 31)) | 1;
    }
    bool now() {
        if (!threshold) return false;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (state >> 32) < threshold;
    }
};

// First in, first out. The front is given back when everything, or a million words and most of all, has been taken.
struct Queue {
    std::vector<StreamWord> words;
    std::vector<uint8_t> lasts;
    size_t head = 0;
    size_t size() const { return words.size() - head; }
    void push(StreamWord word, bool last) {
        words.push_back(word);
        lasts.push_back(last);
    }
    void drop(size_t count) {
        head += count;
        if (head == words.size()) {
            clear();
        } else if (head > (1u << 20) && 2 * head > words.size()) {
            words.erase(words.begin(), words.begin() + head);
            lasts.erase(lasts.begin(), lasts.begin() + head);
            head = 0;
        }
    }
    void clear() {
        words.clear();
        lasts.clear();
        head = 0;
    }
};

// Outputs as they stood just before the last clock edge. Python reads this as an array of uint64.
struct State {
    uint64_t cycle = 0, progress_cycle = 0, taken = 0, given = 0, given_lasts = 0;
    uint64_t source_queued = 0, sink_queued = 0, sink_credit = 0, source_stalls = 0, sink_stalls = 0;
    uint64_t s_tvalid = 0, s_tready = 0, s_tdata = 0, s_tlast = 0;
    uint64_t m_tvalid = 0, m_tready = 0, m_tdata = 0, m_tlast = 0;
    uint64_t interrupt = 0;
};

// What happened on s_axi in the last cycle.
struct Lite {
    bool aw, w, b, b_waits, ar, r, r_waits;
    uint32_t bresp, rresp, rdata;
};

// A context whose models run in the thread that calls them: by default it starts a pool of threads, one for each other
// processor, with its first model.
struct OneThread : VerilatedContext {
    OneThread() { threads(1); }
};

struct Model {
    OneThread context;
    Vtop top{&context};
    Queue source, sink;
    Stalls source_stalls, sink_stalls;
    State state;
    uint64_t credit = ~0ull; // stream words that the sink still takes
    bool close_on_last = false;
    bool presenting = false; // a source word is on the bus: it stays until it is taken
    bool checks = true, forgive = false;
    bool m_held = false; // m_axis was valid and not ready in the cycle before
    bool probe_ready = false;
    Lite lite = {};
    int halves_open = 0, reads_open = 0; // accepted and not answered: addresses and data of writes, addresses of reads
    std::string message;
#if TRACE
    Waveform* waveform = nullptr;
#endif

    void fail(const std::string& what) {
        if (message.empty()) message = what + " (cycle " + std::to_string(state.cycle) + ")";
    }
    void violation(const std::string& what) {
        if (checks && !forgive) fail(what);
    }
    void dump() {
#if TRACE
        if (waveform) of_waveform([&] { waveform->dump(context.time()); });
#endif
        context.timeInc(1);
    }
    // Does something with the waveform, which ends where it can't be written (a full disk).
    template <typename Body> void of_waveform(Body body) {
        try {
            body();
        } catch (const std::exception& error) {
            fail(std::string("waveform: must be writable, got: ") + error.what());
            close_waveform();
        }
    }
    bool close_waveform();
    void check_stream();
    void check_lite();
    void probe();
    void step();
    void reset(uint64_t cycles);
};

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

// What vl_fatal is told while a waveform is closed: exceptions may not leave Verilator's destructors.
thread_local std::string* told_at_close = nullptr;

// Ends the waveform, if there is one; false where what is left of it could not be written.
bool Model::close_waveform() {
    std::string told;
#if TRACE
    told_at_close = &told;
    if (waveform) waveform->close();
    delete waveform;
    waveform = nullptr;
    told_at_close = nullptr;
#endif
    if (!told.empty()) fail("waveform: must be writable, got: " + told);
    return told.empty();
}

// Rules of AXI4-Stream on m_axis, sampled with the clock low.
void Model::check_stream() {
    if (!m_held) return;
    if (!top.m_axis_tvalid) violation("m_axis: tvalid must stay high until tready, it fell");
    else if (top.m_axis_tdata != static_cast<StreamWord>(state.m_tdata))
        violation("m_axis: tdata must not change while it waits for tready, it went from " + hex(state.m_tdata) +
                  " to " + hex(top.m_axis_tdata));
    else if (top.m_axis_tlast != state.m_tlast)
        violation("m_axis: tlast must not change while it waits for tready, it went from " +
                  std::to_string(state.m_tlast) + " to " + std::to_string(int(top.m_axis_tlast)));
}

// Rules of AXI4-Lite on the responses; `lite` still holds the cycle before.
void Model::check_lite() {
    const bool bvalid = top.s_axi_bvalid, rvalid = top.s_axi_rvalid;
    if (bvalid && halves_open < 2) violation("s_axi: bvalid without an accepted write");
    if (rvalid && reads_open < 1) violation("s_axi: rvalid without an accepted read");
    if (lite.b_waits && !bvalid) violation("s_axi: bvalid must stay high until bready, it fell");
    if (lite.b_waits && bvalid && top.s_axi_bresp != lite.bresp)
        violation("s_axi: bresp must not change while it waits for bready");
    if (lite.r_waits && !rvalid) violation("s_axi: rvalid must stay high until rready, it fell");
    if (lite.r_waits && rvalid && (top.s_axi_rdata != lite.rdata || top.s_axi_rresp != lite.rresp))
        violation("s_axi: rdata must not change while it waits for rready, it went from " + hex(lite.rdata) + " to " +
                  hex(top.s_axi_rdata));
}

// Turns tready round with the clock low: neither tvalid nor the payload may answer to it.
void Model::probe() {
    const bool valid = top.m_axis_tvalid, last = top.m_axis_tlast;
    const StreamWord data = top.m_axis_tdata;
    top.m_axis_tready = !top.m_axis_tready;
    top.eval();
    if (valid != top.m_axis_tvalid) violation("m_axis: tvalid must not depend on tready of the same cycle");
    else if (valid && (data != top.m_axis_tdata || last != top.m_axis_tlast))
        violation("m_axis: tdata and tlast must not depend on tready of the same cycle");
    top.m_axis_tready = !top.m_axis_tready;
    top.eval();
}

// One cycle. The AXI4-Lite inputs are whatever the caller has set.
void Model::step() {
    if (!presenting && source.size()) {
        presenting = !source_stalls.now();
        if (!presenting) state.source_stalls++;
    }
    const bool sink_stall = credit && sink_stalls.now();
    top.s_axis_tvalid = presenting;
    top.s_axis_tdata = presenting ? source.words[source.head] : 0;
    top.s_axis_tlast = presenting ? source.lasts[source.head] : 0;
    top.m_axis_tready = credit && !sink_stall;
    top.clk = 0;
    top.eval();
    dump();

    if (probe_ready) probe();
    check_stream();
    check_lite();
    const bool take = presenting && top.s_axis_tready;
    const bool give = top.m_axis_tvalid && top.m_axis_tready;
    m_held = top.m_axis_tvalid && !top.m_axis_tready;
    if (m_held && sink_stall) state.sink_stalls++;
    lite.aw = top.s_axi_awvalid && top.s_axi_awready;
    lite.w = top.s_axi_wvalid && top.s_axi_wready;
    lite.b = top.s_axi_bvalid && top.s_axi_bready;
    lite.b_waits = top.s_axi_bvalid && !top.s_axi_bready;
    lite.ar = top.s_axi_arvalid && top.s_axi_arready;
    lite.r = top.s_axi_rvalid && top.s_axi_rready;
    lite.r_waits = top.s_axi_rvalid && !top.s_axi_rready;
    lite.bresp = top.s_axi_bresp;
    lite.rresp = top.s_axi_rresp;
    lite.rdata = top.s_axi_rdata;
    halves_open += lite.aw + lite.w - 2 * lite.b;
    reads_open += lite.ar - lite.r;
    state.s_tvalid = presenting;
    state.s_tready = top.s_axis_tready;
    state.s_tdata = top.s_axis_tdata;
    state.s_tlast = top.s_axis_tlast;
    state.m_tvalid = top.m_axis_tvalid;
    state.m_tready = top.m_axis_tready;
    state.m_tdata = top.m_axis_tdata;
    state.m_tlast = top.m_axis_tlast;
    state.interrupt = top.irq;
    if (give) {
        const bool last = top.m_axis_tlast;
        sink.push(top.m_axis_tdata, last);
        state.given++;
        state.given_lasts += last;
        credit = last && close_on_last ? 0 : credit == ~0ull ? credit : credit - 1;
    }

    top.clk = 1;
    top.eval();
    dump();
    state.cycle++;
    if (take) {
        source.drop(1);
        presenting = false;
        state.taken++;
    }
    if (take || give) state.progress_cycle = state.cycle;
}

void Model::reset(uint64_t cycles) {
    const bool kept = checks;
    const uint64_t kept_credit = credit;
    checks = false;
    credit = 0;
    source.clear();
    sink.clear();
    presenting = false;
    top.s_axi_awvalid = top.s_axi_wvalid = top.s_axi_bready = top.s_axi_arvalid = top.s_axi_rready = 0;
    top.rst = 1;
    for (uint64_t i = 0; i < cycles; i++) step();
    top.rst = 0;
    checks = kept;
    if (state.m_tvalid) violation("m_axis: tvalid must be low during reset");
    if (top.s_axi_bvalid || top.s_axi_rvalid) violation("s_axi: bvalid and rvalid must be low during reset");
    credit = kept_credit;
    m_held = false;
    lite = {};
    halves_open = reads_open = 0;
    state.progress_cycle = state.cycle;
}

}  // namespace
