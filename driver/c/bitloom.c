/* The device: registers, AXI DMA, loads, frames. What bitloom.driver does in Python, in the same order; see there for
   the reasons (device.py: order of resets; link.py: what is safe with the DMA; owner.py: two users; waiting.py).

       memory of the platform, while a program is loaded: [LOAD packets           ]
       while frames are computed:                         [send][receive][send][receive]
 */
#include <stdio.h>
#include <string.h>

#include "bitloom_parts.h"

/* The AXI DMA in simple mode (AMD PG021); a bit that only AMD's core has. */
enum {
    SEND = BITLOOM_DMA_MM2S,
    RECEIVE = BITLOOM_DMA_S2MM, /* the channels' registers */
    DMA_SCATTER_GATHER = 1 << 3
};
static const struct {
    uint32_t bit;
    const char *meaning;
} DMA_ERRORS[] = {
    {BITLOOM_DMA_STATUS_INTERNAL, "internal error (length 0, or a longer packet than the receive buffer)"},
    {BITLOOM_DMA_STATUS_SLAVE, "slave error (memory refused the access)"},
    {BITLOOM_DMA_STATUS_DECODE, "decode error (no memory at the address)"},
};
enum {
    LOOKS = 8,            /* looks at the counters within a time-out */
    LOOKS_FIRST = 32,     /* looks before an interrupt is waited for: a short transfer has ended by then */
    LOOK_AGAIN_US = 1000, /* between looks where no interrupt has come yet, or one has */
    DMA_PATIENCE_US = 1000000,
    BATCH_BYTES = 1 << 20, /* of a batch at most, in either direction: enough to hide the start of a transfer */
    ROUND_BYTES = 1 << 26, /* of the maps of a round at most, which wait between programs */
    ALIGNED_WORDS = 32,    /* buffers share no cache line */
    MOST_DEPTH = 1 << BITLOOM_HEADER_LENGTH_BITS,
    MOST_ERRORS = 32
};

typedef struct memory {
    unsigned npu, id;
    uint32_t depth, row_words; /* row_words: of a row in the stream, padding to the stream word included */
    char name[32];
} memory;

typedef struct error_text {
    uint32_t code;
    char name[32], rule[128];
} error_text;

struct bitloom_device {
    bitloom_platform platform;
    /* of the manifest */
    char design[BITLOOM_NAME_LENGTH + 1], digest[BITLOOM_DIGEST_LENGTH + 1];
    unsigned npus, stream_bits;
    uint32_t frame_word_bits;
    bool takes_weights;
    memory *memories;
    size_t memory_count, error_count;
    error_text errors[MOST_ERRORS];
    const bitloom_program *network; /* what is loaded */
    /* the program whose turn it is, and how its frames are cut: `laid_out` is the one of which that is known */
    const bitloom_program *program, *laid_out;
    bitloom_scratch scratch;
    bitloom_held *maps; /* of the network, while frames are computed */
    uint32_t limit_words;                                          /* of a transfer */
    size_t block_words, packets, batch, half_words, receive_words; /* receive_words: where results begin in a half */
    uint32_t *ends; /* (packets,) words of a block at which each of its packets ends */
    uint32_t owner, signature, sent;
    bool clean, heard; /* clean: no transfer was cut short; heard: an interrupt has come before */
    /* the transfers under way */
    size_t send_from, send_at, send_words;
    uint64_t started[2]; /* addresses with which the channels began last */
    uint32_t receive_bytes;
    /* counters: CYCLES, FRAMES, WORDS_IN, WORDS_OUT, beats of each NPU */
    uint32_t seen[4 + BITLOOM_MOST_NPUS];
    uint64_t totals[4 + BITLOOM_MOST_NPUS];
};

static unsigned stream_words(const bitloom_device *d) { return d->stream_bits / 32; }

static bitloom_status failed(const bitloom_device *d, bitloom_error *error, bitloom_status status, const char *text) {
    return bitloom_fail(error, status, d->platform.name, "%s", text);
}

/* Registers */

static bitloom_status get(bitloom_device *d, bitloom_unit unit, uint32_t offset, uint32_t *value,
                          bitloom_error *error) {
    const int code = d->platform.read(d->platform.context, unit, offset, value);
    if (!code) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_BUS, d->platform.name, "register 0x%03lX of the %s must be readable, got %d",
                        (unsigned long)offset, unit == BITLOOM_CORE ? "core" : "DMA", code);
}

static bitloom_status put(bitloom_device *d, bitloom_unit unit, uint32_t offset, uint32_t value, bitloom_error *error) {
    const int code = d->platform.write(d->platform.context, unit, offset, value);
    if (!code) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_BUS, d->platform.name, "register 0x%03lX of the %s must be writable, got %d",
                        (unsigned long)offset, unit == BITLOOM_CORE ? "core" : "DMA", code);
}

static bitloom_status set_control(bitloom_device *d, uint32_t bits, bitloom_error *error) {
    uint32_t value;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_CONTROL, &value, error));
    return put(d, BITLOOM_CORE, BITLOOM_REG_CONTROL, value | bits, error);
}

static bitloom_status read_digest(bitloom_device *d, char text[33], bitloom_error *error) {
    unsigned i;
    for (i = 0; i < 4; i++) {
        uint32_t value;
        TRY(get(d, BITLOOM_CORE, BITLOOM_REG_DIGEST_0 + 4 * i, &value, error));
        sprintf(text + 8 * i, "%08lx", (unsigned long)value);
    }
    return BITLOOM_OK;
}

/* Counters, which wrap at 2^32 */

static bitloom_status look_at_counters(bitloom_device *d, bool count, bool *moved, bitloom_error *error) {
    static const uint32_t OFFSETS[] = {BITLOOM_REG_CYCLES, BITLOOM_REG_FRAMES, BITLOOM_REG_WORDS_IN,
                                       BITLOOM_REG_WORDS_OUT};
    unsigned i;
    *moved = false;
    for (i = 0; i < 4 + d->npus; i++) {
        uint32_t value, difference;
        TRY(get(d, BITLOOM_CORE, i < 4 ? OFFSETS[i] : BITLOOM_REG_NPU_BEATS(i - 4), &value, error));
        difference = value - d->seen[i];
        d->seen[i] = value;
        if (count) d->totals[i] += difference;
        if (difference && i > 0) *moved = true; /* all but cycles move only while the device gets on */
    }
    return BITLOOM_OK;
}

static bitloom_status rebase_counters(bitloom_device *d, bitloom_error *error) {
    bool moved;
    return look_at_counters(d, false, &moved, error);
}

/* Errors of the device */

static const memory *find_memory(const bitloom_device *d, unsigned npu, unsigned id) {
    size_t i;
    for (i = 0; i < d->memory_count; i++)
        if (d->memories[i].npu == npu && d->memories[i].id == id) return d->memories + i;
    return NULL;
}

/* A field of a header's word. */
#define FIELD(word, name) ((word) >> BITLOOM_HEADER_##name##_LSB & ((1ul << BITLOOM_HEADER_##name##_BITS) - 1))

/* A header in words, as hls_gen/design/packet_text.py has them. */
static void describe(const bitloom_device *d, const uint32_t word[3], char *out, size_t size) {
    const unsigned long kind = FIELD(word[0], KIND), npu = FIELD(word[0], NPU), id = FIELD(word[0], MEMORY);
    const unsigned long rows = FIELD(word[2], LENGTH), number = FIELD(word[2], NUMBER), last = FIELD(word[0], LAST);
    const unsigned long row = FIELD(word[1], ADDRESS), raw = word[0];
    const memory *known = find_memory(d, (unsigned)npu, (unsigned)id);
    if (FIELD(word[0], MAGIC) != BITLOOM_MAGIC)
        snprintf(out, size, "no header [0x%08lX, 0x%08lX, 0x%08lX]", raw, (unsigned long)word[1],
                 (unsigned long)word[2]);
    else if (kind == BITLOOM_FRAME)
        snprintf(out, size, "FRAME %lu of %lu input words for parameters 0x%08lX%s (header 0x%08lX)", number, rows,
                 (unsigned long)word[1], last ? ", last" : "", raw);
    else if (kind == BITLOOM_WEIGHTS && d->takes_weights)
        snprintf(out, size,
                 "WEIGHTS %lu of npu %lu, streamed layer %lu, %lu rows from row %lu, ahead %lu%s (header 0x%08lX)",
                 number, npu, (unsigned long)FIELD(word[1], LAYER), rows, row, id, last ? "" : ", more to come", raw);
    else if (kind != BITLOOM_LOAD) snprintf(out, size, "kind %lu (header 0x%08lX)", kind, raw);
    else
        snprintf(out, size, "LOAD of npu %lu memory %lu%s%s%s, %lu rows from row %lu (header 0x%08lX)", npu, id,
                 known ? " (" : "", known ? known->name : "", known ? ")" : "", rows, row, raw);
}

