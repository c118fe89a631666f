// The world around one model of `bitloom_top`: queues on both streams, stalls, protocol rules, one clock cycle.
//
//   source queue --> s_axis [bitloom_top] m_axis --> sink queue
//                            ^ s_axi: harness.cpp sets its inputs
//
// Or, with DMA, around `bitloom_system` (hls_gen/rtl/dma/system.py): memory behind the DMA's two AXI4 ports. Its streams
// are outputs then, and the queues stay empty.
//
//   memory --> m_axi_mm2s [bitloom_system] m_axi_s2mm --> memory
//                          ^ s_axi, s_axi_dma
//
// One simulated cycle is two evaluations:
//   clk = 0, all inputs applied together, eval: everything combinational settles (a tready that depends on a
//   tvalid of the same cycle is right), outputs are sampled, handshakes decided;
//   clk = 1, eval: the clock edge, with the same inputs.
// So no input ever changes at the edge, and a transfer counts in exactly the cycle in which the hardware sees it.
//
// Compile-time: STREAM_BITS (32 or 64), TRACE (0 or 1), DMA (0 or 1). No globals: any number of models live side by side.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
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

// What happened on an AXI4-Lite port in the last cycle.
struct Lite {
    bool aw, w, b, b_waits, ar, r, r_waits;
    uint32_t bresp, rresp, rdata;
};

