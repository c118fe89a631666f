/* Reads programs whose paths come in lines, and says of each what bitloom_program_read did:

       read <most heap bytes> <name> <height> <width> <channels> <low> <high> <outputs> <maps> <scores>
            <classes> <sum of a payload> <sum of outputs>
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

/* A frame of some values there and results back, as a device does it. */
static sums use(const bitloom_heap *heap, const bitloom_program *program) {
    sums sum = {0, 0};
    const bitloom_program_facts *facts = bitloom_program_about(program);
    bitloom_scratch scratch;
    int64_t *image = exactly(facts->image_values * sizeof *image), *outputs = exactly(facts->outputs * sizeof *outputs);
    uint32_t *payload = exactly(4 * program->payload_words), *words = exactly(4 * program->result_words);
    double *scores = exactly(sizeof *scores * facts->scores);
    int32_t number;
    size_t i;
    const int64_t step = program->encoding == BITLOOM_BIPOLAR ? 2 : 1;
    const uint64_t values = (uint64_t)((facts->high - facts->low) / step) + 1;
    for (i = 0; i < facts->image_values; i++)
        image[i] = facts->low + (int64_t)(7 * (uint64_t)i % values) * step;
    for (i = 0; i < program->result_words; i++) words[i] = (uint32_t)i * 2654435761u;
    for (i = 0; i < facts->classes; i++)
        if (!bitloom_class_name(program, i)) abort();
    if (!bitloom_scratch_allocate(heap, program, &scratch, NULL)) {
        if (bitloom_pack(program, &scratch, image, BITLOOM_INT64, 0, false, payload, NULL)) abort();
        for (i = 0; i < program->payload_words; i++) sum.payload = 31 * sum.payload + payload[i];
        bitloom_pack(program, &scratch, image, BITLOOM_INT64, 0, true, payload, NULL);
        bitloom_unpack(program, words, outputs);
        for (i = 0; i < facts->outputs; i++) sum.outputs = 31 * sum.outputs + (uint32_t)outputs[i];
        bitloom_class_of(program, outputs, scores, &number);
        if (facts->scores) bitloom_host_scores(&program->host, outputs, true, scores);
        bitloom_scratch_free(heap, &scratch);
    }
    free(image);
    free(outputs);
    free(payload);
    free(words);
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
            printf("read %lu %s %lu %lu %lu %.0f %.0f %lu %lu %lu %lu %lu %lu\n", (unsigned long)most, f->name,
                   (unsigned long)f->height, (unsigned long)f->width, (unsigned long)f->channels, (double)f->low,
                   (double)f->high, (unsigned long)f->outputs, (unsigned long)f->output_maps,
                   (unsigned long)f->scores, (unsigned long)f->classes, (unsigned long)sum.payload,
                   (unsigned long)sum.outputs);
            bitloom_program_free(program);
        }
        if (count.now) abort(); /* a leak */
        free(bytes);
    }
    return 0;
}
