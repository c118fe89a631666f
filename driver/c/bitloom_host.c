/* What the host computes around an imported network, as golden/host does it, in double precision and in the same order
   of operations: images become the network's integers, and its outputs become scores. */
#include <math.h>
#include <string.h>

#include "bitloom_parts.h"

enum { MOST_AXES = 8, MOST_LINKS = 64, NAME_LENGTH = 256, MOST_ORDER_AXES = 32 };
#define MOST 2147483648.0

enum { SOFTMAX, LOG_SOFTMAX, SIGMOID, ARGMAX, TOPK, CLOSINGS };
static const char *const CLOSING_NAMES[CLOSINGS] = {"Softmax", "LogSoftmax", "Sigmoid", "ArgMax", "TopK"};

/* Reading */

static void *memory(const bitloom_json *json, size_t count, size_t size, bitloom_status *status) {
    void *got = bitloom_allocate(json->heap, count, size);
    if (!got)
        *status = bitloom_fail(json->error, BITLOOM_NO_MEMORY, json->name, "host: must fit the heap, got no memory");
    return got;
}

static bool is_list(const bitloom_node *node) { return node && node->kind == BITLOOM_JSON_LIST; }

/* An integer of low..high; false where it is none. */
static bool integer_of(const bitloom_json *json, const bitloom_node *node, double low, double high, int64_t *value) {
    return bitloom_json_integer(json, node, value) && (double)*value >= low && (double)*value <= high;
}

/* Writes the places of a piece behind the `*done` that are there: [first, count, step, count, step, ...], as
   golden/host/order.py has it. False unless each place is one of `count` and wasn't there before. */
static bool read_piece(const bitloom_json *json, const bitloom_node *piece, size_t count, size_t *done, uint32_t *order,
                       uint8_t *seen) {
    const bitloom_node *entry = piece + 1;
    int64_t counts[MOST_ORDER_AXES], steps[MOST_ORDER_AXES], first;
    size_t axes, axis, size = 1, i;
    if (!is_list(piece) || piece->count % 2 == 0 || piece->count / 2 > MOST_ORDER_AXES) return false;
    axes = piece->count / 2;
    if (!integer_of(json, entry, 0, (double)count - 1, &first)) return false;
    for (axis = 0; axis < axes; axis++) {
        entry = bitloom_json_next(json, entry);
        if (!integer_of(json, entry, 2, (double)count, counts + axis)) return false;
        entry = bitloom_json_next(json, entry);
        if (!integer_of(json, entry, -(double)count, (double)count, steps + axis)) return false;
        size *= (size_t)counts[axis];
        if (size > count - *done) return false;
    }
    for (i = 0; i < size; i++) {
        int64_t place = first, rest = (int64_t)i;
        for (axis = axes; axis-- > 0; rest /= counts[axis]) place += rest % counts[axis] * steps[axis];
        if (place < 0 || place >= (int64_t)count || seen[place]) return false;
        seen[place] = 1;
        order[(*done)++] = (uint32_t)place;
    }
    return true;
}

/* Places of `count` values, each once: a list of pieces. */
static bitloom_status read_order(const bitloom_json *json, const bitloom_node *node, size_t count, uint32_t **order) {
    const char *rule = "order must have each place once";
    const bitloom_node *piece;
    bitloom_status status = BITLOOM_OK;
    uint8_t *seen;
    size_t i, done = 0;
    if (!is_list(node)) return bitloom_json_wrong(json, rule, node);
    *order = memory(json, count, sizeof **order, &status);
    seen = memory(json, count, 1, &status);
    for (i = 0, piece = node + 1; !status && i < node->count; i++, piece = bitloom_json_next(json, piece))
        if (done == count || !read_piece(json, piece, count, &done, *order, seen))
            status = bitloom_json_wrong(json, rule, piece);
    if (!status && done < count) status = bitloom_json_wrong(json, rule, node);
    bitloom_release(json->heap, seen);
    return status;
}