/* BITLOOM_PACKET if the device has refused a packet. */
static bitloom_status check_device(bitloom_device *d, bitloom_error *error) {
    uint32_t status, code, word[3];
    const char *name = "UNKNOWN", *rule = "the manifest knows the error code";
    char text[200];
    size_t i;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_STATUS, &status, error));
    if (!(status & BITLOOM_STATUS_ERROR)) return BITLOOM_OK;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_ERROR_HEADER, word, error));
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_ERROR_ADDRESS, word + 1, error));
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_ERROR_LENGTH, word + 2, error));
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_ERROR_CODE, &code, error));
    for (i = 0; i < d->error_count; i++)
        if (d->errors[i].code == code) {
            name = d->errors[i].name;
            rule = d->errors[i].rule;
        }
    describe(d, word, text, sizeof text);
    bitloom_fail(error, BITLOOM_PACKET, d->platform.name, "%s: the device needs that %s, got %s", name, rule, text);
    if (error) error->code = code;
    return BITLOOM_PACKET;
}

/* The end of a wait in which nothing has moved: what was waited for, and where the device stands. */
static bitloom_status give_up(bitloom_device *d, const char *what, bitloom_error *error) {
    char text[BITLOOM_TEXT];
    uint32_t value;
    unsigned n;
    int used =
        snprintf(text, sizeof text, "%s, got no progress for %lu ms", what, (unsigned long)d->platform.timeout_ms);
    for (n = 0; n <= d->npus && used >= 0 && (size_t)used < sizeof text; n++) {
        const uint32_t offset = n ? BITLOOM_REG_NPU_STATE(n - 1) : BITLOOM_REG_STATUS;
        if (get(d, BITLOOM_CORE, offset, &value, NULL)) break;
        used +=
            n ? snprintf(text + used, sizeof text - (size_t)used, ", NPU%u_STATE 0x%08lX", n - 1, (unsigned long)value)
              : snprintf(text + used, sizeof text - (size_t)used, "; STATUS 0x%08lX", (unsigned long)value);
    }
    return failed(d, error, BITLOOM_TIMEOUT, text);
}

/* Waits: `look` is called again and again while one lasts. */

typedef struct watch {
    uint64_t next, end;
    const char *what;
    bool count;
} watch;

static uint64_t timeout_us(const bitloom_device *d) { return (uint64_t)d->platform.timeout_ms * 1000; }
static uint64_t now(const bitloom_device *d) { return d->platform.now_us(d->platform.context); }

static watch begin_watch(const bitloom_device *d, const char *what, bool count) {
    watch w;
    w.end = now(d) + timeout_us(d);
    w.next = now(d) + timeout_us(d) / LOOKS;
    w.what = what;
    w.count = count;
    return w;
}

static bitloom_status look(bitloom_device *d, watch *w, bitloom_error *error) {
    const uint64_t time = now(d);
    TRY(check_device(d, error));
    if (time > w->next) {
        bool moved;
        w->next = time + timeout_us(d) / LOOKS;
        TRY(look_at_counters(d, w->count, &moved, error));
        if (moved) w->end = time + timeout_us(d);
    }
    return time > w->end ? give_up(d, w->what, error) : BITLOOM_OK;
}

/* The DMA */

static bitloom_status dma_until(bitloom_device *d, uint32_t register_, uint32_t bit, const char *what,
                                bitloom_error *error) {
    const uint64_t end = now(d) + DMA_PATIENCE_US;
    uint32_t status[2];
    for (;;) {
        const bool late = now(d) > end;
        TRY(get(d, BITLOOM_DMA, SEND + register_, status, error));
        TRY(get(d, BITLOOM_DMA, RECEIVE + register_, status + 1, error));
        if (!((status[0] | status[1]) & bit)) return BITLOOM_OK;
        if (late)
            return bitloom_fail(error, BITLOOM_TRANSFER, d->platform.name,
                                "the DMA must %s within a second, got 0x%08lX, 0x%08lX", what, (unsigned long)status[0],
                                (unsigned long)status[1]);
    }
}

/* Abort both channels: halted, empty, no errors. */
static bitloom_status dma_reset(bitloom_device *d, bitloom_error *error) {
    TRY(put(d, BITLOOM_DMA, SEND + BITLOOM_DMA_REG_CONTROL, BITLOOM_DMA_CONTROL_RESET, error));
    return dma_until(d, BITLOOM_DMA_REG_CONTROL, BITLOOM_DMA_CONTROL_RESET, "end its reset", error);
}

static bitloom_status dma_start(bitloom_device *d, bitloom_error *error) {
    const uint32_t interrupts =
        d->platform.wait ? BITLOOM_DMA_CONTROL_DONE_IRQ | BITLOOM_DMA_CONTROL_ERROR_IRQ : 0;
    uint32_t status;
    TRY(get(d, BITLOOM_DMA, SEND + BITLOOM_DMA_REG_STATUS, &status, error));
    if (status & DMA_SCATTER_GATHER)
        return failed(d, error, BITLOOM_MISMATCH, "the DMA must be in simple mode, got scatter-gather");
    TRY(put(d, BITLOOM_DMA, SEND + BITLOOM_DMA_REG_CONTROL, BITLOOM_DMA_CONTROL_RUN, error));
    TRY(put(d, BITLOOM_DMA, RECEIVE + BITLOOM_DMA_REG_CONTROL, BITLOOM_DMA_CONTROL_RUN | interrupts, error));
    return dma_until(d, BITLOOM_DMA_REG_STATUS, BITLOOM_DMA_STATUS_HALTED, "run after its reset", error);
}

/* Start a transfer of words from word `first` of the platform's memory on. */
static bitloom_status dma_transfer(bitloom_device *d, uint32_t channel, size_t first, size_t words,
                                   bitloom_error *error) {
    const uint64_t address = d->platform.address + 4 * (uint64_t)first;
    d->started[channel == RECEIVE] = address;
    /* the interrupt of a transfer that was polled */
    TRY(put(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_STATUS, BITLOOM_DMA_STATUS_DONE_IRQ, error));
    TRY(put(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_ADDRESS, (uint32_t)address, error));
    TRY(put(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_ADDRESS_MSB, (uint32_t)(address >> 32), error));
    return put(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_LENGTH, (uint32_t)(4 * words), error);
}

static bitloom_status dma_idle(bitloom_device *d, uint32_t channel, bool *idle, bitloom_error *error) {
    uint32_t status;
    unsigned i;
    TRY(get(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_STATUS, &status, error));
    for (i = 0; i < sizeof DMA_ERRORS / sizeof *DMA_ERRORS; i++)
        if (status & DMA_ERRORS[i].bit)
            return bitloom_fail(error, BITLOOM_TRANSFER, d->platform.name, "the %s must end without error, got %s",
                                channel == SEND ? "send" : "receive", DMA_ERRORS[i].meaning);
    *idle = (status & BITLOOM_DMA_STATUS_IDLE) != 0;
    return BITLOOM_OK;
}

/* Whether a transfer of ours may be running: a channel holds our address and has not ended the transfer. */
static bool dma_busy(bitloom_device *d) {
    unsigned i;
    for (i = 0; i < 2; i++) {
        const uint32_t channel = i ? RECEIVE : SEND;
        uint32_t address, status;
        if (!d->started[i] || get(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_ADDRESS, &address, NULL) ||
            get(d, BITLOOM_DMA, channel + BITLOOM_DMA_REG_STATUS, &status, NULL))
            continue;
        if (address == (uint32_t)d->started[i] && !(status & (BITLOOM_DMA_STATUS_HALTED | BITLOOM_DMA_STATUS_IDLE)))
            return true;
    }
    return false;
}