// An AXI4-Lite port of the model.
struct LitePort {
    const char* name;
    SData &awaddr, &araddr;
    IData &wdata, &rdata;
    CData &wstrb, &bresp, &rresp;
    CData &awvalid, &awready, &wvalid, &wready, &bvalid, &bready, &arvalid, &arready, &rvalid, &rready;
    Lite lite = {};
    // accepted and not answered: addresses and data of writes, addresses of reads
    int halves_open = 0, reads_open = 0;
    void quiet() { awvalid = wvalid = bready = arvalid = rready = 0; }
    void sample() {
        lite.aw = awvalid && awready;
        lite.w = wvalid && wready;
        lite.b = bvalid && bready;
        lite.b_waits = bvalid && !bready;
        lite.ar = arvalid && arready;
        lite.r = rvalid && rready;
        lite.r_waits = rvalid && !rready;
        lite.bresp = bresp;
        lite.rresp = rresp;
        lite.rdata = rdata;
        halves_open += lite.aw + lite.w - 2 * lite.b;
        reads_open += lite.ar - lite.r;
    }
};
#define LITE_PORT(p) \
    {#p, top.p##_awaddr, top.p##_araddr, top.p##_wdata, top.p##_rdata, top.p##_wstrb, top.p##_bresp, top.p##_rresp, \
     top.p##_awvalid, top.p##_awready, top.p##_wvalid, top.p##_wready, top.p##_bvalid, top.p##_bready, \
     top.p##_arvalid, top.p##_arready, top.p##_rvalid, top.p##_rready}

// AXI responses.
const uint8_t OKAY = 0, SLVERR = 2, DECERR = 3;

// Memory behind the DMA's two AXI4 ports: bytes that belong to the caller, at physical addresses. It answers requests in
// order, each after LATENCY cycles at least.
struct Memory {
    static const uint64_t LATENCY = 20;
    struct Burst {
        uint64_t address;
        uint32_t beats;
        uint64_t due; // cycle of the first answer at the earliest
    };
    struct Answer {
        uint8_t response;
        uint64_t due;
    };
    uint8_t* bytes = nullptr;
    uint64_t base = 0, size = 0;
    uint64_t refused = 0, refused_bytes = 0; // addresses that are answered with SLVERR
    std::deque<Burst> reads, writes;         // asked for; writes wait for their words
    std::deque<std::pair<StreamWord, bool>> words;
    std::deque<Answer> answers; // of writes
    bool offers_read = false, offers_answer = false;

    uint8_t response(uint64_t address) const {
        if (address < base || address + sizeof(StreamWord) > base + size) return DECERR;
        return address >= refused && address < refused + refused_bytes ? SLVERR : OKAY;
    }
    uint8_t read(uint64_t address, StreamWord* word) const {
        const uint8_t answer = response(address);
        *word = 0;
        if (answer == OKAY) std::memcpy(word, bytes + (address - base), sizeof(StreamWord));
        return answer;
    }
    // Writes the bursts whose address and words are there. False where wlast marks another word than the last one.
    bool write(uint64_t cycle) {
        while (!writes.empty() && words.size() >= writes.front().beats) {
            const Burst burst = writes.front();
            writes.pop_front();
            uint8_t answer = OKAY;
            for (uint32_t i = 0; i < burst.beats; i++) {
                const uint64_t address = burst.address + i * sizeof(StreamWord);
                const uint8_t beat = response(address);
                if (beat == OKAY) std::memcpy(bytes + (address - base), &words.front().first, sizeof(StreamWord));
                else if (answer == OKAY) answer = beat;
                if (words.front().second != (i + 1 == burst.beats)) return false;
                words.pop_front();
            }
            answers.push_back({answer, cycle + LATENCY});
        }
        return true;
    }
    void clear() {
        reads.clear();
        writes.clear();
        words.clear();
        answers.clear();
        offers_read = offers_answer = false;
    }
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
#if DMA
    Memory memory;
    LitePort ports[2] = {LITE_PORT(s_axi), LITE_PORT(s_axi_dma)};
#else
    LitePort ports[1] = {LITE_PORT(s_axi)};
#endif
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
    void check_lite(const LitePort& port);
    void probe();
    void drive(bool sink_stall);
    void check_burst(const char* name, uint64_t address, uint32_t beats, uint32_t size, uint32_t kind);
    void look();
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
void Model::check_lite(const LitePort& port) {
    const Lite& lite = port.lite;
    const std::string name = std::string(port.name) + ": ";
    if (port.bvalid && port.halves_open < 2) violation(name + "bvalid without an accepted write");
    if (port.rvalid && port.reads_open < 1) violation(name + "rvalid without an accepted read");
    if (lite.b_waits && !port.bvalid) violation(name + "bvalid must stay high until bready, it fell");
    if (lite.b_waits && port.bvalid && port.bresp != lite.bresp)
        violation(name + "bresp must not change while it waits for bready");
    if (lite.r_waits && !port.rvalid) violation(name + "rvalid must stay high until rready, it fell");
    if (lite.r_waits && port.rvalid && (port.rdata != lite.rdata || port.rresp != lite.rresp))
        violation(name + "rdata must not change while it waits for rready, it went from " + hex(lite.rdata) + " to " +
                  hex(port.rdata));
}

#if DMA
// Inputs of the DMA's memory ports. The source's pauses are those of reads, the sink's those of writes.
void Model::drive(bool) {
    const bool read_due = !memory.reads.empty() && memory.reads.front().due <= state.cycle;
    const bool answer_due = !memory.answers.empty() && memory.answers.front().due <= state.cycle;
    top.m_axi_mm2s_arready = !source_stalls.now();
    memory.offers_read = read_due && (memory.offers_read || !source_stalls.now());
    top.m_axi_mm2s_rvalid = memory.offers_read;
    if (memory.offers_read) {
        const Memory::Burst& burst = memory.reads.front();
        StreamWord word;
        top.m_axi_mm2s_rresp = memory.read(burst.address, &word);
        top.m_axi_mm2s_rdata = word;
        top.m_axi_mm2s_rlast = burst.beats == 1;
    }
    top.m_axi_s2mm_awready = !sink_stalls.now();
    top.m_axi_s2mm_wready = !sink_stalls.now();
    memory.offers_answer = answer_due && (memory.offers_answer || !sink_stalls.now());
    top.m_axi_s2mm_bvalid = memory.offers_answer;
    if (memory.offers_answer) top.m_axi_s2mm_bresp = memory.answers.front().response;
}

// Rules of AXI4 on a request, and those of AXI3 besides.
void Model::check_burst(const char* name, uint64_t address, uint32_t beats, uint32_t size, uint32_t kind) {
    const uint64_t bytes = beats * sizeof(StreamWord);
    if (beats > 16) violation(std::string(name) + ": a burst must have at most 16 beats, got " + std::to_string(beats));
    if ((1u << size) != sizeof(StreamWord) || address % sizeof(StreamWord) || kind != 1)
        violation(std::string(name) + ": a burst must count up by whole words, got address " + hex(address) + ", size " +
                  std::to_string(size) + ", burst type " + std::to_string(kind));
    if (address >> 12 != (address + bytes - 1) >> 12)
        violation(std::string(name) + ": a burst must not cross 4 KB, got address " + hex(address));
}

// Takes what the DMA offers and gives, sampled with the clock low.
void Model::look() {
    if (top.m_axi_mm2s_arvalid && top.m_axi_mm2s_arready) {
        const uint32_t beats = top.m_axi_mm2s_arlen + 1;
        check_burst("m_axi_mm2s", top.m_axi_mm2s_araddr, beats, top.m_axi_mm2s_arsize, top.m_axi_mm2s_arburst);
        memory.reads.push_back({top.m_axi_mm2s_araddr, beats, state.cycle + Memory::LATENCY});
    }
    if (memory.offers_read && top.m_axi_mm2s_rready) {
        Memory::Burst& burst = memory.reads.front();
        burst.address += sizeof(StreamWord);
        if (!--burst.beats) memory.reads.pop_front();
        memory.offers_read = false;
    }
    if (top.m_axi_s2mm_awvalid && top.m_axi_s2mm_awready) {
        const uint32_t beats = top.m_axi_s2mm_awlen + 1;
        check_burst("m_axi_s2mm", top.m_axi_s2mm_awaddr, beats, top.m_axi_s2mm_awsize, top.m_axi_s2mm_awburst);
        memory.writes.push_back({top.m_axi_s2mm_awaddr, beats, 0});
    }
    if (top.m_axi_s2mm_wvalid && top.m_axi_s2mm_wready) {
        if (top.m_axi_s2mm_wstrb != (1u << sizeof(StreamWord)) - 1)
            violation("m_axi_s2mm: all bytes of a word must be written, got strobes " + hex(top.m_axi_s2mm_wstrb));
        memory.words.push_back({top.m_axi_s2mm_wdata, bool(top.m_axi_s2mm_wlast)});
    }
    if (memory.offers_answer && top.m_axi_s2mm_bready) {
        memory.answers.pop_front();
        memory.offers_answer = false;
    }
    if (!memory.write(state.cycle)) violation("m_axi_s2mm: wlast must mark the last word of a burst");
}
#else
// Inputs of both streams, from the queues.
void Model::drive(bool sink_stall) {
    if (!presenting && source.size()) {
        presenting = !source_stalls.now();
        if (!presenting) state.source_stalls++;
    }
    top.s_axis_tvalid = presenting;
    top.s_axis_tdata = presenting ? source.words[source.head] : 0;
    top.s_axis_tlast = presenting ? source.lasts[source.head] : 0;
    top.m_axis_tready = credit && !sink_stall;
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

// Moves words from and to the queues.
void Model::look() {
    if (top.m_axis_tvalid && top.m_axis_tready) {
        const bool last = top.m_axis_tlast;
        sink.push(top.m_axis_tdata, last);
        credit = last && close_on_last ? 0 : credit == ~0ull ? credit : credit - 1;
    }
    if (presenting && top.s_axis_tready) {
        source.drop(1);
        presenting = false;
    }
}
#endif

// One cycle. The AXI4-Lite inputs are whatever the caller has set.
void Model::step() {
    const bool sink_stall = !DMA && credit && sink_stalls.now();
    drive(sink_stall);
    top.clk = 0;
    top.eval();
    dump();

#if !DMA
    if (probe_ready) probe();
#endif
    check_stream();
    for (const LitePort& port : ports) check_lite(port);
    const bool take = top.s_axis_tvalid && top.s_axis_tready;
    const bool give = top.m_axis_tvalid && top.m_axis_tready;
    m_held = top.m_axis_tvalid && !top.m_axis_tready;
    if (m_held && sink_stall) state.sink_stalls++;
    for (LitePort& port : ports) port.sample();
    state.s_tvalid = top.s_axis_tvalid;
    state.s_tready = top.s_axis_tready;
    state.s_tdata = top.s_axis_tdata;
    state.s_tlast = top.s_axis_tlast;
    state.m_tvalid = top.m_axis_tvalid;
    state.m_tready = top.m_axis_tready;
    state.m_tdata = top.m_axis_tdata;
    state.m_tlast = top.m_axis_tlast;
    state.interrupt = top.irq;
    state.taken += take;
    state.given += give;
    state.given_lasts += give && top.m_axis_tlast;
    look();

    top.clk = 1;
    top.eval();
    dump();
    state.cycle++;
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
    for (LitePort& port : ports) port.quiet();
    top.rst = 1;
    for (uint64_t i = 0; i < cycles; i++) step();
    top.rst = 0;
    checks = kept;
    if (state.m_tvalid) violation("m_axis: tvalid must be low during reset");
    for (const LitePort& port : ports) {
        if (port.bvalid || port.rvalid)
            violation(std::string(port.name) + ": bvalid and rvalid must be low during reset");
    }
    credit = kept_credit;
    m_held = false;
    for (LitePort& port : ports) {
        port.lite = {};
        port.halves_open = port.reads_open = 0;
    }
#if DMA
    memory.clear();
#endif
    state.progress_cycle = state.cycle;
}

}  // namespace
