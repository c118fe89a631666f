/* A compiled network: its file, checked as hls_gen/design/program.py checks it, images into payloads of frames, and
   result words into outputs. */
#include <string.h>

#include "bitloom_parts.h"

/* Bits of an image at most, as the compiler has it (BITLOOM_MAX_FRAME_BITS). */
#define MOST_IMAGE_BITS (1u << 24)
enum { LABEL_LENGTH = 100, ZERO = -1, ONE = -2, FORMAT_VERSION = 2 };

/* Reading */

static bitloom_status read_names(bitloom_program *p, const bitloom_json *json) {
    static const struct {
        const char *key, *rule;
        size_t offset;
    } TEXTS[] = {
        {"name", "name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or .",
         offsetof(bitloom_program, name)},
        {"design_digest", "design_digest must be 64 lower-case hex digits", offsetof(bitloom_program, design)},
        {"model_digest", "model_digest must be 64 lower-case hex digits", offsetof(bitloom_program, model)},
    };
    unsigned i;
    for (i = 0; i < 3; i++) {
        const bitloom_node *node = bitloom_json_get(json, json->nodes, TEXTS[i].key);
        char *text = (char *)p + TEXTS[i].offset;
        if (!bitloom_json_text(json, node, 64, text, 65) ||
            !(i ? bitloom_is_digest(text, strlen(text)) : bitloom_is_name(text, strlen(text))))
            return bitloom_json_wrong(json, TEXTS[i].rule, node);
    }
    p->facts.name = p->name;
    return BITLOOM_OK;
}

/* An integer of 1..2^31 - 1. */
static bool size_of(const bitloom_json *json, const bitloom_node *node, uint32_t *size) {
    int64_t number;
    if (!bitloom_json_integer(json, node, &number) || number < 1 || number > INT32_MAX) return false;
    *size = (uint32_t)number;
    return true;
}

static bitloom_status read_input(bitloom_program *p, const bitloom_json *json) {
    static const char *const KINDS[] = {"bipolar", "ternary", "signed", "unsigned"};
    static const char *const SIZES[] = {"height", "width", "channels"};
    bitloom_program_facts *facts = &p->facts;
    const bitloom_node *input = bitloom_json_get(json, json->nodes, "input");
    const bitloom_node *encoding = bitloom_json_get(json, input, "encoding");
    const bitloom_node *kind = bitloom_json_get(json, encoding, "kind");
    uint32_t *sizes[3], bits;
    uint64_t values;
    unsigned i;
    sizes[0] = &facts->height;
    sizes[1] = &facts->width;
    sizes[2] = &facts->channels;
    for (i = 0; i < 3; i++)
        if (!size_of(json, bitloom_json_get(json, input, SIZES[i]), sizes[i]))
            return bitloom_json_wrong(json, "input: height, width and channels must be integers 1..2147483647", input);
    for (i = 0; i < 4 && !bitloom_json_is(json, kind, KINDS[i]); i++) {
    }
    if (i == 4)
        return bitloom_json_wrong(json, "encoding: kind must be one of bipolar, ternary, signed, unsigned", kind);
    p->encoding = (bitloom_encoding)i;
    if (!size_of(json, bitloom_json_get(json, encoding, "bits"), &bits) || bits > 62 ||
        (p->encoding == BITLOOM_TERNARY && bits != 2))
        return bitloom_json_wrong(json, "encoding: bits must be 1..62, of ternary 2",
                                  bitloom_json_get(json, encoding, "bits"));
    p->bits = bits;
    values = (uint64_t)facts->height * facts->width;
    if (values > MOST_IMAGE_BITS || values * facts->channels > MOST_IMAGE_BITS / bits)
        return bitloom_json_wrong(json, "an image must have at most 16777216 bits", input);
    facts->image_values = (size_t)(values * facts->channels);
    facts->high = p->encoding == BITLOOM_BIPOLAR   ? (int64_t)bits
                  : p->encoding == BITLOOM_TERNARY ? 1
                                                   : ((int64_t)1 << (bits - (p->encoding == BITLOOM_SIGNED))) - 1;
    facts->low = p->encoding == BITLOOM_SIGNED ? -facts->high - 1 : p->encoding == BITLOOM_UNSIGNED ? 0 : -facts->high;
    return BITLOOM_OK;
}