/* Numbers of a list; null stands for `missing`, if `infinite` ones are allowed. */
static bitloom_status read_numbers(const bitloom_json *json, const bitloom_node *node, size_t count, bool infinite,
                                   double missing, double *out) {
    const bitloom_node *entry;
    size_t i;
    if (!is_list(node) || node->count != count)
        return bitloom_json_wrong(json, "there must be a number for each channel", node);
    for (i = 0, entry = node + 1; i < count; i++, entry = bitloom_json_next(json, entry)) {
        if (infinite && entry->kind == BITLOOM_JSON_NULL) out[i] = missing;
        else if (!bitloom_json_number(json, entry, out + i))
            return bitloom_json_wrong(json, "numbers must be finite", entry);
    }
    return BITLOOM_OK;
}

static bitloom_status read_links(const bitloom_json *json, const bitloom_node *chain, size_t channels,
                                 bitloom_links *links) {
    const bitloom_node *link;
    bitloom_status status = BITLOOM_OK;
    size_t i;
    if (!is_list(chain) || chain->count > MOST_LINKS)
        return bitloom_json_wrong(json, "a chain must have at most 64 links", chain);
    /* an entry takes a byte of the text at least, so that this is no more than some times the file */
    if ((uint64_t)chain->count * 2 * channels > chain->end - chain->begin)
        return bitloom_json_wrong(json, "links must have a number a channel", chain);
    links->channels = channels;
    links->clips = memory(json, chain->count, 1, &status);
    links->numbers = memory(json, chain->count * 2 * channels, sizeof(double), &status);
    for (i = 0, link = chain + 1; !status && i < chain->count; i++, link = bitloom_json_next(json, link)) {
        double *first = links->numbers + 2 * channels * i;
        const bitloom_node *kind = link + 1, *pair;
        const bool clip = is_list(link) && link->count == 3 && bitloom_json_is(json, kind, "clip");
        if (!clip && !(is_list(link) && link->count == 3 && bitloom_json_is(json, kind, "line")))
            return bitloom_json_wrong(json, "links must be line or clip, with two lists of numbers", link);
        pair = bitloom_json_next(json, kind);
        status = read_numbers(json, pair, channels, clip, -HUGE_VAL, first);
        if (!status)
            status = read_numbers(json, bitloom_json_next(json, pair), channels, clip, HUGE_VAL, first + channels);
        links->clips[i] = clip;
    }
    links->count = chain->count;
    return status;
}

static bitloom_status read_boundaries(const bitloom_json *json, const bitloom_node *input, bitloom_host *host) {
    const bitloom_node *rows = bitloom_json_get(json, input, "boundaries"), *row;
    const bitloom_node *reached = bitloom_json_get(json, input, "reached"), *entry;
    bitloom_status status = BITLOOM_OK;
    size_t i, j;
    if (rows && rows->kind == BITLOOM_JSON_NULL) return BITLOOM_OK;
    if (!is_list(rows) || (rows->count != 1 && rows->count != host->channels) || !is_list(rows + 1))
        return bitloom_json_wrong(json, "input.boundaries must have 1 row, or one a channel", rows);
    host->levels = rows[1].count;
    if (!is_list(reached) || reached->count != host->levels)
        return bitloom_json_wrong(json, "input.reached must have as many entries as input.boundaries have columns",
                                  reached);
    if ((uint64_t)host->levels * rows->count > rows->end - rows->begin)
        return bitloom_json_wrong(json, "input.boundaries must have as many columns in each row", rows);
    host->boundaries = memory(json, host->levels * rows->count, sizeof(double), &status);
    host->equal = memory(json, host->levels + 1, sizeof *host->equal, &status);
    for (i = 0, row = rows + 1; !status && i < rows->count; i++, row = bitloom_json_next(json, row)) {
        double *limits = host->boundaries + i * host->levels;
        status = read_numbers(json, row, host->levels, false, 0, limits);
        for (j = 1; !status && j < host->levels; j++)
            if (limits[j] < limits[j - 1]) status = bitloom_json_wrong(json, "input.boundaries must rise", row);
    }
    for (i = 0, entry = reached + 1; !status && i < host->levels; i++, entry = bitloom_json_next(json, entry)) {
        if (entry->kind != BITLOOM_JSON_TRUE && entry->kind != BITLOOM_JSON_FALSE)
            status = bitloom_json_wrong(json, "input.reached must be true or false", entry);
        host->equal[i + 1] = host->equal[i] + (entry->kind == BITLOOM_JSON_TRUE);
    }
    host->rows = rows->count;
    return status;
}

