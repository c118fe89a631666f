/* A compiled network: its file, checked as hls_gen/design/program.py checks it, images into payloads of frames, and
   result words into outputs. */
#include <stdio.h>
#include <string.h>

#include "bitloom_parts.h"

enum { LABEL_LENGTH = 100, UNUSED = -1, ONE = -2, MAP_NUMBERS = 6 };

/* Reading */

bitloom_status bitloom_read_format(const bitloom_json *json, const char *format, int64_t version) {
    const bitloom_node *given = bitloom_json_get(json, json->nodes, "format");
    const bitloom_node *of = bitloom_json_get(json, json->nodes, "version");
    char rule[64];
    int64_t number = 0;
    if (json->nodes->kind != BITLOOM_JSON_OBJECT) return bitloom_json_wrong(json, "must be a JSON object", json->nodes);
    snprintf(rule, sizeof rule, "format must be %s", format);
    if (!bitloom_json_is(json, given, format)) return bitloom_json_wrong(json, rule, given);
    snprintf(rule, sizeof rule, "version must be %ld", (long)version);
    if (!bitloom_json_integer(json, of, &number) || number != version) return bitloom_json_wrong(json, rule, of);
    return BITLOOM_OK;
}

bitloom_status bitloom_read_text(const bitloom_json *json, bitloom_text which, char out[65]) {
    static const struct {
        const char *key, *rule;
    } TEXTS[] = {
        {"name", "name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ."},
        {"design_digest", "design_digest must be 64 lower-case hex digits"},
        {"model_digest", "model_digest must be 64 lower-case hex digits"},
    };
    const bitloom_node *node = bitloom_json_get(json, json->nodes, TEXTS[which].key);
    if (bitloom_json_text(json, node, 64, out, 65) &&
        (which == BITLOOM_NAME ? bitloom_is_name(out, strlen(out)) : bitloom_is_digest(out, strlen(out))))
        return BITLOOM_OK;
    return bitloom_json_wrong(json, TEXTS[which].rule, node);
}

bool bitloom_read_size(const bitloom_json *json, const bitloom_node *node, uint32_t *size) {
    int64_t number;
    if (!bitloom_json_integer(json, node, &number) || number < 1 || number > INT32_MAX) return false;
    *size = (uint32_t)number;
    return true;
}

/* Which of some words a node is; `count` if it is none of them. */
static unsigned word_of(const bitloom_json *json, const bitloom_node *node, const char *const *words, unsigned count) {
    unsigned i;
    for (i = 0; i < count && !bitloom_json_is(json, node, words[i]); i++) {
    }
    return i;
}

static bitloom_status read_input(bitloom_program *p, const bitloom_json *json) {
    static const char *const ENCODINGS[] = BITLOOM_ENCODINGS;
    const unsigned encodings = sizeof ENCODINGS / sizeof *ENCODINGS;
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
        if (!bitloom_read_size(json, bitloom_json_get(json, input, SIZES[i]), sizes[i]))
            return bitloom_json_wrong(json, "input: height, width and channels must be integers 1..2147483647", input);
    i = word_of(json, kind, ENCODINGS, encodings);
    if (i == encodings) return bitloom_json_wrong(json, "encoding: kind must be one of " BITLOOM_ENCODINGS_TEXT, kind);
    p->encoding = (bitloom_encoding)i;
    if (!bitloom_read_size(json, bitloom_json_get(json, encoding, "bits"), &bits) || bits > BITLOOM_MOST_BITS ||
        (p->encoding == BITLOOM_TERNARY && bits != 2))
        return bitloom_json_wrong(json,
                                  "encoding: bits must be 1.." BITLOOM_DECIMAL(BITLOOM_MOST_BITS) ", of ternary 2",
                                  bitloom_json_get(json, encoding, "bits"));
    p->bits = bits;
    values = (uint64_t)facts->height * facts->width;
    if (values > BITLOOM_MOST_IMAGE_BITS || values * facts->channels > BITLOOM_MOST_IMAGE_BITS / bits)
        return bitloom_json_wrong(json, "an image must have at most " BITLOOM_DECIMAL(BITLOOM_MOST_IMAGE_BITS) " bits",
                                  input);
    facts->image_values = (size_t)(values * facts->channels);
    facts->high = p->encoding == BITLOOM_BIPOLAR   ? (int64_t)bits
                  : p->encoding == BITLOOM_TERNARY ? 1
                                                   : ((int64_t)1 << (bits - (p->encoding == BITLOOM_SIGNED))) - 1;
    facts->low = p->encoding == BITLOOM_SIGNED ? -facts->high - 1 : p->encoding == BITLOOM_UNSIGNED ? 0 : -facts->high;
    return BITLOOM_OK;
}