static bitloom_status read_output(bitloom_program *p, const bitloom_json *json) {
    static const char *const KINDS[] = {"raw", "bits", "signed"};
    bitloom_program_facts *facts = &p->facts;
    const bitloom_node *kind = bitloom_json_get(json, json->nodes, "output_kind"), *entry;
    const bitloom_node *shape = bitloom_json_get(json, json->nodes, "output_shape");
    uint32_t sizes[3];
    uint64_t outputs = 1;
    unsigned i;
    for (i = 0; i < 3 && !bitloom_json_is(json, kind, KINDS[i]); i++) {
    }
    if (i == 3) return bitloom_json_wrong(json, "output_kind must be one of raw, bits, signed", kind);
    p->output = (bitloom_output)i;
    if (!shape || shape->kind != BITLOOM_JSON_LIST || shape->count != 3)
        return bitloom_json_wrong(json, "output_shape must be 3 integers >= 1", shape);
    for (i = 0, entry = shape + 1; i < 3; i++, entry = bitloom_json_next(json, entry)) {
        if (!size_of(json, entry, sizes + i))
            return bitloom_json_wrong(json, "output_shape must be 3 integers >= 1", shape);
        outputs *= sizes[i];
        if (outputs > p->arrays[BITLOOM_RESULT_INDEX].shape[0])
            return bitloom_json_wrong(json, "output_shape must have as many outputs as result_index has rows", shape);
    }
    if (outputs != p->arrays[BITLOOM_RESULT_INDEX].shape[0])
        return bitloom_json_wrong(json, "output_shape must have as many outputs as result_index has rows", shape);
    facts->output_height = sizes[0];
    facts->output_width = sizes[1];
    facts->output_channels = sizes[2];
    facts->outputs = (size_t)outputs;
    return BITLOOM_OK;
}

/* How many maps leave, which files say where there are several. */
static bitloom_status read_output_maps(bitloom_program *p, const bitloom_json *json) {
    const bitloom_node *maps = bitloom_json_get(json, json->nodes, "output_maps");
    p->facts.output_maps = 1;
    if (maps && !size_of(json, maps, &p->facts.output_maps))
        return bitloom_json_wrong(json, "output_maps must be an integer 1..2147483647", maps);
    return BITLOOM_OK;
}

static bitloom_status read_classes(bitloom_program *p, const bitloom_json *json) {
    const bitloom_node *classes = bitloom_json_get(json, json->nodes, "classes"), *entry;
    const char *rule = "classes must be none or a name of 1..100 printable characters for each output channel";
    uint32_t i;
    size_t room, used = 0;
    if (!classes || classes->kind != BITLOOM_JSON_LIST ||
        (classes->count && classes->count != p->facts.output_channels))
        return bitloom_json_wrong(json, rule, classes);
    room = classes->end - classes->begin + 1; /* a name is never longer than what JSON has of it */
    p->class_names = bitloom_allocate(&p->heap, room, 1);
    if (!p->class_names)
        return bitloom_fail(json->error, BITLOOM_NO_MEMORY, json->name, "classes need memory, got none");
    for (i = 0, entry = classes + 1; i < classes->count; i++, entry = bitloom_json_next(json, entry)) {
        char *text = p->class_names + used;
        if (!bitloom_json_text(json, entry, LABEL_LENGTH, text, room - used) || strspn(text, " ") == strlen(text))
            return bitloom_json_wrong(json, rule, entry);
        used += strlen(text) + 1;
    }
    p->facts.classes = classes->count;
    return BITLOOM_OK;
}

static bitloom_status read_header(bitloom_program *p, const bitloom_json *json) {
    const bitloom_node *format = bitloom_json_get(json, json->nodes, "format");
    const bitloom_node *version = bitloom_json_get(json, json->nodes, "version");
    bitloom_status status;
    int64_t number = 0;
    if (json->nodes->kind != BITLOOM_JSON_OBJECT) return bitloom_json_wrong(json, "must be a JSON object", json->nodes);
    if (!bitloom_json_is(json, format, "bitloom-program"))
        return bitloom_json_wrong(json, "format must be bitloom-program", format);
    if (!bitloom_json_integer(json, version, &number) || number != FORMAT_VERSION)
        return bitloom_json_wrong(json, "version must be 2", version);
    status = read_names(p, json);
    if (!status) status = read_input(p, json);
    if (!status) status = read_output(p, json);
    if (!status) status = read_output_maps(p, json);
    return status ? status : read_classes(p, json);
}