static bitloom_status read_integers(const bitloom_json *json, const bitloom_node *node, bitloom_host *host) {
    static const char *const KEYS[] = {"low", "zero", "high"};
    int64_t *ends = host->ends;
    unsigned i;
    if (node && node->kind == BITLOOM_JSON_NULL) return BITLOOM_OK;
    host->takes_integers = true;
    for (i = 0; i < 3; i++)
        if (!integer_of(json, bitloom_json_get(json, node, KEYS[i]), -MOST, MOST, ends + i))
            return bitloom_json_wrong(json, "input.integers must have integers low, zero, high of at most 2^31", node);
    if (ends[0] > ends[1] || ends[1] > ends[2] || ends[0] == ends[2])
        return bitloom_json_wrong(json, "input.integers must have low <= zero <= high and low < high", node);
    if (!bitloom_json_number(json, bitloom_json_get(json, node, "scale"), &host->scale) || !(host->scale > 0))
        return bitloom_json_wrong(json, "input.integers must have a finite scale above 0", node);
    return BITLOOM_OK;
}

/* The shape of an image, or of the scores, with so many values. */
static bitloom_status read_shape(const bitloom_json *json, const bitloom_node *shape, size_t values,
                                 const char *rule) {
    const bitloom_node *entry;
    uint64_t product = 1;
    uint32_t i;
    if (!is_list(shape) || !shape->count || shape->count > MOST_AXES) return bitloom_json_wrong(json, rule, shape);
    for (i = 0, entry = shape + 1; i < shape->count; i++, entry = bitloom_json_next(json, entry)) {
        int64_t size;
        if (!integer_of(json, entry, 1, (double)values, &size)) return bitloom_json_wrong(json, rule, shape);
        product *= (uint64_t)size; /* each factor is below 2^25, and so is what went before */
        if (product > values) return bitloom_json_wrong(json, rule, shape);
    }
    return product == values ? BITLOOM_OK : bitloom_json_wrong(json, rule, shape);
}

static bitloom_status read_input(const bitloom_json *json, const bitloom_node *input, const bitloom_program *p,
                                 bitloom_host *host) {
    const bitloom_node *first = bitloom_json_get(json, input, "first");
    const int64_t step = p->encoding == BITLOOM_BIPOLAR ? 2 : 1;
    bitloom_status status = read_shape(json, bitloom_json_get(json, input, "shape"), host->values,
                                       "input.shape must have as many values as the input, and at most 8 axes");
    if (!status) status = read_boundaries(json, input, host);
    if (status) return status;
    if (!integer_of(json, first, -MOST, MOST, &host->first))
        return bitloom_json_wrong(json, "input.first must be at most 2^31", first);
    if (!bitloom_json_integer(json, bitloom_json_get(json, input, "stride"), &host->stride) || host->stride != step ||
        (host->rows && (host->first < p->facts.low || host->first + step * (int64_t)host->levels > p->facts.high)))
        return bitloom_json_wrong(json, "input.first and stride must give values of the input", first);
    status = read_order(json, bitloom_json_get(json, input, "order"), host->values, &host->order);
    if (!status) status = read_links(json, bitloom_json_get(json, input, "chain"), host->channels, &host->front);
    return status ? status : read_integers(json, bitloom_json_get(json, input, "integers"), host);
}