/* The numbers of a frame's layout; `read_layout` reads its arrays. */
static bitloom_status read_frame(bitloom_program *p, const bitloom_json *json) {
    const bitloom_node *frame = bitloom_json_get(json, json->nodes, "frame");
    const bitloom_node *stream = bitloom_json_get(json, json->nodes, "stream_bits");
    uint32_t word_bits;
    if (!bitloom_read_size(json, stream, &p->stream_bits) || (p->stream_bits != 32 && p->stream_bits != 64))
        return bitloom_json_wrong(json, "stream_bits must be 32 or 64", stream);
    if (!bitloom_read_size(json, bitloom_json_get(json, frame, "channels"), &p->position_values) ||
        p->facts.image_values % p->position_values)
        return bitloom_json_wrong(json, "frame: channels must be a divisor of an image's values", frame);
    if (!bitloom_read_size(json, bitloom_json_get(json, frame, "lane_bits"), &p->frame.lane_bits) ||
        p->frame.lane_bits > BITLOOM_MOST_LANE_BITS)
        return bitloom_json_wrong(json, "frame: lane_bits must be 1.." BITLOOM_DECIMAL(BITLOOM_MOST_LANE_BITS), frame);
    if (!bitloom_read_size(json, bitloom_json_get(json, frame, "word_bits"), &word_bits))
        return bitloom_json_wrong(json, "frame: word_bits must be an integer 1..2147483647", frame);
    p->frame.word_bits = word_bits;
    return BITLOOM_OK;
}

static bitloom_status read_output(bitloom_program *p, const bitloom_json *json) {
    static const char *const KINDS[] = BITLOOM_RESULT_KINDS;
    const unsigned kinds = sizeof KINDS / sizeof *KINDS;
    bitloom_program_facts *facts = &p->facts;
    const bitloom_node *kind = bitloom_json_get(json, json->nodes, "output_kind"), *entry;
    const bitloom_node *shape = bitloom_json_get(json, json->nodes, "output_shape");
    uint32_t sizes[3];
    uint64_t outputs = 1;
    unsigned i;
    i = word_of(json, kind, KINDS, kinds);
    if (i == kinds) return bitloom_json_wrong(json, "output_kind must be one of " BITLOOM_RESULT_KINDS_TEXT, kind);
    p->output = (bitloom_result_kind)i;
    if (!shape || shape->kind != BITLOOM_JSON_LIST || shape->count != 3)
        return bitloom_json_wrong(json, "output_shape must be 3 integers >= 1", shape);
    for (i = 0, entry = shape + 1; i < 3; i++, entry = bitloom_json_next(json, entry)) {
        if (!bitloom_read_size(json, entry, sizes + i))
            return bitloom_json_wrong(json, "output_shape must be 3 integers >= 1", shape);
        outputs *= sizes[i];
        if (outputs > BITLOOM_MOST_VALUES)
            return bitloom_json_wrong(
                json, "output_shape must have at most " BITLOOM_DECIMAL(BITLOOM_MOST_VALUES) " values", shape);
    }
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
    if (maps && !bitloom_read_size(json, maps, &p->facts.output_maps))
        return bitloom_json_wrong(json, "output_maps must be an integer 1..2147483647", maps);
    return BITLOOM_OK;
}

bitloom_status bitloom_read_classes(bitloom_program *p, const bitloom_json *json) {
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
    TRY(bitloom_read_format(json, "bitloom-program", BITLOOM_PROGRAM_VERSION));
    TRY(bitloom_read_text(json, BITLOOM_NAME, p->name));
    TRY(bitloom_read_text(json, BITLOOM_DESIGN_DIGEST, p->design));
    TRY(bitloom_read_text(json, BITLOOM_MODEL_DIGEST, p->model));
    TRY(read_input(p, json));
    TRY(read_frame(p, json));
    TRY(read_output(p, json));
    TRY(read_output_maps(p, json));
    return bitloom_read_classes(p, json);
}

/* The one integer of an array, 0..`most`. */
static bitloom_status read_scalar(bitloom_program *p, unsigned array, int64_t most, size_t *out, const char *name,
                                  bitloom_error *error) {
    const bitloom_array *given = p->arrays + array;
    const int64_t value =
        given->dtype[2] == '4' ? (int64_t)(int32_t)bitloom_u32(given->data) : (int64_t)bitloom_u64(given->data);
    if (value < 0 || value > most)
        return bitloom_fail(error, BITLOOM_INVALID, name, "%s must be 0..%ld, got %.0f", bitloom_array_name(array),
                            (long)most, (double)value);
    *out = (size_t)value;
    return BITLOOM_OK;
}