/* The one integer of an array, `least` or more. */
static bitloom_status read_scalar(bitloom_program *p, unsigned array, int64_t least, int64_t most, size_t *out,
                                  const char *name, bitloom_error *error) {
    const bitloom_array *given = p->arrays + array;
    const int64_t value =
        given->dtype[2] == '4' ? (int64_t)(int32_t)bitloom_u32(given->data) : (int64_t)bitloom_u64(given->data);
    if (value < least || value > most)
        return bitloom_fail(error, BITLOOM_INVALID, name, "%s must be %ld..%ld, got %.0f", bitloom_array_name(array),
                            (long)least, (long)most, (double)value);
    *out = (size_t)value;
    return BITLOOM_OK;
}

static int32_t value_at(const bitloom_array *array, size_t number) {
    return (int32_t)bitloom_u32(array->data + 4 * number);
}

/* All values of an array must be low..high. */
static bitloom_status check_values(const bitloom_program *p, unsigned array, int64_t low, int64_t high,
                                   const char *name, bitloom_error *error) {
    size_t i;
    for (i = 0; i < p->arrays[array].count; i++) {
        const int32_t value = value_at(p->arrays + array, i);
        if (value < low || value > high)
            return bitloom_fail(error, BITLOOM_INVALID, name, "%s must be %ld..%ld, got %ld", bitloom_array_name(array),
                                (long)low, (long)high, (long)value);
    }
    return BITLOOM_OK;
}

static bitloom_status read_arrays(bitloom_program *p, const char *name, bitloom_error *error) {
    const bitloom_array *source = p->arrays + BITLOOM_FRAME_SOURCE, *index = p->arrays + BITLOOM_RESULT_INDEX;
    const int64_t image_bits = (int64_t)p->facts.image_values * p->bits;
    size_t frame_words = 0;
    bitloom_status status = read_scalar(p, BITLOOM_FRAME_WORDS, 1, 0xFFFFFF, &frame_words, name, error);
    if (!status) status = read_scalar(p, BITLOOM_RESULT_WORDS, 1, INT32_MAX / 32, &p->result_words, name, error);
    if (status) return status;
    p->frame_words = (uint32_t)frame_words;
    p->weights = p->arrays[BITLOOM_WEIGHTS_ARRAY].count;
    if (p->arrays[BITLOOM_WEIGHTS_BEFORE].data)
        status = read_scalar(p, BITLOOM_WEIGHTS_BEFORE, 0, (int64_t)(p->weights > INT32_MAX ? INT32_MAX : p->weights),
                             &p->weights_before, name, error);
    if (status) return status;
    if (source->count < 32 || source->count % 32)
        return bitloom_fail(error, BITLOOM_INVALID, name, "frame_source must have 32 m bits, got %lu",
                            (unsigned long)source->count);
    p->payload_words = source->count / 32;
    status = check_values(p, BITLOOM_FRAME_SOURCE, ONE, image_bits - 1, name, error);
    if (status) return status;
    if (index->shape[1] < 1 || index->shape[1] > 62 || (p->output == BITLOOM_RAW && index->shape[1] != 1))
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "result_index must have k = 1..62, of a raw output 1, got %lu",
                            (unsigned long)index->shape[1]);
    return check_values(p, BITLOOM_RESULT_INDEX, 0, (int64_t)p->result_words * (p->output == BITLOOM_RAW ? 1 : 32) - 1,
                        name, error);
}

static bitloom_status read_program(bitloom_program *p, bitloom_bytes file, const char *name, bitloom_error *error) {
    bitloom_status status = bitloom_archive_read(file, name, p->arrays, error);
    bitloom_bytes text;
    bitloom_json json;
    if (status) return status;
    text.data = p->arrays[BITLOOM_HEADER].data;
    text.size = p->arrays[BITLOOM_HEADER].count;
    status = bitloom_json_read(&json, &p->heap, text, name, "header", error);
    if (status) return status;
    status = read_header(p, &json);
    bitloom_json_free(&json);
    if (!status) status = read_arrays(p, name, error);
    if (!status && p->arrays[BITLOOM_TAIL].data)
        status = bitloom_fail(error, BITLOOM_INVALID, name,
                              "the host's layers (tail) must be none for the driver in C, got some: use Python's");
    if (status || !p->arrays[BITLOOM_HOST].data) return status;
    text.data = p->arrays[BITLOOM_HOST].data;
    text.size = p->arrays[BITLOOM_HOST].count;
    p->has_host = true;
    status = bitloom_host_read(&p->heap, text, p, &p->host, error);
    p->facts.scores = p->host.scores;
    p->facts.takes_numbers = !p->host.takes_integers;
    return status;
}