/* The scores: the file's one output, which is one map. */
static bitloom_status read_scores(const bitloom_json *json, const bitloom_node *outputs, bitloom_host *host) {
    const bitloom_node *scores, *parts, *closing, *entry;
    bitloom_status status;
    uint32_t i, word;
    char name[4 * NAME_LENGTH + 1];
    int64_t number, classes, apart;
    if (!is_list(outputs) || outputs->count != 1)
        return bitloom_json_wrong(json, "outputs must be one, as hosts without Python take no others", outputs);
    scores = outputs + 1;
    parts = bitloom_json_get(json, scores, "parts");
    if (!is_list(parts) || parts->count != 1)
        return bitloom_json_wrong(json, "outputs.parts must be one, as hosts without Python take no others", parts);
    if (!integer_of(json, bitloom_json_get(json, parts + 1, "first"), 0, 0, &number) ||
        !integer_of(json, bitloom_json_get(json, parts + 1, "size"), (double)host->scores, (double)host->scores, &number))
        return bitloom_json_wrong(json, "outputs.parts must be the network's output from 0 on", parts);
    if (!bitloom_json_text(json, bitloom_json_get(json, scores, "name"), NAME_LENGTH, name, sizeof name))
        return bitloom_json_wrong(json, "outputs must have printable names of 1 to 256 characters",
                                  bitloom_json_get(json, scores, "name"));
    status = read_shape(json, bitloom_json_get(json, scores, "shape"), host->scores,
                        "outputs.shape must have as many values as the output, and at most 8 axes");
    if (status) return status;
    closing = bitloom_json_get(json, scores, "closing");
    status = read_links(json, bitloom_json_get(json, parts + 1, "chain"), host->output_channels, &host->back);
    if (!status) status = read_order(json, bitloom_json_get(json, scores, "order"), host->scores, &host->output_order);
    if (status) return status;
    if (!is_list(closing) || closing->count > sizeof host->closing)
        return bitloom_json_wrong(json, "outputs.closing must be a list of operators", closing);
    for (i = 0, entry = closing + 1; i < closing->count; i++, entry = bitloom_json_next(json, entry)) {
        for (word = 0; word < CLOSINGS && !bitloom_json_is(json, entry, CLOSING_NAMES[word]); word++) {
        }
        if (word == CLOSINGS)
            return bitloom_json_wrong(json, "outputs.closing must be of Softmax, LogSoftmax, Sigmoid, ArgMax, TopK",
                                      entry);
        host->closing[i] = (uint8_t)word;
    }
    host->closings = closing->count;
    if (!integer_of(json, bitloom_json_get(json, scores, "classes"), 1, (double)host->scores, &classes) ||
        !integer_of(json, bitloom_json_get(json, scores, "apart"), 1, (double)host->scores, &apart) ||
        host->scores % (uint64_t)(classes * apart))
        return bitloom_json_wrong(json, "outputs.classes and apart must divide the output's values", scores);
    host->classes = (size_t)classes;
    host->apart = (size_t)apart;
    return BITLOOM_OK;
}

bitloom_status bitloom_host_read(const bitloom_heap *heap, bitloom_bytes text, const bitloom_program *program,
                                 bitloom_host *host, bitloom_error *error) {
    const bitloom_program_facts *facts = &program->facts;
    bitloom_json json;
    bitloom_status status;
    int64_t version = 0;
    status = bitloom_json_read(&json, heap, text, program->name, "host", error);
    if (status) return status;
    host->values = facts->image_values;
    host->channels = facts->channels;
    host->scores = facts->outputs;
    host->output_channels = facts->output_channels;
    if (!bitloom_json_is(&json, bitloom_json_get(&json, json.nodes, "format"), "bitloom host") ||
        !bitloom_json_integer(&json, bitloom_json_get(&json, json.nodes, "version"), &version) ||
        version != BITLOOM_HOST_VERSION)
        status = bitloom_json_wrong(
            &json, "must be a bitloom host file of version " BITLOOM_DECIMAL(BITLOOM_HOST_VERSION), json.nodes);
    if (!status && !bitloom_json_is(&json, bitloom_json_get(&json, json.nodes, "digest"), program->model))
        status = bitloom_json_wrong(&json, "must belong to the program's model",
                                    bitloom_json_get(&json, json.nodes, "digest"));
    if (!status) status = read_input(&json, bitloom_json_get(&json, json.nodes, "input"), program, host);
    if (!status) status = read_scores(&json, bitloom_json_get(&json, json.nodes, "outputs"), host);
    bitloom_json_free(&json);
    return status;
}