static int32_t value_at(const bitloom_array *array, size_t number) {
    return (int32_t)bitloom_u32(array->data + 4 * number);
}

/* Some values of an array must be low..high. */
static bitloom_status check_values(const bitloom_program *p, unsigned array, size_t first, size_t count, int64_t low,
                                   int64_t high, const char *name, bitloom_error *error) {
    size_t i;
    for (i = first; i < first + count; i++) {
        const int32_t value = value_at(p->arrays + array, i);
        if (value < low || value > high)
            return bitloom_fail(error, BITLOOM_INVALID, name, "%s must be %ld..%.0f, got %ld",
                                bitloom_array_name(array), (long)low, (double)high, (long)value);
    }
    return BITLOOM_OK;
}

/* How words become stream words: sets their `together` and `pieces`, and `taken`, the 32-bit words that `count` of them
   take. False where these are more than BITLOOM_MOST_WORDS. */
static bool gear(bitloom_words *words, uint32_t stream_bits, uint64_t count, size_t *taken) {
    const uint64_t together = words->word_bits <= stream_bits ? stream_bits / words->word_bits : 1;
    const uint64_t pieces = words->word_bits <= stream_bits ? 1 : (words->word_bits + stream_bits - 1) / stream_bits;
    const uint64_t units = (count + together - 1) / together;
    if (units > BITLOOM_MOST_WORDS || pieces > BITLOOM_MOST_WORDS ||
        units * pieces * (stream_bits / 32) > BITLOOM_MOST_WORDS)
        return false;
    words->together = (uint32_t)together;
    words->pieces = (uint32_t)pieces;
    *taken = (size_t)(units * pieces * (stream_bits / 32));
    return true;
}

/* The layout of frames: its arrays, and the table of its lanes. */
static bitloom_status read_layout(bitloom_program *p, const char *name, bitloom_error *error) {
    const bitloom_array *positions = p->arrays + BITLOOM_FRAME_POSITIONS, *lanes = p->arrays + BITLOOM_FRAME_LANES;
    const uint64_t values = (uint64_t)positions->shape[1] * p->position_values, bits = values * p->bits;
    uint64_t words;
    size_t i;
    bitloom_status status;
    if (!positions->count || !lanes->count)
        return bitloom_fail(error, BITLOOM_INVALID, name, "frame_positions and frame_lanes must have a value, got none");
    status = check_values(p, BITLOOM_FRAME_POSITIONS, 0, positions->count, UNUSED,
                          (int64_t)(p->facts.image_values / p->position_values) - 1, name, error);
    if (!status)
        status = check_values(p, BITLOOM_FRAME_LANES, 0, lanes->count, ONE,
                              bits > INT32_MAX ? INT32_MAX : (int64_t)bits - 1, name, error);
    if (status) return status;
    if (lanes->shape[1] > BITLOOM_MOST_LANES)
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "frame_lanes must have at most " BITLOOM_DECIMAL(BITLOOM_MOST_LANES)
                            " lanes a word, got %lu",
                            (unsigned long)lanes->shape[1]);
    if (values > lanes->count)
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "frame_lanes must have a lane for each of %.0f values of a group, got %lu", (double)values,
                            (unsigned long)lanes->count);
    if (lanes->shape[1] > p->frame.word_bits / p->frame.lane_bits)
        return bitloom_fail(error, BITLOOM_INVALID, name, "word_bits must be those of all lanes, got %.0f for %lu",
                            (double)p->frame.word_bits, (unsigned long)lanes->shape[1]);
    p->frame.lanes = (uint32_t)lanes->shape[1];
    words = (uint64_t)positions->shape[0] * lanes->shape[0];
    if (positions->shape[0] > 0xFFFFFF || lanes->shape[0] > 0xFFFFFF || words > 0xFFFFFF)
        return bitloom_fail(error, BITLOOM_INVALID, name, "words of a frame must be 1..16777215, got %.0f",
                            (double)words);
    p->frame_words = (uint32_t)words;
    if (!gear(&p->frame, p->stream_bits, words, &p->payload_words))
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "a frame must have at most " BITLOOM_DECIMAL(BITLOOM_MOST_WORDS) " words, got more");
    p->lanes = bitloom_allocate(&p->heap, lanes->count, sizeof *p->lanes);
    if (!p->lanes) return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "a frame's lanes need memory, got none");
    for (i = 0; i < lanes->count; i++) {
        const int32_t bit = value_at(lanes, i);
        const uint32_t value = bit < 0 ? 0 : (uint32_t)bit / p->bits;
        p->lanes[i].what = bit >= 0 ? 2 : bit == ONE;
        p->lanes[i].position = value / p->position_values;
        p->lanes[i].channel = value % p->position_values;
        p->lanes[i].shift = (uint8_t)(bit < 0 ? 0 : (uint32_t)bit % p->bits);
    }
    return BITLOOM_OK;
}