static bitloom_status flush(bitloom_device *d, size_t first, size_t words, bitloom_error *error) {
    if (!d->platform.flush || !d->platform.flush(d->platform.context, 4 * first, 4 * words)) return BITLOOM_OK;
    return failed(d, error, BITLOOM_BUS, "the memory must be flushed, got a failure");
}

/* Begin the next transfer of blocks: up to the last packet that ends within the limit. */
static bitloom_status send_next(bitloom_device *d, bitloom_error *error) {
    size_t end = d->send_words;
    const size_t begin = d->send_at;
    if (d->send_words > d->limit_words && end - begin > d->limit_words) {
        const size_t most = begin + d->limit_words, frame = most / d->block_words * d->block_words;
        size_t k = d->packets;
        while (k && frame + d->ends[k - 1] > most) k--;
        end = frame + (k ? d->ends[k - 1] : 0);
    }
    d->send_at = end;
    return dma_transfer(d, SEND, d->send_from + begin, end - begin, error);
}

/* Whether all sends and the receive have ended; begins the next send. */
static bitloom_status ended(bitloom_device *d, bool *all, bitloom_error *error) {
    bool received, sent;
    TRY(dma_idle(d, RECEIVE, &received, error));
    TRY(dma_idle(d, SEND, &sent, error));
    *all = received && sent && d->send_at == d->send_words;
    return sent && d->send_at < d->send_words ? send_next(d, error) : BITLOOM_OK;
}

/* Reset */

static bitloom_status soft_reset(bitloom_device *d, bitloom_error *error) {
    const uint64_t end = now(d) + timeout_us(d);
    uint32_t value;
    TRY(set_control(d, BITLOOM_CONTROL_SOFT_RESET, error));
    for (;;) {
        const bool late = now(d) > end;
        TRY(get(d, BITLOOM_CORE, BITLOOM_REG_CONTROL, &value, error));
        if (!(value & BITLOOM_CONTROL_SOFT_RESET)) return BITLOOM_OK;
        if (late) return give_up(d, "a soft reset must end", error);
    }
}

/* Abort everything; the core is then as after power-up, and waits for LOADs. */
static bitloom_status restart(bitloom_device *d, bitloom_error *error) {
    uint32_t status;
    d->owner = 0;
    d->clean = false;
    TRY(soft_reset(d, error)); /* the core gives nothing any more */
    TRY(dma_reset(d, error));  /* nothing comes any more */
    TRY(soft_reset(d, error)); /* whatever half packet came in between is forgotten */
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_STATUS, &status, error));
    if (status & BITLOOM_STATUS_ERROR) return give_up(d, "ERROR must be 0 after a soft reset", error);
    TRY(dma_start(d, error));
    TRY(set_control(d, BITLOOM_CONTROL_START, error));
    d->clean = true;
    return BITLOOM_OK;
}

/* Owner */

static bitloom_status refuse(bitloom_device *d, const char *wanted, const char *other, const char *remedy,
                             bitloom_error *error) {
    return bitloom_fail(error, BITLOOM_TAKEN, d->platform.name, "the device must hold %s, got %s: %s", wanted, other,
                        remedy);
}

/* BITLOOM_TAKEN unless the device is as we left it. */
static bitloom_status check_owner(bitloom_device *d, bitloom_error *error) {
    char wanted[160], other[160], digest[33];
    uint32_t value, ident, status;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_OWNER, &value, error));
    if (value == d->owner) return BITLOOM_OK;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_IDENT, &ident, error));
    TRY(read_digest(d, digest, error));
    if (ident != BITLOOM_IDENT || strncmp(digest, d->digest, 32) != 0) {
        snprintf(wanted, sizeof wanted, "design %s (%.32s)", d->design, d->digest);
        snprintf(other, sizeof other, "%s (%s)", ident == BITLOOM_IDENT ? "another design" : "no design of bitloom",
                 digest);
        return refuse(d, wanted, other, "download it again, and load the program", error);
    }
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_STATUS, &status, error));
    strcpy(other, "none: somebody has reset it");
    if (status & BITLOOM_STATUS_LOADED) {
        TRY(get(d, BITLOOM_CORE, BITLOOM_REG_SIGNATURE, &value, error));
        snprintf(other, sizeof other, "another program (parameters 0x%08lX), loaded by somebody else",
                 (unsigned long)value);
    }
    strcpy(wanted, "no program yet");
    if (d->owner)
        snprintf(wanted, sizeof wanted, "program %s (parameters 0x%08lX)", d->program ? d->program->name : "?",
                 (unsigned long)d->signature);
    return refuse(d, wanted, other, "load the program again", error);
}

/* Write our number to the device, in which our parameters have just arrived. */
static bitloom_status claim(bitloom_device *d, const bitloom_program *program, bitloom_error *error) {
    const bitloom_platform *p = &d->platform;
    const uint64_t time = now(d);
    const uint32_t number = p->random ? p->random(p->context) : (uint32_t)(time ^ time >> 16 ^ time >> 32);
    uint32_t value;
    d->sent = 0;
    d->owner = 1 + number % ((1u << BITLOOM_OWNER_BITS) - 1);
    d->program = program; /* for messages */
    TRY(put(d, BITLOOM_CORE, BITLOOM_REG_OWNER, d->owner, error));
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_SIGNATURE, &value, error)); /* after the write: a load before shows here */
    TRY(check_owner(d, error));
    if (value == d->signature) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_TRANSFER, p->name,
                        "parameters of %s must arrive with signature 0x%08lX, got 0x%08lX", program->name,
                        (unsigned long)d->signature, (unsigned long)value);
}

/* Whatever stops transfers half-way leaves the device unclean and the DMA halted. If somebody else has taken it, that
 * is the error to be told, and an idle DMA is left alone. */
static bitloom_status stopped(bitloom_device *d, bitloom_status status, bitloom_error *error) {
    bitloom_error taken;
    bool others;
    if (!status) {
        d->clean = true;
        return status;
    }
    others = check_owner(d, &taken) == BITLOOM_TAKEN;
    if (!others || dma_busy(d)) dma_reset(d, NULL);
    if (!others) return status;
    if (error) *error = taken;
    return BITLOOM_TAKEN;
}

/* Packets */

typedef struct packet {
    uint32_t word[3];
    const memory *target;
    uint32_t rows, first_row;
    bool last;
    const uint8_t *payload; /* NULL: zeros */
} packet;