void bitloom_host_free(const bitloom_heap *heap, bitloom_host *host) {
    bitloom_release(heap, host->order);
    bitloom_release(heap, host->front.clips);
    bitloom_release(heap, host->front.numbers);
    bitloom_release(heap, host->boundaries);
    bitloom_release(heap, host->equal);
    bitloom_release(heap, host->back.clips);
    bitloom_release(heap, host->back.numbers);
    bitloom_release(heap, host->output_order);
    memset(host, 0, sizeof *host);
}

/* Computing */

/* What links make of a number of a channel. */
static double through(const bitloom_links *links, size_t channel, double x) {
    size_t i;
    for (i = 0; i < links->count; i++) {
        const double *pair = links->numbers + 2 * links->channels * i + channel;
        const double first = pair[0], second = pair[links->channels];
        if (links->clips[i]) {
            if (x < first) x = first;
            if (x > second) x = second;
        } else {
            volatile double product = x * first; /* no fused multiplication and addition: it rounds otherwise */
            x = product + second;
        }
    }
    return x;
}

/* How many boundaries a number has reached. */
static int64_t level_of(const bitloom_host *host, const double *limits, double x) {
    size_t below = 0, upto, end = host->levels;
    while (below < end) {
        const size_t middle = below + (end - below) / 2;
        if (limits[middle] < x) below = middle + 1;
        else end = middle;
    }
    for (upto = below; upto < host->levels && limits[upto] == x; upto++) {
    }
    return (int64_t)below + host->equal[upto] - host->equal[below];
}

bool bitloom_host_input(const bitloom_program *program, double *numbers, const char **rule) {
    const bitloom_host *host = &program->host;
    size_t i;
    for (i = 0; i < host->values; i++) {
        const size_t channel = i % host->channels;
        double x = through(&host->front, channel, numbers[i]);
        if (!isfinite(x)) {
            *rule = "must give finite numbers";
            numbers[0] = x;
            return false;
        }
        if (host->rows) {
            const double *limits = host->boundaries + (host->rows > 1 ? channel * host->levels : 0);
            x = (double)(host->first + host->stride * level_of(host, limits, x));
        } else {
            x = nearbyint(x < -MOST ? -MOST : x > MOST ? MOST : x) + (double)host->first;
        }
        numbers[i] = x;
    }
    return true;
}

/* Of scores that are `apart` from each other, with `end` behind the last one. */
static void close_scores(unsigned word, double *x, size_t end, size_t apart) {
    double largest = x[0], total = 0;
    size_t i;
    for (i = apart; i < end; i += apart)
        if (x[i] > largest) largest = x[i];
    for (i = 0; i < end; i += apart) {
        if (word == SIGMOID) {
            const double small = exp(-fabs(x[i]));
            x[i] = (x[i] >= 0 ? 1 : small) / (1 + small);
        } else if (word == SOFTMAX || word == LOG_SOFTMAX) {
            x[i] -= largest;
            total += exp(x[i]);
        }
    }
    for (i = 0; i < end && (word == SOFTMAX || word == LOG_SOFTMAX); i += apart)
        x[i] = word == SOFTMAX ? exp(x[i]) / total : x[i] - log(total);
}

bool bitloom_host_scores(const bitloom_host *host, const int64_t *outputs, bool closed, double *scores) {
    const size_t values = host->classes * host->apart;
    size_t i, begin, first;
    for (i = 0; i < host->scores; i++) {
        const size_t place = host->output_order[i];
        scores[i] = through(&host->back, place % host->output_channels, (double)outputs[place]);
        if (!isfinite(scores[i])) return false;
    }
    for (i = 0; closed && i < host->closings; i++)
        for (begin = 0; begin < host->scores; begin += values)
            for (first = begin; first < begin + host->apart; first++)
                close_scores(host->closing[i], scores + first, values - (first - begin), host->apart);
    return true;
}
