/* Linux: see bitloom_linux.h. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "bitloom_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REGISTER_BYTES = 4096, TIMEOUT_MS = 10000, PATH_BYTES = 512 };

/* A piece of physical memory in our address space. */
typedef struct window {
    int file;     /* -1: closed */
    void *begin;  /* of the mapping; NULL: none */
    size_t bytes; /* of the mapping */
    volatile uint32_t *words;
    int interrupts; /* whether the file gives them */
} window;

struct bitloom_linux {
    bitloom_platform platform;
    window units[2]; /* by bitloom_unit */
    window memory;
    char name[64], root[256];
};

static bitloom_status fail(bitloom_error *error, bitloom_status status, const char *format, ...) {
    va_list arguments;
    if (!error) return status;
    error->status = status;
    error->code = 0;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

/* Order for whoever else reads the bus: the DMA is no part of the processors' coherent domain. */
static void barrier(void) {
#if defined(__aarch64__) || (defined(__ARM_ARCH) && __ARM_ARCH >= 7)
    __asm__ volatile("dsb sy" ::: "memory");
#else
    __sync_synchronize();
#endif
}

/* The functions of the platform */

static int read_word(void *context, bitloom_unit unit, uint32_t offset, uint32_t *value) {
    const bitloom_linux *board = context;
    *value = board->units[unit].words[offset / 4];
    barrier();
    return 0;
}

static int write_word(void *context, bitloom_unit unit, uint32_t offset, uint32_t value) {
    const bitloom_linux *board = context;
    barrier();
    board->units[unit].words[offset / 4] = value;
    return 0;
}

static uint64_t now_us(void *context) {
    struct timespec time;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/* The kernel masks an interrupt of UIO when it comes; a 1 lets the next one through. */
static int unmask(const window *unit) {
    const uint32_t on = 1;
    return write(unit->file, &on, sizeof on) == (ssize_t)sizeof on;
}

static int wait_for_interrupt(void *context, uint32_t microseconds) {
    const bitloom_linux *board = context;
    struct pollfd files[2];
    nfds_t count = 0, i;
    int unit, came;
    for (unit = 0; unit < 2; unit++) {
        if (!board->units[unit].interrupts) continue;
        if (!unmask(board->units + unit)) return -1;
        files[count].fd = board->units[unit].file;
        files[count++].events = POLLIN;
    }
    came = poll(files, count, (int)((microseconds + 999) / 1000));
    if (came < 0) return errno == EINTR ? 0 : -1;
    for (i = 0; i < count; i++) {
        uint32_t times;
        if (files[i].revents & POLLIN && read(files[i].fd, &times, sizeof times) != (ssize_t)sizeof times) return -1;
    }
    return came > 0;
}

static uint32_t random_word(void *context) {
    uint32_t word = (uint32_t)now_us(context);
    const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    if (file < 0) return word;
    if (read(file, &word, sizeof word) != (ssize_t)sizeof word) word ^= (uint32_t)getpid();
    close(file);
    return word;
}

static void *allocate(void *context, size_t bytes) {
    (void)context;
    return malloc(bytes);
}

static void release(void *context, void *memory) {
    (void)context;
    free(memory);
}

bitloom_heap bitloom_linux_heap(void) {
    bitloom_heap heap;
    heap.context = NULL;
    heap.allocate = allocate;
    heap.release = release;
    return heap;
}

/* Opening */

static void close_window(window *w) {
    if (w->begin) munmap(w->begin, w->bytes);
    if (w->file >= 0) close(w->file);
    w->begin = NULL;
    w->file = -1;
}

/* A number in the first line of a file of /sys. */
static bitloom_status read_number(const char *path, uint64_t *number, bitloom_error *error) {
    char text[64] = "", *end;
    FILE *file = fopen(path, "r");
    if (!file) return fail(error, BITLOOM_INVALID, "%s: must be readable, got: %s", path, strerror(errno));
    if (!fgets(text, sizeof text, file)) text[0] = 0;
    fclose(file);
    errno = 0;
    *number = strtoull(text, &end, 0);
    if (end != text && !errno && (*end == '\n' || !*end)) return BITLOOM_OK;
    return fail(error, BITLOOM_INVALID, "%s: must be a number, got another text", path);
}

/* Map `bytes` bytes of a file from byte `offset` on, wherever a page begins. */
static bitloom_status map(window *w, const char *path, uint64_t offset, uint64_t bytes, bitloom_error *error) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = offset / page * page;
    if (!bytes || bytes > (uint64_t)1 << 31 || offset % 4)
        return fail(error, BITLOOM_INVALID, "%s: 1..2147483648 bytes from a multiple of 4 on must be mapped, got %.0f",
                    path, (double)bytes);
    w->file = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
    if (w->file < 0) return fail(error, BITLOOM_BUS, "%s: must be writable, got: %s", path, strerror(errno));
    w->bytes = (size_t)(offset - first + bytes);
    w->begin = mmap(NULL, w->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w->file, (off_t)first);
    if (w->begin == MAP_FAILED) {
        w->begin = NULL;
        return fail(error, BITLOOM_BUS, "%s: %.0f bytes at 0x%llX must be mapped, got: %s", path, (double)bytes,
                    (unsigned long long)offset, strerror(errno));
    }
    w->words = (volatile uint32_t *)(void *)((char *)w->begin + (offset - first));
    return BITLOOM_OK;
}

/* A path below `root`, of which `format` makes the rest. */
static bitloom_status place(const bitloom_linux *board, char path[PATH_BYTES], bitloom_error *error, const char *format,
                            const char *name, const char *more) {
    char rest[PATH_BYTES];
    if (snprintf(rest, sizeof rest, format, name, more) < (int)sizeof rest &&
        snprintf(path, PATH_BYTES, "%s%s", board->root, rest) < PATH_BYTES)
        return BITLOOM_OK;
    return fail(error, BITLOOM_INVALID, "%s: paths must be shorter than %d characters, got more", board->name,
                PATH_BYTES);
}

/* An address, and bytes behind a +, if `bytes` isn't NULL. */
static int parse_address(const char *text, uint64_t *address, uint64_t *bytes) {
    char *end;
    if (strncmp(text, "0x", 2) != 0) return 0;
    errno = 0;
    *address = strtoull(text, &end, 16);
    if (bytes) {
        if (*end != '+') return 0;
        *bytes = strtoull(end + 1, &end, 0);
    }
    return !errno && !*end;
}

static bitloom_status open_unit(bitloom_linux *board, const char *what, const char *given, window *w,
                                bitloom_error *error) {
    char path[PATH_BYTES];
    uint64_t address = 0, bytes = REGISTER_BYTES;
    bitloom_status status;
    if (given && !strncmp(given, "/dev/uio", 8)) {
        const char *name = given + 5;
        status = place(board, path, error, "/sys/class/uio/%s/maps/map0/%s", name, "size");
        if (!status) status = read_number(path, &bytes, error);
        if (!status) status = place(board, path, error, "/dev/%s%s", name, "");
        if (!status) status = map(w, path, 0, bytes, error);
        if (!status && bytes < 0x60)
            status = fail(error, BITLOOM_INVALID, "%s: must have its registers, got %.0f bytes", path, (double)bytes);
        w->interrupts = !status && unmask(w); /* a device without an interrupt refuses it */
        return status;
    }
    if (!given || !parse_address(given, &address, NULL))
        return fail(error, BITLOOM_INVALID, "%s: %s must be /dev/uioN or an address, 0x..., got %.60s", board->name,
                    what, given ? given : "nothing");
    status = place(board, path, error, "/dev/mem%s%s", "", "");
    return status ? status : map(w, path, address, bytes, error);
}

static bitloom_status open_memory(bitloom_linux *board, const char *given, bitloom_error *error) {
    char path[PATH_BYTES];
    uint64_t bytes = 0;
    bitloom_status status;
    if (given && parse_address(given, &board->platform.address, &bytes)) {
        status = place(board, path, error, "/dev/mem%s%s", "", "");
        if (!status) status = map(&board->memory, path, board->platform.address, bytes, error);
    } else {
        if (!given || !*given || strchr(given, '/'))
            return fail(error, BITLOOM_INVALID,
                        "%s: memory must be a device of u-dma-buf, or 0xADDRESS+BYTES, got %.60s", board->name,
                        given ? given : "nothing");
        status = place(board, path, error, "/sys/class/u-dma-buf/%s/%s", given, "phys_addr");
        if (!status) status = read_number(path, &board->platform.address, error);
        if (!status) status = place(board, path, error, "/sys/class/u-dma-buf/%s/%s", given, "size");
        if (!status) status = read_number(path, &bytes, error);
        if (!status) status = place(board, path, error, "/dev/%s%s", given, "");
        if (!status) status = map(&board->memory, path, 0, bytes, error); /* O_SYNC: not cached */
    }
    board->platform.memory = board->memory.words;
    board->platform.memory_bytes = (size_t)bytes;
    return status;
}

bitloom_status bitloom_linux_open(const bitloom_linux_options *options, bitloom_linux **board, bitloom_error *error) {
    bitloom_linux *b = calloc(1, sizeof *b);
    bitloom_platform *p;
    bitloom_status status;
    *board = NULL;
    if (!b) return fail(error, BITLOOM_NO_MEMORY, "bitloom: must fit the memory, got none");
    b->units[0].file = b->units[1].file = b->memory.file = -1;
    snprintf(b->name, sizeof b->name, "%s", options->name ? options->name : "bitloom");
    snprintf(b->root, sizeof b->root, "%s", options->root ? options->root : "");
    p = &b->platform;
    p->context = b;
    p->name = b->name;
    p->heap = bitloom_linux_heap();
    p->dma_length_bits = options->dma_length_bits ? options->dma_length_bits : BITLOOM_DMA_LENGTH_BITS;
    p->timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;
    p->read = read_word;
    p->write = write_word;
    p->now_us = now_us;
    p->random = random_word;
    status = open_unit(b, "core", options->core, b->units + BITLOOM_CORE, error);
    if (!status) status = open_unit(b, "dma", options->dma, b->units + BITLOOM_DMA, error);
    if (!status) status = open_memory(b, options->memory, error);
    if (status) {
        bitloom_linux_close(b);
        return status;
    }
    if (b->units[0].interrupts || b->units[1].interrupts) p->wait = wait_for_interrupt;
    *board = b;
    return BITLOOM_OK;
}

const bitloom_platform *bitloom_linux_platform(const bitloom_linux *board) { return &board->platform; }

void bitloom_linux_close(bitloom_linux *board) {
    if (!board) return;
    close_window(board->units);
    close_window(board->units + 1);
    close_window(&board->memory);
    free(board);
}

/* Files */

bitloom_status bitloom_linux_file(const char *path, void **bytes, size_t *size, bitloom_error *error) {
    struct stat status;
    size_t done = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *bytes = NULL;
    *size = 0;
    if (file < 0) return fail(error, BITLOOM_INVALID, "%s: must be readable, got: %s", path, strerror(errno));
    if (fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_size < 0 || status.st_size > (off_t)1 << 31) {
        close(file);
        return fail(error, BITLOOM_INVALID, "%s: must be a file of at most 2 GB, got another", path);
    }
    *size = (size_t)status.st_size;
    *bytes = malloc(*size ? *size : 1);
    while (*bytes && done < *size) {
        const ssize_t part = read(file, (char *)*bytes + done, *size - done);
        if (part <= 0 && !(part < 0 && errno == EINTR)) break;
        if (part > 0) done += (size_t)part;
    }
    close(file);
    if (*bytes && done == *size) return BITLOOM_OK;
    free(*bytes);
    *bytes = NULL;
    return fail(error, BITLOOM_NO_MEMORY, "%s: %lu bytes must be read, got %lu", path, (unsigned long)*size,
                (unsigned long)done);
}