/* The packet at a position of a run of packets, which moves behind it; checked as the device checks it. */
static bitloom_status next_packet(const bitloom_device *d, const bitloom_program *program, unsigned array,
                                  size_t *position, size_t end, unsigned long number, packet *out,
                                  bitloom_error *error) {
    const uint32_t kind = array == BITLOOM_PARAMETERS ? BITLOOM_LOAD : BITLOOM_WEIGHTS;
    const uint8_t *words = program->arrays[array].data + 4 * *position;
    const char *name = program->name;
    unsigned npu, i;
    uint64_t size;
    if (end - *position < BITLOOM_HEADER_WORDS)
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: must begin with a header, got %lu words", number,
                            (unsigned long)(end - *position));
    for (i = 0; i < 3; i++) out->word[i] = bitloom_u32(words + 4 * i);
    if (FIELD(out->word[0], MAGIC) != BITLOOM_MAGIC ||
        bitloom_u32(words + 12) != (uint32_t)~(out->word[0] ^ out->word[1] ^ out->word[2]))
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: must begin with a header, got 0x%08lX", number,
                            (unsigned long)out->word[0]);
    if (FIELD(out->word[0], KIND) != kind || (kind == BITLOOM_WEIGHTS && !d->takes_weights))
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: kind must be %s, got %lu", number,
                            kind == BITLOOM_LOAD ? "LOAD" : "WEIGHTS, which the design must take",
                            (unsigned long)FIELD(out->word[0], KIND));
    npu = (unsigned)FIELD(out->word[0], NPU);
    if (npu >= d->npus)
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: npu must be 0..%u, got %u", number, d->npus - 1,
                            npu);
    if (kind == BITLOOM_LOAD && (FIELD(out->word[1], LAYER) || FIELD(out->word[2], NUMBER)))
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: layer and number must be 0, got others", number);
    out->target = NULL;
    for (i = 0; i < d->memory_count; i++)
        if (d->memories[i].npu == npu && (kind == BITLOOM_LOAD ? d->memories[i].id == FIELD(out->word[0], MEMORY)
                                                               : !strcmp(d->memories[i].name, "kernels")))
            out->target = d->memories + i;
    if (!out->target)
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: npu %u must have the memory, got id %lu", number,
                            npu, (unsigned long)FIELD(out->word[0], MEMORY));
    out->rows = (uint32_t)FIELD(out->word[2], LENGTH);
    out->first_row = (uint32_t)FIELD(out->word[1], ADDRESS);
    out->last = FIELD(out->word[0], LAST) != 0;
    if (out->rows < 1 || (uint64_t)out->first_row + out->rows > out->target->depth)
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "packet %lu: memory %s ends at row %lu, got %lu rows from row %lu", number,
                            out->target->name, (unsigned long)out->target->depth, (unsigned long)out->rows,
                            (unsigned long)out->first_row);
    size = (uint64_t)out->rows * out->target->row_words;
    if (size > end - *position - BITLOOM_HEADER_WORDS)
        return bitloom_fail(error, BITLOOM_INVALID, name, "packet %lu: must have %.0f payload words, got %lu", number,
                            (double)size, (unsigned long)(end - *position - BITLOOM_HEADER_WORDS));
    out->payload = words + 4 * BITLOOM_HEADER_WORDS;
    *position += BITLOOM_HEADER_WORDS + (size_t)size;
    return BITLOOM_OK;
}

static void write_header(volatile uint32_t *out, uint32_t word0, uint32_t word1, uint32_t word2) {
    out[0] = word0;
    out[1] = word1;
    out[2] = word2;
    out[3] = ~(word0 ^ word1 ^ word2);
}

/* Rows of a packet that fit `limit` words with its header; an error where none does. */
static bitloom_status rows_of_piece(const packet *p, size_t limit, const char *name, uint32_t *rows,
                                    bitloom_error *error) {
    *rows = limit < BITLOOM_HEADER_WORDS ? 0 : (uint32_t)((limit - BITLOOM_HEADER_WORDS) / p->target->row_words);
    if (*rows) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_INVALID, name,
                        "a row of memory %s with its header must fit a transfer of %lu words, got %lu", p->target->name,
                        (unsigned long)limit, (unsigned long)(BITLOOM_HEADER_WORDS + p->target->row_words));
}

/* Write `rows` rows of a packet, from row `done` of it on, as a packet of its own. */
static void write_piece(const packet *p, uint32_t done, uint32_t rows, uint32_t number, volatile uint32_t *out) {
    const size_t words = (size_t)rows * p->target->row_words;
    const uint8_t *payload = p->payload ? p->payload + 4 * (size_t)done * p->target->row_words : NULL;
    const uint32_t last = 1u << BITLOOM_HEADER_LAST_LSB;
    const uint32_t word0 = (p->word[0] & ~last) | (p->last && done + rows == p->rows ? last : 0);
    size_t i;
    write_header(out, word0, p->word[1] + done,
                 rows << BITLOOM_HEADER_LENGTH_LSB | (number & 0xFF) << BITLOOM_HEADER_NUMBER_LSB);
    for (i = 0; i < words; i++) out[BITLOOM_HEADER_WORDS + i] = payload ? bitloom_u32(payload + 4 * i) : 0;
}

/* Loads: packets go into the platform's memory until it is full, or the DMA's limit is reached. */

typedef struct loading {
    const bitloom_program *program;
    size_t room, used;
    uint32_t words; /* stream words in all, modulo 2^32 */
} loading;

static bitloom_status send_loads(bitloom_device *d, loading *l, bitloom_error *error) {
    char what[128];
    watch w;
    bool idle = false;
    if (!l->used) return BITLOOM_OK;
    TRY(flush(d, 0, l->used, error));
    TRY(rebase_counters(d, error));
    TRY(dma_transfer(d, SEND, 0, l->used, error));
    snprintf(what, sizeof what, "%s: parameters must be taken", l->program->name);
    w = begin_watch(d, what, false);
    for (;;) {
        TRY(dma_idle(d, SEND, &idle, error));
        if (idle) break;
        TRY(look(d, &w, error));
    }
    l->words += (uint32_t)(l->used / stream_words(d));
    l->used = 0;
    return BITLOOM_OK;
}

static bitloom_status load_packet(bitloom_device *d, loading *l, const packet *p, bitloom_error *error) {
    uint32_t done, most, rows;
    TRY(rows_of_piece(p, l->room, l->program->name, &most, error));
    for (done = 0; done < p->rows; done += rows) {
        volatile uint32_t *out;
        size_t words, i;
        rows = p->rows - done < most ? p->rows - done : most;
        words = BITLOOM_HEADER_WORDS + (size_t)rows * p->target->row_words;
        if (words > l->room - l->used) TRY(send_loads(d, l, error));
        out = d->platform.memory + l->used;
        write_piece(p, done, rows, 0, out);
        for (i = BITLOOM_HEADER_WORDS - 1; i < words; i++) {
            const uint32_t carry = d->signature >> 31 ? BITLOOM_SIGNATURE_POLYNOMIAL : 0;
            d->signature = d->signature << 1 ^ carry ^ out[i];
        }
        l->used += words;
    }
    return BITLOOM_OK;
}

/* Zeros for all rows that the program leaves as they are: results depend on the program alone. */
static bitloom_status load_zeros(bitloom_device *d, loading *l, uint8_t *written, bitloom_error *error) {
    const size_t end = l->program->arrays[BITLOOM_PARAMETERS].count;
    size_t m;
    for (m = 0; m < d->memory_count; m++) {
        const memory *target = d->memories + m;
        size_t position = 0;
        unsigned long number;
        uint32_t row;
        packet p;
        memset(written, 0, target->depth);
        for (number = 0; position < end; number++) {
            TRY(next_packet(d, l->program, BITLOOM_PARAMETERS, &position, end, number, &p, error));
            if (p.target == target) memset(written + p.first_row, 1, p.rows);
        }
        for (row = 0; row < target->depth; row++) {
            const uint32_t first = row;
            while (row < target->depth && !written[row]) row++;
            if (row == first) continue;
            p.word[0] = (uint32_t)BITLOOM_MAGIC << BITLOOM_HEADER_MAGIC_LSB | target->npu << BITLOOM_HEADER_NPU_LSB |
                        target->id << BITLOOM_HEADER_MEMORY_LSB | BITLOOM_LOAD << BITLOOM_HEADER_KIND_LSB;
            p.word[1] = first;
            p.target = target;
            p.rows = row - first;
            p.last = false;
            p.payload = NULL;
            TRY(load_packet(d, l, &p, error));
        }
    }
    return BITLOOM_OK;
}

static bitloom_status load_all(bitloom_device *d, const bitloom_program *program, uint8_t *written,
                               bitloom_error *error) {
    const size_t end = program->arrays[BITLOOM_PARAMETERS].count, memory_words = d->platform.memory_bytes / 4;
    loading l;
    size_t position = 0;
    unsigned long number;
    uint32_t before, value, status;
    char what[160];
    watch w;
    packet p;
    l.program = program;
    l.room = memory_words < d->limit_words ? memory_words : d->limit_words;
    l.used = l.words = 0;
    d->signature = BITLOOM_SIGNATURE_START;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_WORDS_IN, &before, error));
    TRY(load_zeros(d, &l, written, error));
    for (number = 0; position < end; number++) {
        TRY(next_packet(d, program, BITLOOM_PARAMETERS, &position, end, number, &p, error));
        TRY(load_packet(d, &l, &p, error));
    }
    TRY(send_loads(d, &l, error));
    snprintf(what, sizeof what, "%s: %lu stream words must be taken and set LOADED", program->name,
             (unsigned long)l.words);
    w = begin_watch(d, what, false);
    for (;;) {
        TRY(get(d, BITLOOM_CORE, BITLOOM_REG_WORDS_IN, &value, error));
        TRY(get(d, BITLOOM_CORE, BITLOOM_REG_STATUS, &status, error));
        if (value == before + l.words && status & BITLOOM_STATUS_LOADED) break;
        TRY(look(d, &w, error));
    }
    TRY(check_device(d, error));
    return claim(d, program, error);
}

