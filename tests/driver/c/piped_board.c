/* In place of bitloom_linux.c, for programs that shall run against a virtual board in another process: registers,
   caches and interrupts are asked for over a socket, CORE being the number of its file; the platform's memory is
   what the processor sees of a buffer, MEMORY being its file and DMA its address in the virtual board's DDR. */
#define bitloom_linux_open opened_on_linux
#include "bitloom_linux.c"
#undef bitloom_linux_open
#include <sys/socket.h>

enum { READ, WRITE, FLUSH, INVALIDATE, WAIT };

static int ask(void *context, uint32_t what, uint32_t unit, uint32_t offset, uint32_t *value) {
    const bitloom_linux *board = context;
    const uint32_t question[4] = {what, unit, offset, *value};
    uint32_t answer[2];
    if (send(board->units[0].file, question, sizeof question, 0) != (ssize_t)sizeof question) return -1;
    if (recv(board->units[0].file, answer, sizeof answer, MSG_WAITALL) != (ssize_t)sizeof answer) return -1;
    *value = answer[1];
    return (int)answer[0];
}

static int piped_read(void *context, bitloom_unit unit, uint32_t offset, uint32_t *value) {
    *value = 0;
    return ask(context, READ, (uint32_t)unit, offset, value);
}

static int piped_write(void *context, bitloom_unit unit, uint32_t offset, uint32_t value) {
    return ask(context, WRITE, (uint32_t)unit, offset, &value);
}

static int piped_flush(void *context, size_t offset, size_t bytes) {
    uint32_t value = (uint32_t)bytes;
    return ask(context, FLUSH, 0, (uint32_t)offset, &value);
}

static int piped_invalidate(void *context, size_t offset, size_t bytes) {
    uint32_t value = (uint32_t)bytes;
    return ask(context, INVALIDATE, 0, (uint32_t)offset, &value);
}

static int piped_wait(void *context, uint32_t microseconds) { return ask(context, WAIT, 0, 0, &microseconds); }

bitloom_status bitloom_linux_open(const bitloom_linux_options *options, bitloom_linux **board, bitloom_error *error) {
    bitloom_linux *b = calloc(1, sizeof *b);
    bitloom_platform *p;
    struct stat status;
    if (!b || stat(options->memory, &status)) abort();
    p = &b->platform;
    b->units[0].file = atoi(options->core);
    b->units[1].file = -1;
    strcpy(b->name, "piped");
    if (map(&b->memory, options->memory, 0, (uint64_t)status.st_size, error)) abort();
    p->context = b;
    p->name = b->name;
    p->heap = bitloom_linux_heap();
    p->memory = b->memory.words;
    p->memory_bytes = (size_t)status.st_size;
    p->address = strtoull(options->dma, NULL, 0);
    p->dma_length_bits = BITLOOM_DMA_LENGTH_BITS;
    p->timeout_ms = options->timeout_ms ? options->timeout_ms : 60000;
    p->read = piped_read;
    p->write = piped_write;
    p->now_us = now_us;
    p->flush = piped_flush;
    p->invalidate = piped_invalidate;
    p->wait = piped_wait;
    p->random = random_word;
    *board = b;
    return BITLOOM_OK;
}
