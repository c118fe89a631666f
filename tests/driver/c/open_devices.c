/* Opens a device with a manifest and loads a program, of which the paths come in two lines each, and says:

       opened <message of bitloom_load>
       refused <message of bitloom_open>

   The platform is a core that answers as the manifest's, takes every word at once, and keeps nothing: so that a load
   comes to its last step, where the signature is another. Its memory is as small as can be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitloom.h"

typedef struct board {
    uint32_t digest[4], words_in;
    uint64_t time;
} board;

static void *allocate(void *context, size_t bytes) {
    (void)context;
    return bytes > 1u << 28 ? NULL : malloc(bytes);
}

static void release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static int read(void *context, bitloom_unit unit, uint32_t offset, uint32_t *value) {
    board *b = context;
    *value = 0;
    if (unit == BITLOOM_DMA && offset % 0x30 == 4) *value = 2;
    else if (unit == BITLOOM_DMA) return 0;
    else if (offset == BITLOOM_REG_IDENT) *value = BITLOOM_IDENT;
    else if (offset == BITLOOM_REG_VERSION) *value = BITLOOM_INTERFACE_MAJOR << 16 | BITLOOM_INTERFACE_MINOR << 8;
    else if (offset >= BITLOOM_REG_DIGEST_0 && offset <= BITLOOM_REG_DIGEST_3) *value = b->digest[(offset - 8) / 4];
    else if (offset == BITLOOM_REG_STATUS) *value = BITLOOM_STATUS_LOADED;
    else if (offset == BITLOOM_REG_WORDS_IN) *value = b->words_in;
    return 0;
}

static int write(void *context, bitloom_unit unit, uint32_t offset, uint32_t value) {
    board *b = context;
    if (unit == BITLOOM_DMA && offset == 0x28) b->words_in += value / 4;
    return 0;
}

static uint64_t now_us(void *context) { return ((board *)context)->time += 100000; }

static uint8_t *contents(size_t *size) {
    char path[4096];
    uint8_t *bytes;
    FILE *file;
    if (!fgets(path, sizeof path, stdin)) return NULL;
    path[strcspn(path, "\n")] = 0;
    file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit(1);
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size ? *size : 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) exit(1);
    fclose(file);
    return bytes;
}

/* The digest that the manifest names, wherever it stands. */
static void take_digest(board *b, const uint8_t *text, size_t size) {
    static const char KEY[] = "\"digest\": \"";
    size_t i, k;
    for (i = 0; i + sizeof KEY + 32 < size; i++)
        if (!memcmp(text + i, KEY, sizeof KEY - 1)) {
            for (k = 0; k < 4; k++) {
                char part[9];
                memcpy(part, text + i + sizeof KEY - 1 + 8 * k, 8);
                part[8] = 0;
                b->digest[k] = (uint32_t)strtoul(part, NULL, 16);
            }
            return;
        }
}

int main(void) {
    uint8_t *manifest, *file;
    size_t manifest_size, size;
    while ((manifest = contents(&manifest_size)) && (file = contents(&size))) {
        board b = {{0}, 0, 0};
        bitloom_platform p;
        bitloom_program *program = NULL;
        bitloom_device *device;
        bitloom_error error = {BITLOOM_OK, 0, "none"};
        take_digest(&b, manifest, manifest_size);
        memset(&p, 0, sizeof p);
        p.context = &b;
        p.name = "board";
        p.heap.allocate = allocate;
        p.heap.release = release;
        p.memory_bytes = 4096;
        p.memory = malloc(p.memory_bytes);
        p.dma_length_bits = 12;
        p.timeout_ms = 1000;
        p.read = read;
        p.write = write;
        p.now_us = now_us;
        if (bitloom_open(&p, manifest, manifest_size, &device, &error)) {
            if (device) abort();
            printf("refused %s\n", error.text);
        } else {
            if (!bitloom_program_read(&p.heap, file, size, "file", &program, &error))
                if (!bitloom_load(device, program, &error)) strcpy(error.text, "none");
            printf("opened %s\n", error.text);
        }
        bitloom_close(device);
        bitloom_program_free(program);
        free((void *)(uintptr_t)p.memory);
        free(manifest);
        free(file);
    }
    return 0;
}