/* Reset, send the parameters and see them arrive. */
static bitloom_status send_parameters(bitloom_device *d, const bitloom_program *program, bitloom_error *error) {
    bitloom_status status;
    uint32_t deepest = 0;
    uint8_t *written;
    size_t i;
    for (i = 0; i < d->memory_count; i++)
        if (d->memories[i].depth > deepest) deepest = d->memories[i].depth;
    written = bitloom_allocate(&d->platform.heap, deepest, 1);
    if (!written)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, program->name, "loading needs %lu bytes, got no memory",
                            (unsigned long)deepest);
    status = restart(d, error);
    if (!status) {
        d->clean = false;
        status = stopped(d, load_all(d, program, written, error), error);
    }
    bitloom_release(&d->platform.heap, written);
    return status;
}

/* Frames */

/* Pieces of the WEIGHTS packets of a block, from word `position` of the program's to `end`: measured, if `out` is NULL,
   or written there, numbered from `number` on. `used` words and `count` packets stand before them in the block. */
static bitloom_status weights(const bitloom_device *d, const bitloom_program *program, size_t position, size_t end,
                              volatile uint32_t *out, uint32_t number, size_t *used, size_t *count, uint32_t *ends,
                              bitloom_error *error) {
    unsigned long in_order;
    for (in_order = 0; position < end; in_order++) {
        uint32_t done, most, rows;
        packet p;
        TRY(next_packet(d, program, BITLOOM_WEIGHTS_ARRAY, &position, end, in_order, &p, error));
        TRY(rows_of_piece(&p, d->limit_words, program->name, &most, error));
        for (done = 0; done < p.rows; done += rows) {
            rows = p.rows - done < most ? p.rows - done : most;
            if (out) write_piece(&p, done, rows, number + (uint32_t)*count, out + *used);
            *used += BITLOOM_HEADER_WORDS + (size_t)rows * p.target->row_words;
            if (ends) ends[*count] = (uint32_t)*used;
            ++*count;
        }
    }
    return BITLOOM_OK;
}

/* A block: WEIGHTS ..., FRAME, WEIGHTS ... `out` NULL: only measured, its packets' ends into `ends`. */
static bitloom_status block(bitloom_device *d, const bitloom_program *program, volatile uint32_t *out, uint32_t number,
                            bool last, size_t *payload, size_t *used, size_t *count, uint32_t *ends,
                            bitloom_error *error) {
    *used = *count = 0;
    TRY(weights(d, program, 0, program->weights_before, out, number, used, count, ends, error));
    if (out)
        write_header(out + *used,
                     (uint32_t)BITLOOM_MAGIC << BITLOOM_HEADER_MAGIC_LSB | BITLOOM_FRAME << BITLOOM_HEADER_KIND_LSB |
                         (uint32_t)last << BITLOOM_HEADER_LAST_LSB,
                     d->signature,
                     program->frame_words | ((number + (uint32_t)*count) & 0xFF) << BITLOOM_HEADER_NUMBER_LSB);
    *payload = *used + BITLOOM_HEADER_WORDS;
    *used = *payload + program->payload_words;
    if (ends) ends[*count] = (uint32_t)*used;
    ++*count;
    return weights(d, program, program->weights_before, program->weights, out, number, used, count, ends, error);
}

/* How many frames go together, and where their blocks and results lie. */
static bitloom_status lay_out(bitloom_device *d, const bitloom_program *program, bitloom_error *error) {
    const size_t words = d->platform.memory_bytes / 4, results = program->result_words;
    size_t payload, longest, most, frame;
    d->laid_out = NULL;
    d->half_words = words / 2 / ALIGNED_WORDS * ALIGNED_WORDS;
    TRY(block(d, program, NULL, 0, false, &payload, &d->block_words, &d->packets, NULL, error));
    bitloom_release(&d->platform.heap, d->ends);
    d->ends = bitloom_allocate(&d->platform.heap, d->packets, sizeof *d->ends);
    if (!d->ends)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, program->name, "%lu packets a frame need memory, got none",
                            (unsigned long)d->packets);
    TRY(block(d, program, NULL, 0, false, &payload, &d->block_words, &d->packets, d->ends, error));
    frame = d->block_words + results;
    longest = d->block_words > results ? d->block_words : results;
    most = d->limit_words / (program->weights ? results : longest);
    d->batch = BATCH_BYTES / 4 / longest ? BATCH_BYTES / 4 / longest : 1;
    if (d->batch > most) d->batch = most;
    most = d->half_words < ALIGNED_WORDS ? 0 : (d->half_words - ALIGNED_WORDS) / frame;
    if (d->batch > most) d->batch = most;
    if (!d->batch)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, program->name,
                            "memory must have %lu bytes for two frames, got %lu",
                            (unsigned long)(8 * (frame + 2 * ALIGNED_WORDS)), (unsigned long)d->platform.memory_bytes);
    d->receive_words = (d->batch * d->block_words + ALIGNED_WORDS - 1) / ALIGNED_WORDS * ALIGNED_WORDS;
    d->laid_out = program;
    return BITLOOM_OK;
}

/* What a call wants of its frames. */
typedef struct request {
    const void *images;
    bitloom_type type;
    size_t count;
    int64_t *outputs;
    int32_t *classes;
    double *scores;
} request;

/* Some images of a call that go through a program: through its network's turns one after another. */
typedef struct passage {
    const request *request;
    const bitloom_turn *turn;
    size_t first, count;
} passage;

/* Write the blocks of `count` images from `first` on into half `which`. */
static bitloom_status fill(bitloom_device *d, const passage *p, size_t which, size_t first, size_t count,
                           bitloom_error *error) {
    const size_t begin = which * d->half_words;
    size_t i, payload, used, packets;
    for (i = 0; i < count; i++) {
        volatile uint32_t *out = d->platform.memory + begin + i * d->block_words;
        TRY(block(d, d->program, out, d->sent, i + 1 == count, &payload, &used, &packets, NULL, error));
        d->sent += (uint32_t)packets;
        TRY(bitloom_pack(d->network, p->turn, d->maps, &d->scratch, first + i, out + payload, error));
    }
    return flush(d, begin, count * d->block_words, error);
}

/* Start to receive, then to send. */
static bitloom_status start(bitloom_device *d, size_t which, size_t count, bitloom_error *error) {
    const size_t begin = which * d->half_words;
    TRY(rebase_counters(d, error));
    if (d->platform.wait)
        TRY(put(d, BITLOOM_CORE, BITLOOM_REG_IRQ_STATUS, BITLOOM_IRQ_STATUS_RESULT | BITLOOM_IRQ_STATUS_ERROR, error));
    d->receive_bytes = (uint32_t)(4 * count * d->program->result_words);
    TRY(dma_transfer(d, RECEIVE, begin + d->receive_words, d->receive_bytes / 4, error));
    d->send_from = begin;
    d->send_at = 0;
    d->send_words = count * d->block_words;
    return send_next(d, error);
}

static bitloom_status wait_for_results(bitloom_device *d, watch *w, bitloom_error *error) {
    const bitloom_platform *p = &d->platform;
    unsigned looks;
    bool all = false, came = false;
    for (looks = 0;; looks++) {
        TRY(ended(d, &all, error));
        if (all) return BITLOOM_OK;
        TRY(look(d, w, error));
        if (!p->wait || looks < LOOKS_FIRST) continue;
        if (looks == LOOKS_FIRST)
            TRY(put(d, BITLOOM_CORE, BITLOOM_REG_IRQ_ENABLE, BITLOOM_IRQ_ENABLE_RESULT | BITLOOM_IRQ_ENABLE_ERROR,
                    error));
        {
            const bool soon = came || !d->heard || d->send_at < d->send_words;
            const int code = p->wait(p->context, soon ? LOOK_AGAIN_US : (uint32_t)(timeout_us(d) / LOOKS));
            if (code < 0)
                return bitloom_fail(error, BITLOOM_BUS, p->name, "an interrupt must be awaited, got %d", code);
            if (code > 0) came = d->heard = true;
        }
    }
}