/* A map that leaves. */
typedef struct result_map {
    size_t channels, first, positions, words;
    bitloom_words form;
} result_map;

static result_map map_of(const bitloom_program *p, size_t number) {
    const bitloom_array *maps = p->arrays + BITLOOM_RESULT_MAPS;
    result_map map;
    size_t taken;
    memset(&map, 0, sizeof map);
    map.channels = (size_t)value_at(maps, MAP_NUMBERS * number);
    map.first = (size_t)value_at(maps, MAP_NUMBERS * number + 1);
    map.positions = (size_t)value_at(maps, MAP_NUMBERS * number + 2);
    map.words = (size_t)value_at(maps, MAP_NUMBERS * number + 3);
    map.form.lanes = (uint32_t)value_at(maps, MAP_NUMBERS * number + 4);
    map.form.lane_bits = (uint32_t)value_at(maps, MAP_NUMBERS * number + 5);
    map.form.word_bits = (uint64_t)map.form.lanes * map.form.lane_bits;
    gear(&map.form, p->stream_bits, (uint64_t)map.positions * map.words, &taken);
    return map;
}

/* The layout of results. */
static bitloom_status read_results(bitloom_program *p, const char *name, bitloom_error *error) {
    static const int32_t LANE_BITS[] = BITLOOM_RESULT_KIND_LANE_BITS;
    static const size_t PLACES[] = BITLOOM_RESULT_KIND_PLACES;
    static const char *const NUMBERS[MAP_NUMBERS] = {"channels", "first word", "positions", "words", "lanes", "bits"};
    int32_t low[MAP_NUMBERS] = {1, 0, 1, 1, 1, 1}, high[MAP_NUMBERS];
    const bitloom_array *maps = p->arrays + BITLOOM_RESULT_MAPS, *places = p->arrays + BITLOOM_RESULT_PLACES;
    const size_t several = PLACES[p->output];
    uint64_t values = 0;
    size_t i, j, first = 0;
    if (!maps->shape[0] || maps->shape[1] != MAP_NUMBERS)
        return bitloom_fail(error, BITLOOM_INVALID, name, "result_maps must be (maps, 6), got (%lu, %lu)",
                            (unsigned long)maps->shape[0], (unsigned long)maps->shape[1]);
    if (!places->count || places->shape[1] > several)
        return bitloom_fail(error, BITLOOM_INVALID, name, "result_places must be (channels, 1..%lu), got (%lu, %lu)",
                            (unsigned long)several, (unsigned long)places->shape[0], (unsigned long)places->shape[1]);
    for (j = 0; j < MAP_NUMBERS; j++) high[j] = INT32_MAX;
    high[4] = BITLOOM_MOST_LANES;
    high[5] = BITLOOM_MOST_LANE_BITS;
    if (LANE_BITS[p->output]) low[5] = high[5] = LANE_BITS[p->output];
    for (i = 0; i < maps->shape[0]; i++) {
        bitloom_status status;
        result_map map;
        uint64_t lanes;
        size_t taken;
        for (j = 0; j < MAP_NUMBERS; j++) {
            const int32_t number = value_at(maps, MAP_NUMBERS * i + j);
            if (number < low[j] || number > high[j])
                return bitloom_fail(error, BITLOOM_INVALID, name, "result_maps: %s must be %ld..%ld, got %ld",
                                    NUMBERS[j], (long)low[j], (long)high[j], (long)number);
        }
        map = map_of(p, i);
        if (map.channels > places->shape[0] - first)
            return bitloom_fail(error, BITLOOM_INVALID, name, "result_places must have a row a channel, got %lu",
                                (unsigned long)places->shape[0]);
        lanes = (uint64_t)map.words * map.form.lanes;
        if ((uint64_t)map.channels * places->shape[1] > lanes)
            return bitloom_fail(error, BITLOOM_INVALID, name, "result_places must be at most %.0f lanes, got %.0f",
                                (double)lanes, (double)map.channels * (double)places->shape[1]);
        status = check_values(p, BITLOOM_RESULT_PLACES, first * places->shape[1], map.channels * places->shape[1], 0,
                              lanes > INT32_MAX ? INT32_MAX : (int64_t)lanes - 1, name, error);
        if (status) return status;
        first += map.channels;
        values += (uint64_t)map.channels * map.positions;
        if (!gear(&map.form, p->stream_bits, (uint64_t)map.positions * map.words, &taken) ||
            map.first > BITLOOM_MOST_WORDS - taken)
            return bitloom_fail(error, BITLOOM_INVALID, name,
                                "a result must have at most " BITLOOM_DECIMAL(BITLOOM_MOST_WORDS) " words, got more");
        if (map.first + taken > p->result_words) p->result_words = map.first + taken;
        if (values > p->facts.outputs) break; /* before they are more than 64 bits count */
    }
    if (values == p->facts.outputs && first != places->shape[0])
        return bitloom_fail(error, BITLOOM_INVALID, name, "result_places must have %lu rows, got %lu",
                            (unsigned long)first, (unsigned long)places->shape[0]);
    if (values != p->facts.outputs)
        return bitloom_fail(error, BITLOOM_INVALID, name, "result_maps must have the %lu values of output_shape, got %lu",
                            (unsigned long)p->facts.outputs, (unsigned long)values);
    return BITLOOM_OK;
}

