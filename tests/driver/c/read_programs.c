/* Reads programs whose paths come in lines, and says of each what bitloom_program_read did:

       read <most heap bytes> <name> <height> <width> <channels> <low> <high> <outputs> <maps> <scores>
            <classes> <programs> <sum of payloads> <sum of outputs>
       refused <most heap bytes> <message>

   Of a program that was read, a frame is packed and results are unpacked, each in memory that is exactly as large as
   it needs to be, so that AddressSanitizer sees every byte too many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitloom_parts.h"

typedef struct counted {
    size_t now, most;
} counted;

static void *allocate(void *context, size_t bytes) {
    counted *count = context;
    size_t *memory = malloc(bytes + 16);
    if (!memory) return NULL;
    *memory = bytes;
    count->now += bytes;
    if (count->now > count->most) count->most = count->now;
    return (char *)memory + 16;
}

static void release(void *context, void *memory) {
    size_t *begin = (size_t *)((char *)memory - 16);
    ((counted *)context)->now -= *begin;
    free(begin);
}

static void *exactly(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (!memory) abort();
    return memory;
}

/* A sum of 32-bit numbers that tells their order: each step multiplies by 31. */
typedef struct sums {
    uint32_t payload, outputs;
} sums;

static size_t values_of(const bitloom_map *map) { return (size_t)map->height * map->width * map->channels; }

/* Some values of a map, as the program of a turn takes them. */
static int64_t *some_values(const bitloom_map *map, const bitloom_program *reader) {
    const bitloom_program_facts *facts = &reader->facts;
    const int64_t step = reader->encoding == BITLOOM_BIPOLAR ? 2 : 1;
    const uint64_t count = (uint64_t)((facts->high - facts->low) / step) + 1;
    int64_t *values = exactly(values_of(map) * sizeof *values);
    size_t i;
    for (i = 0; i < values_of(map); i++) values[i] = facts->low + (int64_t)(7 * (uint64_t)i % count) * step;
    return values;
}

/* Frames of some values there and results back, as a device does it, turn after turn. */
static sums use(const bitloom_heap *heap, const bitloom_program *network) {
    sums sum = {0, 0};
    const bitloom_program_facts *facts = bitloom_program_about(network);
    bitloom_held *maps = exactly(network->map_count * sizeof *maps);
    bitloom_scratch scratch;
    double *scores = exactly(sizeof *scores * facts->scores);
    int64_t *ends = exactly(sizeof *ends * facts->outputs);
    int32_t number;
    size_t i, t;
    for (i = 0; i < facts->classes; i++)
        if (!bitloom_class_name(network, i)) abort();
    if (!bitloom_scratch_allocate(heap, network, &scratch, NULL)) {
        for (t = 0; t < network->turn_count; t++) {
            const bitloom_turn *turn = network->turns + t;
            const bitloom_program *program = turn->program;
            const bitloom_map *given = network->maps + turn->gives.map;
            int64_t *outputs = exactly(program->facts.outputs * sizeof *outputs);
            uint32_t *payload = exactly(4 * program->payload_words), *words = exactly(4 * program->result_words);
            bitloom_held held = {NULL, given->type, 0, false};
            bitloom_error error;
            for (i = 0; i < turn->read_count; i++) {
                const size_t map = turn->reads[i].map;
                maps[map].values = some_values(network->maps + map, program);
                maps[map].type = BITLOOM_INT64;
            }
            maps[0].as_file = false;
            if (bitloom_pack(network, turn, maps, &scratch, 0, payload, NULL)) abort();
            for (i = 0; i < program->payload_words; i++) sum.payload = 31 * sum.payload + payload[i];
            maps[0].as_file = true;
            bitloom_pack(network, turn, maps, &scratch, 0, payload, NULL);
            for (i = 0; i < program->result_words; i++) words[i] = (uint32_t)i * 2654435761u;
            bitloom_unpack(program, words, outputs);
            for (i = 0; i < program->facts.outputs; i++) sum.outputs = 31 * sum.outputs + (uint32_t)outputs[i];
            held.values = exactly(given->bytes ? given->bytes : 8 * values_of(given));
            if (!given->bytes) held.type = BITLOOM_INT64;
            if (bitloom_give(network, turn, outputs, 0, &held, &error) && !strstr(error.text, "values must be")) abort();
            free(held.values);
            for (i = 0; i < turn->read_count; i++) free(maps[turn->reads[i].map].values);
            free(outputs);
            free(payload);
            free(words);
        }
        bitloom_class_of(network, ends, scores, &number);
        if (facts->scores) bitloom_host_scores(&network->host, ends, true, scores);
        bitloom_scratch_free(heap, &scratch);
    }
    free(maps);
    free(ends);
    free(scores);
    return sum;
}

int main(void) {
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        counted count = {0, 0};
        bitloom_heap heap = {&count, allocate, release};
        bitloom_program *program;
        bitloom_error error;
        uint8_t *bytes;
        long size;
        FILE *file;
        path[strcspn(path, "\n")] = 0;
        file = fopen(path, "rb");
        if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) return 1;
        rewind(file);
        bytes = exactly((size_t)size);
        if (fread(bytes, 1, (size_t)size, file) != (size_t)size) return 1;
        fclose(file);
        if (bitloom_program_read(&heap, bytes, (size_t)size, "file", &program, &error)) {
            if (program) abort();
            printf("refused %lu %s\n", (unsigned long)count.most, error.text);
        } else {
            const bitloom_program_facts *f = bitloom_program_about(program);
            const size_t most = count.most;
            const sums sum = use(&heap, program);
            printf("read %lu %s %lu %lu %lu %.0f %.0f %lu %lu %lu %lu %lu %lu %lu\n", (unsigned long)most, f->name,
                   (unsigned long)f->height, (unsigned long)f->width, (unsigned long)f->channels, (double)f->low,
                   (double)f->high, (unsigned long)f->outputs, (unsigned long)f->output_maps,
                   (unsigned long)f->scores, (unsigned long)f->classes,
                   (unsigned long)f->programs, (unsigned long)sum.payload, (unsigned long)sum.outputs);
            bitloom_program_free(program);
        }
        if (count.now) abort(); /* a leak */
        free(bytes);
    }
    return 0;
}