/* Wait for what `start` started, and see that it is whole and ours. */
static bitloom_status finish(bitloom_device *d, size_t which, size_t count, bitloom_error *error) {
    const size_t first = which * d->half_words + d->receive_words;
    const bitloom_platform *p = &d->platform;
    bitloom_status status;
    uint32_t received;
    char what[128];
    bool moved;
    watch w;
    snprintf(what, sizeof what, "%s: %lu frames must be computed", d->program->name, (unsigned long)count);
    w = begin_watch(d, what, true);
    status = wait_for_results(d, &w, error);
    if (p->wait) put(d, BITLOOM_CORE, BITLOOM_REG_IRQ_ENABLE, 0, NULL);
    if (status) return status;
    TRY(look_at_counters(d, true, &moved, error));
    TRY(check_device(d, error));
    TRY(get(d, BITLOOM_DMA, RECEIVE + BITLOOM_DMA_REG_LENGTH, &received, error));
    if (received != d->receive_bytes)
        return bitloom_fail(error, BITLOOM_TRANSFER, p->name, "%s: results must be %lu bytes, got %lu", what,
                            (unsigned long)d->receive_bytes, (unsigned long)received);
    TRY(check_owner(d, error));
    if (p->invalidate && p->invalidate(p->context, 4 * first, d->receive_bytes))
        return failed(d, error, BITLOOM_BUS, "the memory must be invalidated, got a failure");
    return BITLOOM_OK;
}

/* What a call wants of a frame, of its outputs. */
static bitloom_status tell(bitloom_device *d, const request *r, const int64_t *outputs, size_t number,
                           bitloom_error *error) {
    const bitloom_program *network = d->network;
    bool finite = true;
    if (r->classes) finite = bitloom_class_of(network, outputs, d->scratch.scores, r->classes + number);
    if (r->scores)
        finite = bitloom_host_scores(&network->host, outputs, true, r->scores + number * network->facts.scores);
    if (finite) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_INVALID, network->name,
                        "image %lu: the host's scores must be finite, got another", (unsigned long)number);
}

/* Results of a batch of images from `first` on. */
static bitloom_status take(bitloom_device *d, const passage *p, size_t which, size_t first, size_t count,
                           bitloom_error *error) {
    const bitloom_program *program = d->program;
    const bitloom_channels *gives = &p->turn->gives;
    const bitloom_map *map = d->network->maps + gives->map;
    const bitloom_held *held = d->maps + gives->map;
    const size_t values = (size_t)map->height * map->width * map->channels;
    const bool last = p->turn + 1 == d->network->turns + d->network->turn_count;
    const bool direct = held->values && held->type == BITLOOM_INT64 && !gives->begin && gives->end == map->channels;
    const volatile uint32_t *words = d->platform.memory + which * d->half_words + d->receive_words;
    size_t i;
    for (i = 0; i < count; i++, words += program->result_words) {
        const size_t number = first + i;
        int64_t *whole = held->values && held->type == BITLOOM_INT64
                             ? (int64_t *)held->values + (number - held->first) * values
                             : d->scratch.outputs;
        int64_t *outputs = direct ? whole : d->scratch.outputs;
        bitloom_unpack(program, words, outputs);
        if (held->values && !direct)
            TRY(bitloom_give(d->network, p->turn, outputs, number, held, error));
        if (last) TRY(tell(d, p->request, whole, number, error));
    }
    return BITLOOM_OK;
}

/* All images of a passage through the program that is on the device. */
static bitloom_status compute(bitloom_device *d, const passage *p, bitloom_error *error) {
    const size_t end = p->first + p->count;
    size_t first, which = 0, count = p->count < d->batch ? p->count : d->batch;
    if (!count) return BITLOOM_OK;
    TRY(fill(d, p, 0, p->first, count, error));
    TRY(start(d, 0, count, error));
    for (first = p->first; first < end; which ^= 1) {
        const size_t after = first + count, left = end - after, next = left < d->batch ? left : d->batch;
        if (next) TRY(fill(d, p, which ^ 1, after, next, error));
        TRY(finish(d, which, count, error));
        if (next) TRY(start(d, which ^ 1, next, error));
        TRY(take(d, p, which, first, count, error));
        first = after;
        count = next;
    }
    return BITLOOM_OK;
}

/* A program takes its turn: it is loaded where another one is on the device, and the images go through. */
static bitloom_status take_turn(bitloom_device *d, const passage *p, bitloom_error *error) {
    const bitloom_program *program = p->turn->program;
    if (program != d->program) {
        TRY(check_owner(d, error));
        TRY(send_parameters(d, program, error));
    }
    if (program != d->laid_out) TRY(lay_out(d, program, error));
    d->clean = false;
    return stopped(d, compute(d, p, error), error);
}

/* All images of a call, in rounds of `most`. The maps of a round lie in `space`. */
static bitloom_status compute_rounds(bitloom_device *d, const request *r, size_t most, uint8_t *space,
                                     bitloom_error *error) {
    const bitloom_program *network = d->network;
    bitloom_held *input = d->maps, *output = d->maps + network->turns[network->turn_count - 1].gives.map;
    size_t i;
    passage p;
    p.request = r;
    for (p.first = 0; p.first < r->count; p.first += p.count) {
        p.count = r->count - p.first < most ? r->count - p.first : most;
        for (i = 0; i < network->map_count; i++) {
            d->maps[i].values = network->maps[i].bytes ? space + most * network->maps[i].offset : NULL;
            d->maps[i].type = network->maps[i].type;
            d->maps[i].first = p.first;
        }
        input->values = (void *)(uintptr_t)r->images; /* which are only read */
        input->type = r->type;
        input->first = 0;
        input->as_file = !r->outputs;
        if (r->outputs) {
            output->values = r->outputs;
            output->first = 0;
        }
        for (i = 0; i < network->turn_count; i++) {
            p.turn = network->turns + i;
            TRY(take_turn(d, &p, error));
        }
    }
    return BITLOOM_OK;
}

/* All images of a call. Where there are maps between programs, a round has as many as the heap has memory for. */
static bitloom_status compute_all(bitloom_device *d, const request *r, bitloom_error *error) {
    const bitloom_heap *heap = &d->platform.heap;
    const size_t bytes = d->network->facts.map_bytes;
    size_t most = r->count;
    uint8_t *space;
    bitloom_status status;
    if (!bytes) return compute_rounds(d, r, most, NULL, error);
    if (most > ROUND_BYTES / bytes) most = ROUND_BYTES / bytes;
    if (!most) most = 1;
    while (!(space = bitloom_allocate(heap, most, bytes)) && most > 1) most /= 2;
    if (!space)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, d->network->name,
                            "maps between programs need %lu bytes a frame, got no memory", (unsigned long)bytes);
    status = compute_rounds(d, r, most, space, error);
    bitloom_release(heap, space);
    return status;
}

static bitloom_status run(bitloom_device *d, const request *r, bitloom_error *error) {
    const bitloom_program *network = d->network;
    if (!network) return failed(d, error, BITLOOM_INVALID, "a program must be loaded before images, got none");
    if (r->scores && !network->has_host)
        return bitloom_fail(error, BITLOOM_INVALID, network->name,
                            "scores are of imported networks, got a program without the host's part");
    if (r->classes && !network->has_host && network->facts.output_maps > 1)
        return bitloom_fail(error, BITLOOM_INVALID, network->name, "classes are of networks with one output, got %lu",
                            (unsigned long)network->facts.output_maps);
    TRY(check_owner(d, error));
    if (!d->clean) TRY(send_parameters(d, d->program, error));
    return compute_all(d, r, error);
}

bitloom_status bitloom_predict(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                               int64_t *outputs, bitloom_error *error) {
    request r = {images, type, count, outputs, NULL, NULL};
    return run(device, &r, error);
}

bitloom_status bitloom_classify(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                                int32_t *classes, bitloom_error *error) {
    request r = {images, type, count, NULL, classes, NULL};
    return run(device, &r, error);
}