static bitloom_status read_arrays(bitloom_program *p, const char *name, bitloom_error *error) {
    bitloom_status status = BITLOOM_OK;
    p->weights = p->arrays[BITLOOM_WEIGHTS_ARRAY].count;
    if (p->arrays[BITLOOM_WEIGHTS_BEFORE].data)
        status = read_scalar(p, BITLOOM_WEIGHTS_BEFORE, (int64_t)(p->weights > INT32_MAX ? INT32_MAX : p->weights),
                             &p->weights_before, name, error);
    if (!status) status = read_layout(p, name, error);
    if (!status) status = read_results(p, name, error);
    p->single_bits = p->output == BITLOOM_RESULT_BITS && p->arrays[BITLOOM_RESULT_PLACES].shape[1] == 1;
    return status;
}

/* All of a program but the host. */
static bitloom_status read_program(bitloom_program *p, const char *name, bitloom_error *error) {
    bitloom_status status;
    bitloom_bytes text;
    bitloom_json json;
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
    if (!status) bitloom_partitions_own(p);
    return status;
}

/* What the host does around an imported network. */
static bitloom_status read_host(bitloom_program *p, bitloom_error *error) {
    bitloom_status status;
    bitloom_bytes text;
    if (!p->arrays[BITLOOM_HOST].data) return BITLOOM_OK;
    text.data = p->arrays[BITLOOM_HOST].data;
    text.size = p->arrays[BITLOOM_HOST].count;
    p->has_host = true;
    status = bitloom_host_read(&p->heap, text, p, &p->host, error);
    p->facts.scores = p->host.scores;
    p->facts.takes_numbers = !p->host.takes_integers;
    return status;
}

static bitloom_status read_network(bitloom_program *p, bitloom_bytes file, bool inside, const char *name,
                                   bitloom_error *error) {
    bitloom_archive archive;
    bitloom_status status = bitloom_archive_read(&p->heap, file, name, &archive, error);
    if (status) return status;
    memcpy(p->arrays, archive.arrays, sizeof p->arrays);
    if (!archive.program_count) {
        status = read_program(p, name, error);
    } else {
        status = inside ? bitloom_fail(error, BITLOOM_INVALID, name, "must be one program, got a network in partitions")
                        : bitloom_partitions_read(p, &archive, name, error);
        bitloom_archive_free(&archive);
    }
    p->facts.name = p->name;
    return status ? status : read_host(p, error);
}

static bitloom_status read_file(const bitloom_heap *heap, bitloom_bytes file, bool inside, const char *name,
                                bitloom_program **program, bitloom_error *error) {
    bitloom_program *p = bitloom_allocate(heap, 1, sizeof *p);
    bitloom_status status;
    *program = NULL;
    if (!p) return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "must fit the heap, got no memory");
    p->heap = *heap;
    status = read_network(p, file, inside, name, error);
    if (status) bitloom_program_free(p);
    else *program = p;
    return status;
}