bitloom_status bitloom_program_read(const bitloom_heap *heap, const void *bytes, size_t size, const char *name,
                                    bitloom_program **program, bitloom_error *error) {
    bitloom_program *p = bitloom_allocate(heap, 1, sizeof *p);
    bitloom_bytes file;
    bitloom_status status;
    *program = NULL;
    if (!p) return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "must fit the heap, got no memory");
    p->heap = *heap;
    file.data = bytes;
    file.size = size;
    status = read_program(p, file, name, error);
    if (status) bitloom_program_free(p);
    else *program = p;
    return status;
}

void bitloom_program_free(bitloom_program *program) {
    if (!program) return;
    bitloom_host_free(&program->heap, &program->host);
    bitloom_release(&program->heap, program->class_names);
    {
        const bitloom_heap heap = program->heap;
        bitloom_release(&heap, program);
    }
}

const bitloom_program_facts *bitloom_program_about(const bitloom_program *program) { return &program->facts; }

const char *bitloom_class_name(const bitloom_program *program, size_t number) {
    const char *text = program->class_names;
    if (number >= program->facts.classes) return NULL;
    for (; number; number--) text += strlen(text) + 1;
    return text;
}

/* Frames */

bitloom_status bitloom_scratch_allocate(const bitloom_heap *heap, const bitloom_program *program,
                                        bitloom_scratch *scratch, bitloom_error *error) {
    const bitloom_program_facts *facts = &program->facts;
    const size_t bits = facts->image_values * program->bits;
    scratch->pool = bitloom_allocate(heap, bits + 2, 1);
    scratch->numbers = bitloom_allocate(heap, program->has_host ? facts->image_values : 1, sizeof(double));
    scratch->outputs = bitloom_allocate(heap, facts->outputs, sizeof(int64_t));
    scratch->scores = bitloom_allocate(heap, facts->scores, sizeof(double));
    if (scratch->pool && scratch->numbers && scratch->outputs && scratch->scores) {
        scratch->pool[bits + 1] = 1; /* behind the image: 0, 1 */
        return BITLOOM_OK;
    }
    bitloom_scratch_free(heap, scratch);
    return bitloom_fail(error, BITLOOM_NO_MEMORY, program->name, "packing a frame needs memory, got none");
}

void bitloom_scratch_free(const bitloom_heap *heap, bitloom_scratch *scratch) {
    bitloom_release(heap, scratch->pool);
    bitloom_release(heap, scratch->numbers);
    bitloom_release(heap, scratch->outputs);
    bitloom_release(heap, scratch->scores);
    memset(scratch, 0, sizeof *scratch);
}

static int64_t integer_at(const void *images, bitloom_type type, size_t at) {
    switch (type) {
    case BITLOOM_UINT8: return ((const uint8_t *)images)[at];
    case BITLOOM_INT8: return ((const int8_t *)images)[at];
    case BITLOOM_INT16: return ((const int16_t *)images)[at];
    case BITLOOM_INT32: return ((const int32_t *)images)[at];
    default: return ((const int64_t *)images)[at];
    }
}

/* What the image's bits are, a byte each, of a value of the input; false where the encoding has no such value. */
static bool store(const bitloom_program *p, int64_t value, uint8_t *bits) {
    uint64_t code = (uint64_t)value;
    unsigned bit;
    if (value < p->facts.low || value > p->facts.high) return false;
    if (p->encoding == BITLOOM_BIPOLAR) { /* a thermometer: the first ones are 1 */
        if ((value - p->facts.low) % 2) return false;
        code = ((uint64_t)1 << ((value - p->facts.low) / 2)) - 1;
    }
    for (bit = 0; bit < p->bits; bit++) bits[bit] = (uint8_t)(code >> bit & 1);
    return true;
}

/* The payload's bits from the image's. */
static void gather(const bitloom_program *p, const uint8_t *pool, volatile uint32_t *payload) {
    const uint8_t *source = p->arrays[BITLOOM_FRAME_SOURCE].data;
    const int32_t bits = (int32_t)(p->facts.image_values * p->bits);
    size_t i;
    unsigned bit;
    for (i = 0; i < p->payload_words; i++) {
        uint32_t word = 0;
        for (bit = 0; bit < 32; bit++, source += 4) {
            const int32_t place = (int32_t)bitloom_u32(source);
            word |= (uint32_t)pool[place < 0 ? bits - 1 - place : place] << bit;
        }
        payload[i] = word;
    }
}