bitloom_status bitloom_scores(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                              double *scores, bitloom_error *error) {
    request r = {images, type, count, NULL, NULL, scores};
    return run(device, &r, error);
}

/* Loading */

/* Each NPU must get its network row, and kernels where it gets layers with results. */
static bitloom_status check_memories(const bitloom_device *d, const bitloom_program *program, bitloom_error *error) {
    enum { NETWORK = 1, KERNELS = 2, RESULTS = 4 };
    static const unsigned RUNS[] = {BITLOOM_PARAMETERS, BITLOOM_WEIGHTS_ARRAY};
    uint8_t loaded[BITLOOM_MOST_NPUS] = {0};
    unsigned npu, i;
    for (i = 0; i < 2; i++) {
        const unsigned array = RUNS[i];
        const size_t end = program->arrays[array].count;
        size_t position = 0;
        unsigned long number;
        packet p;
        for (number = 0; position < end; number++) {
            TRY(next_packet(d, program, array, &position, end, number, &p, error));
            loaded[p.target->npu] |= (uint8_t)(!strcmp(p.target->name, "network")   ? NETWORK
                                               : !strcmp(p.target->name, "kernels") ? KERNELS
                                               : !strcmp(p.target->name, "results") ? RESULTS
                                                                                    : 0);
        }
    }
    for (npu = 0; npu < d->npus; npu++) {
        const char *missing = !(loaded[npu] & NETWORK)                         ? "network"
                              : (loaded[npu] & (KERNELS | RESULTS)) == RESULTS ? "kernels"
                                                                               : NULL;
        if (missing)
            return bitloom_fail(error, BITLOOM_INVALID, program->name,
                                "parameters must load memory %s of NPU %u, got packets for others only", missing, npu);
    }
    return BITLOOM_OK;
}

static bitloom_status check_program(const bitloom_device *d, const bitloom_program *program, bitloom_error *error) {
    const uint32_t bits = d->frame_word_bits;
    const uint64_t stream = bits <= d->stream_bits
                                ? (program->frame_words + d->stream_bits / bits - 1) / (d->stream_bits / bits)
                                : (uint64_t)program->frame_words * ((bits + d->stream_bits - 1) / d->stream_bits);
    const uint64_t payload = stream * stream_words(d);
    if (strcmp(program->design, d->digest) != 0)
        return bitloom_fail(error, BITLOOM_MISMATCH, program->name,
                            "the program must be for the design %.32s (%s), got one for %.32s", d->digest, d->design,
                            program->design);
    if (program->payload_words != payload)
        return bitloom_fail(error, BITLOOM_INVALID, program->name, "a frame's payload must be %.0f words, got %lu",
                            (double)payload, (unsigned long)program->payload_words);
    if (program->result_words % stream_words(d))
        return bitloom_fail(error, BITLOOM_INVALID, program->name,
                            "result_words must fill stream words of %u bits, got %lu", d->stream_bits,
                            (unsigned long)program->result_words);
    if (BITLOOM_HEADER_WORDS + payload > d->limit_words || program->result_words > d->limit_words)
        return bitloom_fail(error, BITLOOM_INVALID, program->name,
                            "a frame and its result must fit a DMA transfer of %lu bytes (c_sg_length_width), got more",
                            4ul * d->limit_words);
    return check_memories(d, program, error);
}

bitloom_status bitloom_load(bitloom_device *device, const bitloom_program *program, bitloom_error *error) {
    const bitloom_heap *heap = &device->platform.heap;
    bitloom_status status;
    size_t i;
    for (i = 0; i < program->turn_count; i++) TRY(check_program(device, program->turns[i].program, error));
    device->network = device->program = NULL;
    bitloom_scratch_free(heap, &device->scratch);
    bitloom_release(heap, device->maps);
    device->maps = bitloom_allocate(heap, program->map_count, sizeof *device->maps);
    if (!device->maps)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, program->name, "maps need memory, got none");
    for (i = program->turn_count; i; i--) TRY(lay_out(device, program->turns[i - 1].program, error));
    TRY(bitloom_scratch_allocate(heap, program, &device->scratch, error));
    status = send_parameters(device, program->turns->program, error);
    if (status) device->program = NULL;
    else device->network = program;
    return status;
}

bitloom_status bitloom_reset(bitloom_device *device, bitloom_error *error) {
    return device->program ? send_parameters(device, device->program, error) : restart(device, error);
}

void bitloom_count(const bitloom_device *device, bitloom_counters *counters) {
    memset(counters, 0, sizeof *counters);
    counters->cycles = device->totals[0];
    counters->frames = device->totals[1];
    counters->words_in = device->totals[2];
    counters->words_out = device->totals[3];
    counters->npus = device->npus;
    memcpy(counters->beats, device->totals + 4, device->npus * sizeof *counters->beats);
}

bitloom_status bitloom_clear_counters(bitloom_device *device, bitloom_error *error) {
    TRY(set_control(device, BITLOOM_CONTROL_CLEAR_COUNTERS, error));
    memset(device->totals, 0, sizeof device->totals);
    return rebase_counters(device, error);
}

bitloom_status bitloom_register(bitloom_device *device, uint32_t offset, uint32_t *value, bitloom_error *error) {
    return get(device, BITLOOM_CORE, offset, value, error);
}

/* The manifest */

static bool number_of(const bitloom_json *json, const bitloom_node *object, const char *key, int64_t low, int64_t high,
                      uint32_t *out) {
    int64_t value;
    if (!bitloom_json_integer(json, bitloom_json_get(json, object, key), &value) || value < low || value > high)
        return false;
    *out = (uint32_t)value;
    return true;
}

/* The memories of an NPU: counted, or also read. */
static bitloom_status read_memories(bitloom_device *d, const bitloom_json *json, const bitloom_node *npu,
                                    unsigned number, bool count) {
    const bitloom_node *memories = bitloom_json_get(json, npu, "memories"), *entry;
    uint32_t i, id, width;
    if (!memories || memories->kind != BITLOOM_JSON_LIST || memories->count < 1 || memories->count > 256)
        return bitloom_json_wrong(json, "an NPU must have 1..256 memories", memories);
    for (i = 0, entry = memories + 1; i < memories->count; i++, entry = bitloom_json_next(json, entry)) {
        memory *m = d->memories + d->memory_count;
        if (!count) {
            if (!number_of(json, entry, "id", 0, 255, &id) ||
                !number_of(json, entry, "depth", 1, MOST_DEPTH, &m->depth) ||
                !number_of(json, entry, "width", 1, 1 << 24, &width) ||
                !bitloom_json_text(json, bitloom_json_get(json, entry, "name"), 31, m->name, sizeof m->name))
                return bitloom_json_wrong(json, "a memory must have name, id, depth and width", entry);
            if (find_memory(d, number, id)) return bitloom_json_wrong(json, "ids of memories must be unique", entry);
            m->npu = number;
            m->id = id;
            m->row_words = (width + d->stream_bits - 1) / d->stream_bits * stream_words(d);
        }
        d->memory_count++;
    }
    return BITLOOM_OK;
}

static bitloom_status read_npus(bitloom_device *d, const bitloom_json *json) {
    const bitloom_node *npus = bitloom_json_get(json, json->nodes, "npus"), *npu;
    uint32_t i, kfp, bits, binariser;
    unsigned pass;
    if (!npus || npus->kind != BITLOOM_JSON_LIST || npus->count < 1 || npus->count > BITLOOM_MOST_NPUS)
        return bitloom_json_wrong(json, "there must be 1..60 NPUs", npus);
    d->npus = npus->count;
    if (!number_of(json, npus + 1, "kfp", 1, 1 << 16, &kfp) ||
        !number_of(json, npus + 1, "feature_bits", 1, 64, &bits) ||
        !number_of(json, npus + 1, "binariser_bits", 0, 64, &binariser))
        return bitloom_json_wrong(json, "an NPU must have kfp, feature_bits and binariser_bits", npus + 1);
    d->frame_word_bits = kfp * (binariser ? binariser : bits);
    for (pass = 0; pass < 2; pass++) {
        if (pass) {
            d->memories = bitloom_allocate(&d->platform.heap, d->memory_count, sizeof *d->memories);
            if (!d->memories)
                return failed(d, json->error, BITLOOM_NO_MEMORY, "the manifest must fit the heap, got no memory");
            d->memory_count = 0;
        }
        for (i = 0, npu = npus + 1; i < npus->count; i++, npu = bitloom_json_next(json, npu))
            TRY(read_memories(d, json, npu, i, !pass));
    }
    return BITLOOM_OK;
}