bitloom_status bitloom_program_inside(const bitloom_heap *heap, bitloom_bytes file, const char *name,
                                      bitloom_program **program, bitloom_error *error) {
    return read_file(heap, file, true, name, program, error);
}

bitloom_status bitloom_program_read(const bitloom_heap *heap, const void *bytes, size_t size, const char *name,
                                    bitloom_program **program, bitloom_error *error) {
    bitloom_bytes file;
    file.data = bytes;
    file.size = size;
    return read_file(heap, file, false, name, program, error);
}

void bitloom_program_free(bitloom_program *program) {
    if (!program) return;
    bitloom_partitions_free(program);
    bitloom_host_free(&program->heap, &program->host);
    bitloom_release(&program->heap, program->class_names);
    bitloom_release(&program->heap, program->lanes);
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

bitloom_status bitloom_scratch_allocate(const bitloom_heap *heap, const bitloom_program *network,
                                        bitloom_scratch *scratch, bitloom_error *error) {
    const bitloom_program_facts *facts = &network->facts;
    size_t values = 0, outputs = 0, i;
    for (i = 0; i < network->turn_count; i++) {
        const bitloom_program_facts *of = &network->turns[i].program->facts;
        if (of->image_values > values) values = of->image_values;
        if (of->outputs > outputs) outputs = of->outputs;
    }
    scratch->codes = bitloom_allocate(heap, values, sizeof *scratch->codes);
    scratch->numbers = bitloom_allocate(heap, network->has_host ? facts->image_values : 1, sizeof(double));
    scratch->outputs = bitloom_allocate(heap, outputs, sizeof(int64_t));
    scratch->scores = bitloom_allocate(heap, facts->scores, sizeof(double));
    if (scratch->codes && scratch->numbers && scratch->outputs && scratch->scores) return BITLOOM_OK;
    bitloom_scratch_free(heap, scratch);
    return bitloom_fail(error, BITLOOM_NO_MEMORY, network->name, "packing a frame needs memory, got none");
}

void bitloom_scratch_free(const bitloom_heap *heap, bitloom_scratch *scratch) {
    bitloom_release(heap, scratch->codes);
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

/* How a value of the input is stored; false where the encoding has no such value. */
static bool store(const bitloom_program *p, int64_t value, uint64_t *code) {
    *code = (uint64_t)value;
    if (value < p->facts.low || value > p->facts.high) return false;
    if (p->encoding == BITLOOM_BIPOLAR) { /* a thermometer: the first ones are 1 */
        if ((value - p->facts.low) % 2) return false;
        *code = value == p->facts.high ? ~(uint64_t)0 : ((uint64_t)1 << ((value - p->facts.low) / 2)) - 1;
    }
    return true;
}

/* 32-bit words that are written bit behind bit. */
typedef struct bit_writer {
    volatile uint32_t *out;
    uint64_t bits;
    unsigned count; /* below 32 */
} bit_writer;

static void put(bit_writer *writer, uint64_t number, unsigned bits) { /* 1..32 */
    writer->bits |= number << writer->count;
    writer->count += bits;
    if (writer->count < 32) return;
    *writer->out++ = (uint32_t)writer->bits;
    writer->bits >>= 32;
    writer->count -= 32;
}

static void put_zeros(bit_writer *writer, uint64_t bits) {
    for (; bits > 32; bits -= 32) put(writer, 0, 32);
    if (bits) put(writer, 0, (unsigned)bits);
}

/* The number in a lane, of the positions of its group. */
static uint64_t lane_number(const bitloom_program *p, const bitloom_lane *lane, const uint8_t *group,
                            const uint64_t *codes) {
    const int32_t position = lane->what == 2 ? (int32_t)bitloom_u32(group + 4 * lane->position) : UNUSED;
    uint64_t code;
    if (lane->what != 2) return lane->what;
    if (position == UNUSED) return 0;
    code = codes[(size_t)position * p->position_values + lane->channel];
    return lane->shift && code >> 63 ? ~(~code >> lane->shift) : code >> lane->shift; /* the sign goes on */
}

/* A frame's payload. */
static void pack_lanes(const bitloom_program *p, const uint64_t *codes, volatile uint32_t *payload) {
    const bitloom_array *positions = p->arrays + BITLOOM_FRAME_POSITIONS;
    const uint64_t mask = ((uint64_t)1 << p->frame.lane_bits) - 1;
    const uint64_t above = p->frame.word_bits - (uint64_t)p->frame.lanes * p->frame.lane_bits;
    const uint64_t unit = (uint64_t)p->frame.pieces * p->stream_bits;
    const uint8_t *group = positions->data;
    const size_t words = p->arrays[BITLOOM_FRAME_LANES].shape[0];
    uint32_t together = 0;
    size_t i, word;
    bit_writer writer;
    writer.out = payload;
    writer.bits = 0;
    writer.count = 0;
    for (i = 0; i < positions->shape[0]; i++, group += 4 * positions->shape[1]) {
        const bitloom_lane *lane = p->lanes;
        for (word = 0; word < words; word++) {
            const bitloom_lane *end = lane + p->frame.lanes;
            for (; lane < end; lane++) put(&writer, lane_number(p, lane, group, codes) & mask, p->frame.lane_bits);
            put_zeros(&writer, above);
            if (++together < p->frame.together) continue;
            put_zeros(&writer, unit - together * p->frame.word_bits);
            together = 0;
        }
    }
    if (together) put_zeros(&writer, unit - together * p->frame.word_bits);
}

/* Numbers of image `number`, as an imported network's file takes them, into the order of the input map: values of the
   input. */
static bitloom_status take_numbers(const bitloom_program *network, const bitloom_held *images, size_t number,
                                   double *numbers, bitloom_error *error) {
    const size_t values = network->facts.image_values, first = (number - images->first) * values;
    const char *rule;
    size_t i;
    for (i = 0; i < values; i++) {
        const size_t at = first + i;
        const double x = images->type == BITLOOM_FLOAT    ? ((const float *)images->values)[at]
                         : images->type == BITLOOM_DOUBLE ? ((const double *)images->values)[at]
                                                          : (double)integer_at(images->values, images->type, at);
        if (network->transform.of_host) numbers[i] = bitloom_transform_number(network, x);
        else numbers[network->host.order[i]] = x;
    }
    if (bitloom_host_input(network, numbers, &rule)) return BITLOOM_OK;
    return bitloom_fail(error, BITLOOM_INVALID, network->name, "image %lu: %s, got %.17g", (unsigned long)number, rule,
                        numbers[0]);
}

/* What messages about a value of image `number` begin with. */
typedef struct place {
    char text[BITLOOM_NAME_LENGTH + 32];
} place;

static place place_of(const bitloom_map *map, bool input, size_t number) {
    place at;
    snprintf(at.text, sizeof at.text, "%s%s%simage %lu", input ? "" : "map ", input ? "" : map->name,
             input ? "" : ": ", (unsigned long)number);
    return at;
}

bitloom_status bitloom_pack(const bitloom_program *network, const bitloom_turn *turn, const bitloom_held *maps,
                            bitloom_scratch *scratch, size_t number, volatile uint32_t *payload, bitloom_error *error) {
    const bitloom_program *p = turn->program;
    size_t part, position, before = 0;
    for (part = 0; part < turn->read_count; part++) {
        const bitloom_channels *read = turn->reads + part;
        const bitloom_held *held = maps + read->map;
        const bitloom_map *map = network->maps + read->map;
        const size_t positions = (size_t)map->height * map->width;
        const bool real = held->type == BITLOOM_FLOAT || held->type == BITLOOM_DOUBLE;
        const bool steps = held->as_file && network->transform.count, host = held->as_file && network->has_host && !steps;
        const bool takes = host && (network->transform.of_host || network->facts.takes_numbers);
        const place at = place_of(map, !read->map, number);
        const char *name = read->map ? p->name : network->name, *rule;
        if (real && !takes)
            return bitloom_fail(error, BITLOOM_INVALID, name, "images must be integers, got real numbers");
        if (host) TRY(take_numbers(network, held, number, scratch->numbers, error));
        for (position = 0; position < positions; position++) {
            const size_t first = position * map->channels, image = (number - held->first) * positions * map->channels;
            uint64_t *code = scratch->codes + position * p->facts.channels + before;
            uint32_t channel;
            for (channel = read->begin; channel < read->end; channel++, code++) {
                int64_t value = host ? (int64_t)scratch->numbers[first + channel]
                                     : integer_at(held->values, held->type, image + first + channel);
                if (steps && !bitloom_transform_pixel(&network->transform, &value, &rule))
                    return bitloom_fail(error, BITLOOM_INVALID, name, "%s: %s, got %.0f", at.text, rule,
                                        (double)value);
                if (!store(p, value, code))
                    return bitloom_fail(error, BITLOOM_INVALID, name, "%s: values must be %.0f..%.0f%s, got %.0f",
                                        at.text, (double)p->facts.low, (double)p->facts.high,
                                        p->encoding == BITLOOM_BIPOLAR ? " in steps of 2" : "", (double)value);
            }
        }
        before += read->end - read->begin;
    }
    pack_lanes(p, scratch->codes, payload);
    return BITLOOM_OK;
}

static void put_integer(void *values, bitloom_type type, size_t at, int64_t value) {
    switch (type) {
    case BITLOOM_UINT8: ((uint8_t *)values)[at] = (uint8_t)value; break;
    case BITLOOM_INT8: ((int8_t *)values)[at] = (int8_t)value; break;
    case BITLOOM_INT16: ((int16_t *)values)[at] = (int16_t)value; break;
    case BITLOOM_INT32: ((int32_t *)values)[at] = (int32_t)value; break;
    default: ((int64_t *)values)[at] = value;
    }
}

bitloom_status bitloom_give(const bitloom_program *network, const bitloom_turn *turn, const int64_t *outputs,
                            size_t number, const bitloom_held *held, bitloom_error *error) {
    const bitloom_map *map = network->maps + turn->gives.map;
    const size_t positions = (size_t)map->height * map->width, channels = turn->gives.end - turn->gives.begin;
    size_t position, channel;
    for (position = 0; position < positions; position++) {
        const size_t at = ((number - held->first) * positions + position) * map->channels + turn->gives.begin;
        for (channel = 0; channel < channels; channel++, outputs++) {
            if (*outputs < map->low || *outputs > map->high)
                return bitloom_fail(error, BITLOOM_INVALID, turn->program->name,
                                    "%s: values must be %.0f..%.0f, got %.0f", place_of(map, false, number).text,
                                    (double)map->low, (double)map->high, (double)*outputs);
            put_integer(held->values, held->type, at + channel, *outputs);
        }
    }
    return BITLOOM_OK;
}

/* Lane `lane` of the words of a position of a map. */
static uint32_t lane_of(const bitloom_program *p, const result_map *map, size_t position, uint32_t lane,
                        const volatile uint32_t *words) {
    const size_t word = position * map->words + lane / map->form.lanes;
    const size_t unit = word / map->form.together * map->form.pieces * (p->stream_bits / 32);
    const uint64_t bit = word % map->form.together * map->form.word_bits +
                         (uint64_t)(lane % map->form.lanes) * map->form.lane_bits;
    const volatile uint32_t *at = words + map->first + unit + (size_t)(bit / 32);
    uint64_t number = at[0];
    if (bit % 32 + map->form.lane_bits > 32) number |= (uint64_t)at[1] << 32;
    return (uint32_t)(number >> bit % 32 & (((uint64_t)1 << map->form.lane_bits) - 1));
}

void bitloom_unpack(const bitloom_program *p, const volatile uint32_t *words, int64_t *outputs) {
    const bitloom_array *maps = p->arrays + BITLOOM_RESULT_MAPS, *places = p->arrays + BITLOOM_RESULT_PLACES;
    const size_t several = places->shape[1];
    size_t i, position, channel, bit, first = 0;
    for (i = 0; i < maps->shape[0]; i++) {
        const result_map map = map_of(p, i);
        const int64_t sign = (int64_t)1 << (map.form.lane_bits - 1);
        for (position = 0; position < map.positions; position++) {
            for (channel = 0; channel < map.channels; channel++) {
                const size_t at = (first + channel) * several;
                int64_t ones = 0;
                if (p->output != BITLOOM_RESULT_BITS) {
                    const int64_t code = lane_of(p, &map, position, (uint32_t)value_at(places, at), words);
                    *outputs++ = code & sign ? code - 2 * sign : code;
                    continue;
                }
                for (bit = 0; bit < several; bit++)
                    ones += lane_of(p, &map, position, (uint32_t)value_at(places, at + bit), words);
                *outputs++ = 2 * ones - (int64_t)several;
            }
        }
        first += map.channels;
    }
}

bool bitloom_class_of(const bitloom_program *p, const int64_t *outputs, double *scores, int32_t *number) {
    size_t i, best = 0;
    if (p->has_host) {
        if (!bitloom_host_scores(&p->host, outputs, false, scores)) return false;
        for (i = 1; i < p->host.scores; i++)
            if (scores[i] > scores[best]) best = i;
    } else if (p->single_bits) {
        for (i = 0; i < p->facts.outputs; i++)
            if (outputs[i] > 0) best = i;
    } else {
        for (i = 1; i < p->facts.outputs; i++)
            if (outputs[i] > outputs[best]) best = i;
    }
    *number = (int32_t)best;
    return true;
}