bitloom_status bitloom_pack(const bitloom_program *p, bitloom_scratch *scratch, const void *images, bitloom_type type,
                            size_t number, bool as_file, volatile uint32_t *payload, bitloom_error *error) {
    const size_t values = p->facts.image_values, first = number * values;
    const bool real = type == BITLOOM_FLOAT || type == BITLOOM_DOUBLE, steps = as_file && p->transform.count;
    const bool host = as_file && p->has_host && !steps, of_host = host && p->transform.of_host;
    const char *rule;
    size_t i;
    if (real && !(of_host || (host && p->facts.takes_numbers)))
        return bitloom_fail(error, BITLOOM_INVALID, p->name, "images must be integers, got real numbers");
    if (host) {
        for (i = 0; i < values; i++) {
            const size_t at = first + i;
            const double x = type == BITLOOM_FLOAT    ? ((const float *)images)[at]
                             : type == BITLOOM_DOUBLE ? ((const double *)images)[at]
                                                      : (double)integer_at(images, type, at);
            if (of_host) scratch->numbers[i] = bitloom_transform_number(p, x);
            else scratch->numbers[p->host.order[i]] = x;
        }
        if (!bitloom_host_input(p, scratch->numbers, &rule))
            return bitloom_fail(error, BITLOOM_INVALID, p->name, "image %lu: %s, got %.17g", (unsigned long)number,
                                rule, scratch->numbers[0]);
    }
    for (i = 0; i < values; i++) {
        int64_t value = host ? (int64_t)scratch->numbers[i] : integer_at(images, type, first + i);
        if (steps && !bitloom_transform_pixel(&p->transform, &value, &rule))
            return bitloom_fail(error, BITLOOM_INVALID, p->name, "image %lu: %s, got %.0f", (unsigned long)number,
                                rule, (double)value);
        if (!store(p, value, scratch->pool + i * p->bits))
            return bitloom_fail(error, BITLOOM_INVALID, p->name, "image %lu: values must be %.0f..%.0f%s, got %.0f",
                                (unsigned long)number, (double)p->facts.low, (double)p->facts.high,
                                p->encoding == BITLOOM_BIPOLAR ? " in steps of 2" : "", (double)value);
    }
    gather(p, scratch->pool, payload);
    return BITLOOM_OK;
}

void bitloom_unpack(const bitloom_program *p, const volatile uint32_t *words, int64_t *outputs) {
    const bitloom_array *index = p->arrays + BITLOOM_RESULT_INDEX;
    const size_t bits = index->shape[1];
    size_t i, bit;
    for (i = 0; i < p->facts.outputs; i++) {
        if (p->output == BITLOOM_RAW) {
            outputs[i] = (int32_t)words[value_at(index, i)];
        } else {
            uint64_t code = 0;
            unsigned ones = 0;
            for (bit = 0; bit < bits; bit++) {
                const uint32_t place = (uint32_t)value_at(index, i * bits + bit);
                const uint32_t value = words[place / 32] >> place % 32 & 1;
                code |= (uint64_t)value << bit;
                ones += value;
            }
            outputs[i] = p->output == BITLOOM_BITS ? 2 * (int64_t)ones - (int64_t)bits
                         : code >> (bits - 1) & 1  ? (int64_t)code - ((int64_t)1 << bits)
                                                   : (int64_t)code;
        }
    }
}

bool bitloom_class_of(const bitloom_program *p, const int64_t *outputs, double *scores, int32_t *number) {
    const bool single_bits = p->output == BITLOOM_BITS && p->arrays[BITLOOM_RESULT_INDEX].shape[1] == 1;
    size_t i, best = 0;
    if (p->has_host) {
        if (!bitloom_host_scores(&p->host, outputs, false, scores)) return false;
        for (i = 1; i < p->host.scores; i++)
            if (scores[i] > scores[best]) best = i;
    } else if (single_bits) {
        for (i = 0; i < p->facts.outputs; i++)
            if (outputs[i] > 0) best = i;
    } else {
        for (i = 1; i < p->facts.outputs; i++)
            if (outputs[i] > outputs[best]) best = i;
    }
    *number = (int32_t)best;
    return true;
}