static bitloom_status read_errors(bitloom_device *d, const bitloom_json *json) {
    const bitloom_node *errors = bitloom_json_get(json, json->nodes, "errors"), *code;
    uint32_t i, at;
    if (!errors || errors->kind != BITLOOM_JSON_OBJECT || errors->count > MOST_ERRORS)
        return bitloom_json_wrong(json, "errors must be 32 at most", errors);
    for (i = 0, code = errors + 1; i < errors->count; i++, code = bitloom_json_next(json, code + 1)) {
        const bitloom_node *texts = code + 1;
        error_text *e = d->errors + d->error_count++;
        for (at = code->begin; at < code->end && at < code->begin + 9; at++) {
            if (json->text[at] < '0' || json->text[at] > '9') break;
            e->code = e->code * 10 + (uint32_t)(json->text[at] - '0');
        }
        if (at != code->end || !e->code || texts->kind != BITLOOM_JSON_LIST || texts->count != 2 ||
            !bitloom_json_text(json, texts + 1, 31, e->name, sizeof e->name) ||
            !bitloom_json_text(json, texts + 2, 127, e->rule, sizeof e->rule))
            return bitloom_json_wrong(json, "errors must be a number, and [name, rule]", texts);
    }
    return BITLOOM_OK;
}

static bitloom_status read_manifest(bitloom_device *d, const bitloom_json *json) {
    static const char *const KINDS[] = {"LOAD", "FRAME", "WEIGHTS"};
    const bitloom_node *top = json->nodes, *packets = bitloom_json_get(json, top, "packet");
    const bitloom_node *kinds = bitloom_json_get(json, packets, "kinds"), *vlnv = bitloom_json_get(json, top, "vlnv");
    const bitloom_node *name = bitloom_json_get(json, top, "name"), *digest = bitloom_json_get(json, top, "digest");
    uint32_t number, i;
    if (!bitloom_json_is(json, bitloom_json_get(json, top, "format"), "bitloom-manifest") ||
        !number_of(json, top, "version", 1, 1, &number))
        return bitloom_json_wrong(json, "format must be bitloom-manifest of version 1", top);
    if (!bitloom_json_is(json, vlnv, BITLOOM_VLNV))
        return bitloom_fail(json->error, BITLOOM_MISMATCH, json->name, "the manifest's vlnv must be %s, got %s",
                            BITLOOM_VLNV, bitloom_show(json, vlnv).text);
    if (!bitloom_json_text(json, name, 64, d->design, sizeof d->design) ||
        !bitloom_is_name(d->design, strlen(d->design)))
        return bitloom_json_wrong(json, "name must be 1..64 of A-Z, a-z, 0-9, _, - and .", name);
    if (!bitloom_json_text(json, digest, 64, d->digest, sizeof d->digest) ||
        !bitloom_is_digest(d->digest, strlen(d->digest)))
        return bitloom_json_wrong(json, "digest must be 64 lower-case hex digits", digest);
    if (!number_of(json, top, "stream_bits", 32, 64, &number) || number % 32)
        return bitloom_json_wrong(json, "stream_bits must be 32 or 64", bitloom_json_get(json, top, "stream_bits"));
    d->stream_bits = number;
    d->takes_weights = bitloom_json_get(json, kinds, "WEIGHTS") != NULL;
    if (!number_of(json, packets, "magic", BITLOOM_MAGIC, BITLOOM_MAGIC, &number))
        return bitloom_json_wrong(json, "packet must have the magic number of the interface", packets);
    for (i = 0; i < (d->takes_weights ? 3u : 2u); i++)
        if (!number_of(json, kinds, KINDS[i], i + 1, i + 1, &number))
            return bitloom_json_wrong(json, "packet must have the kinds of the interface", packets);
    TRY(read_errors(d, json));
    return read_npus(d, json);
}

/* BITLOOM_MISMATCH unless the core that answers is the manifest's. */
static bitloom_status check_identity(bitloom_device *d, bitloom_error *error) {
    char digest[33];
    uint32_t value;
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_IDENT, &value, error));
    if (value != BITLOOM_IDENT)
        return bitloom_fail(error, BITLOOM_MISMATCH, d->platform.name, "IDENT must be 0x%08lX, got 0x%08lX",
                            (unsigned long)BITLOOM_IDENT, (unsigned long)value);
    TRY(get(d, BITLOOM_CORE, BITLOOM_REG_VERSION, &value, error));
    if (value >> 16 != BITLOOM_INTERFACE_MAJOR || (value >> 8 & 0xFF) != BITLOOM_INTERFACE_MINOR)
        return bitloom_fail(error, BITLOOM_MISMATCH, d->platform.name,
                            "VERSION must be that of the manifest, %u.%u, got %lu.%lu.%lu", BITLOOM_INTERFACE_MAJOR,
                            BITLOOM_INTERFACE_MINOR, (unsigned long)(value >> 16), (unsigned long)(value >> 8 & 0xFF),
                            (unsigned long)(value & 0xFF));
    TRY(read_digest(d, digest, error));
    if (strncmp(digest, d->digest, 32) != 0)
        return bitloom_fail(error, BITLOOM_MISMATCH, d->platform.name,
                            "the hardware must have the manifest's digest %.32s, got %s", d->digest, digest);
    return BITLOOM_OK;
}

static bitloom_status check_platform(const bitloom_platform *p, bitloom_error *error) {
    const char *rule = !p->read || !p->write || !p->now_us                 ? "read, write and now_us must be functions"
                       : p->address % 8                                    ? "address must be a multiple of 8"
                       : p->dma_length_bits < 8 || p->dma_length_bits > 26 ? "dma_length_bits must be 8..26"
                       : !p->memory || p->memory_bytes < 1024              ? "memory must have at least 1024 bytes"
                       : !p->timeout_ms                                    ? "timeout_ms must be >= 1"
                                                                           : NULL;
    return rule ? bitloom_fail(error, BITLOOM_INVALID, p->name, "the platform's %s, got another", rule) : BITLOOM_OK;
}

static bitloom_status open_device(bitloom_device *d, bitloom_bytes manifest, bitloom_error *error) {
    bitloom_json json;
    bitloom_status status;
    TRY(bitloom_json_read(&json, &d->platform.heap, manifest, d->platform.name, "manifest", error));
    status = read_manifest(d, &json);
    bitloom_json_free(&json);
    TRY(status);
    d->limit_words = ((((uint32_t)1 << d->platform.dma_length_bits) - 1) / 8) * 2; /* whole stream words */
    TRY(check_identity(d, error));
    TRY(rebase_counters(d, error));
    return restart(d, error);
}

bitloom_status bitloom_open(const bitloom_platform *platform, const void *manifest, size_t size,
                            bitloom_device **device, bitloom_error *error) {
    bitloom_bytes text;
    bitloom_device *d;
    bitloom_status status;
    *device = NULL;
    TRY(check_platform(platform, error));
    d = bitloom_allocate(&platform->heap, 1, sizeof *d);
    if (!d) return bitloom_fail(error, BITLOOM_NO_MEMORY, platform->name, "must fit the heap, got no memory");
    d->platform = *platform;
    text.data = manifest;
    text.size = size;
    status = open_device(d, text, error);
    if (status) bitloom_close(d);
    else *device = d;
    return status;
}

void bitloom_close(bitloom_device *device) {
    if (!device) return;
    bitloom_scratch_free(&device->platform.heap, &device->scratch);
    bitloom_release(&device->platform.heap, device->maps);
    bitloom_release(&device->platform.heap, device->ends);
    bitloom_release(&device->platform.heap, device->memories);
    {
        const bitloom_heap heap = device->platform.heap;
        bitloom_release(&heap, device);
    }
}
