/* Networks in partitions: the programs that take turns, and the maps that the host holds between them, checked as
   hls_gen/design/partitioned_program.py checks them. */
#include <stdio.h>
#include <string.h>

#include "bitloom_parts.h"

enum { INPUT = 0, ALIGNED_BYTES = 8 };
static const char *const INPUT_NAME = "@input";

/* Reading */

static bool is_layer(const char *name) {
    if (*name < 'a' || *name > 'z') return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

/* The map of that name; a new one where there is none yet. */
static size_t map_of(bitloom_program *network, const char *name) {
    size_t number;
    for (number = 0; number < network->map_count; number++)
        if (!strcmp(network->maps[number].name, name)) return number;
    return number;
}

/* Channels of a map, of {"map": NAME, "begin": N, "end": N}; `name` gets the map's name. */
static bitloom_status read_channels(const bitloom_json *json, const bitloom_node *node, char name[65],
                                    bitloom_channels *channels) {
    const bitloom_node *map = bitloom_json_get(json, node, "map"), *begin = bitloom_json_get(json, node, "begin");
    int64_t first;
    if (!bitloom_json_text(json, map, BITLOOM_NAME_LENGTH, name, 65) || (strcmp(name, INPUT_NAME) && !is_layer(name)))
        return bitloom_json_wrong(json, "map must be @input or 1..64 of a-z, 0-9 and _, a letter first", map);
    if (!bitloom_json_integer(json, begin, &first) || first < 0 || first > INT32_MAX)
        return bitloom_json_wrong(json, "begin must be an integer 0..2147483647", begin);
    if (!bitloom_read_size(json, bitloom_json_get(json, node, "end"), &channels->end))
        return bitloom_json_wrong(json, "end must be an integer 1..2147483647", bitloom_json_get(json, node, "end"));
    channels->begin = (uint32_t)first;
    return BITLOOM_OK;
}

/* What a turn reads: whole channels of maps that are whole. */
static bitloom_status read_reads(bitloom_program *network, size_t number, const bitloom_json *json,
                                 const bitloom_node *reads) {
    bitloom_turn *turn = network->turns + number;
    const bitloom_program_facts *facts = &turn->program->facts;
    const bitloom_node *entry;
    uint64_t channels = 0;
    size_t i;
    if (!reads || reads->kind != BITLOOM_JSON_LIST || reads->count > network->map_count)
        return bitloom_json_wrong(json, "a program must read maps, each once", reads);
    turn->reads = bitloom_allocate(&network->heap, reads->count, sizeof *turn->reads);
    if (!turn->reads) return bitloom_fail(json->error, BITLOOM_NO_MEMORY, json->name, "turns need memory, got none");
    for (i = 0, entry = reads + 1; i < reads->count; i++, entry = bitloom_json_next(json, entry)) {
        bitloom_channels *part = turn->reads + turn->read_count++;
        char name[BITLOOM_NAME_LENGTH + 1];
        bitloom_map *map;
        TRY(read_channels(json, entry, name, part));
        part->map = map_of(network, name);
        if (part->map == network->map_count)
            return bitloom_json_wrong(json, "a program must read maps that are there", entry);
        map = network->maps + part->map;
        if (map->read && map->last == number) return bitloom_json_wrong(json, "a program must read a map once", entry);
        if (map->height != facts->height || map->width != facts->width)
            return bitloom_json_wrong(json, "a program must read maps of its positions", entry);
        /* of the input the channels that are read: none may be left out */
        if (part->map == INPUT && part->begin <= map->channels && part->end > map->channels) map->channels = part->end;
        if (part->begin >= part->end || part->end > map->channels)
            return bitloom_json_wrong(json, "a program must read channels that are there", entry);
        if (!map->read || facts->low < map->low) map->low = facts->low;
        if (!map->read || facts->high > map->high) map->high = facts->high;
        map->read++;
        map->last = number;
        channels += part->end - part->begin;
    }
    if (channels != facts->channels) return bitloom_json_wrong(json, "a program must read all of its channels", reads);
    return BITLOOM_OK;
}

/* What a turn gives: the next channels of a map that nobody has read. */
static bitloom_status read_gives(bitloom_program *network, size_t number, const bitloom_json *json,
                                 const bitloom_node *gives) {
    bitloom_turn *turn = network->turns + number;
    const bitloom_program_facts *facts = &turn->program->facts;
    char name[BITLOOM_NAME_LENGTH + 1];
    bitloom_map *map;
    TRY(read_channels(json, gives, name, &turn->gives));
    turn->gives.map = map_of(network, name);
    map = network->maps + turn->gives.map;
    if (turn->gives.map == network->map_count) {
        network->map_count++;
        strcpy(map->name, name);
        map->height = facts->output_height;
        map->width = facts->output_width;
        map->first = number;
        map->low = INT64_MIN;
        map->high = INT64_MAX;
    }
    if (map->read || turn->gives.map == INPUT)
        return bitloom_json_wrong(json, "a program must give channels of a map that nobody has read", gives);
    if (map->height != facts->output_height || map->width != facts->output_width ||
        map->channels != turn->gives.begin ||
        (uint64_t)map->channels + facts->output_channels != turn->gives.end)
        return bitloom_json_wrong(json, "a program must give the next channels of a map", gives);
    map->channels = turn->gives.end;
    map->last = number;
    return BITLOOM_OK;
}

static bitloom_status read_turns(bitloom_program *network, const bitloom_json *json) {
    const bitloom_node *turns = bitloom_json_get(json, json->nodes, "turns"), *entry;
    bitloom_map *input = network->maps;
    size_t i;
    if (!turns || turns->kind != BITLOOM_JSON_LIST || turns->count != network->turn_count)
        return bitloom_json_wrong(json, "turns must be a list with an entry for each program", turns);
    strcpy(input->name, INPUT_NAME);
    input->height = network->turns->program->facts.height;
    input->width = network->turns->program->facts.width;
    network->map_count = 1;
    for (i = 0, entry = turns + 1; i < turns->count; i++, entry = bitloom_json_next(json, entry)) {
        TRY(read_reads(network, i, json, bitloom_json_get(json, entry, "reads")));
        TRY(read_gives(network, i, json, bitloom_json_get(json, entry, "gives")));
    }
    return BITLOOM_OK;
}

/* What must be alike in all programs. */
static bitloom_status check_programs(const bitloom_program *network, const char *name, bitloom_error *error) {
    const bitloom_program *first = network->turns->program;
    size_t i;
    for (i = 0; i < network->turn_count; i++) {
        const bitloom_program *p = network->turns[i].program;
        if (strcmp(p->design, first->design) != 0)
            return bitloom_fail(error, BITLOOM_INVALID, name, "programs must be for design %.16s, got %.16s",
                                first->design, p->design);
        if (p->has_host)
            return bitloom_fail(error, BITLOOM_INVALID, name, "programs of partitions must have no host's part, got %s",
                                p->name);
        if (p->facts.output_maps != 1 && i + 1 < network->turn_count)
            return bitloom_fail(error, BITLOOM_INVALID, name, "one map must leave a partition, got %lu",
                                (unsigned long)p->facts.output_maps);
    }
    return BITLOOM_OK;
}

/* The facts of the network: the input is the first program's, the output the last one's map. */
static bitloom_status gather_facts(bitloom_program *network, const char *name, bitloom_error *error) {
    const bitloom_program *first = network->turns->program;
    const bitloom_program *last = network->turns[network->turn_count - 1].program;
    const bitloom_map *input = network->maps;
    const bitloom_map *output = network->maps + network->turns[network->turn_count - 1].gives.map;
    bitloom_program_facts *facts = &network->facts;
    const uint64_t positions = (uint64_t)input->height * input->width; /* few: the first program has as many */
    const uint64_t places = (uint64_t)output->height * output->width;
    if (positions * input->channels > BITLOOM_MOST_IMAGE_BITS || places * output->channels > BITLOOM_MOST_VALUES)
        return bitloom_fail(error, BITLOOM_INVALID, name,
                            "an image must have at most " BITLOOM_DECIMAL(
                                BITLOOM_MOST_IMAGE_BITS) " values and an output " BITLOOM_DECIMAL(BITLOOM_MOST_VALUES)
                            ", got %.0f and %.0f",
                            (double)positions * input->channels, (double)places * output->channels);
    strcpy(network->design, first->design);
    network->encoding = first->encoding;
    network->bits = first->bits;
    network->output = last->output;
    network->single_bits = last->single_bits;
    facts->height = input->height;
    facts->width = input->width;
    facts->channels = input->channels;
    facts->low = first->facts.low;
    facts->high = first->facts.high;
    facts->image_values = (size_t)(positions * input->channels);
    facts->output_height = output->height;
    facts->output_width = output->width;
    facts->output_channels = output->channels;
    facts->outputs = (size_t)(places * output->channels);
    facts->output_maps = last->facts.output_maps;
    return BITLOOM_OK;
}

/* Holding */

/* The smallest integers that have all values of a map, and how many bytes they take. */
static size_t set_type(bitloom_map *map) {
    static const struct {
        bitloom_type type;
        int64_t low, high;
        size_t bytes;
    } TYPES[] = {{BITLOOM_UINT8, 0, UINT8_MAX, 1},
                 {BITLOOM_INT8, INT8_MIN, INT8_MAX, 1},
                 {BITLOOM_INT16, INT16_MIN, INT16_MAX, 2},
                 {BITLOOM_INT32, INT32_MIN, INT32_MAX, 4},
                 {BITLOOM_INT64, INT64_MIN, INT64_MAX, 8}};
    size_t i = 0;
    while (map->low < TYPES[i].low || map->high > TYPES[i].high) i++;
    map->type = TYPES[i].type;
    return TYPES[i].bytes;
}

/* Give each map that must be held a place among those of a frame, which others have as soon as nobody reads it any
   more. Of the output's values none are held where one program gives them all. */
static bitloom_status lay_out_maps(bitloom_program *network, const char *name, bitloom_error *error) {
    const bitloom_channels *last = &network->turns[network->turn_count - 1].gives;
    uint64_t most = 0;
    size_t number, other;
    for (number = 1; number < network->map_count; number++) {
        bitloom_map *map = network->maps + number;
        const uint64_t size = (uint64_t)set_type(map) * map->height * map->width * map->channels;
        const uint64_t bytes = (size + ALIGNED_BYTES - 1) / ALIGNED_BYTES * ALIGNED_BYTES;
        uint64_t offset = 0;
        bool moved = true;
        if (number == last->map && !last->begin) continue;
        while (moved) {
            moved = false;
            for (other = 1; other < number; other++) {
                const bitloom_map *before = network->maps + other;
                if (!before->bytes || before->last < map->first || offset >= before->offset + before->bytes ||
                    offset + bytes <= before->offset)
                    continue;
                offset = before->offset + before->bytes;
                moved = true;
            }
        }
        if (offset > SIZE_MAX / 2 || bytes > SIZE_MAX / 2 - offset)
            return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "map %s must fit the memory, got %.0f bytes a frame",
                                map->name, (double)bytes);
        map->bytes = (size_t)bytes;
        map->offset = (size_t)offset;
        if (offset + bytes > most) most = offset + bytes;
    }
    network->facts.map_bytes = (size_t)most;
    return BITLOOM_OK;
}

static bitloom_status read_programs(bitloom_program *network, const bitloom_archive *archive, const char *name,
                                    bitloom_error *error) {
    size_t i;
    network->turns = bitloom_allocate(&network->heap, archive->program_count, sizeof *network->turns);
    network->maps = bitloom_allocate(&network->heap, archive->program_count + 1, sizeof *network->maps);
    if (!network->turns || !network->maps)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "turns need memory, got none");
    network->turn_count = archive->program_count;
    network->facts.programs = (uint32_t)archive->program_count;
    for (i = 0; i < archive->program_count; i++) {
        const bitloom_bytes file = {archive->programs[i].data, archive->programs[i].count};
        char inside[BITLOOM_TEXT];
        snprintf(inside, sizeof inside, "%.300s: program_%lu", name, (unsigned long)i);
        TRY(bitloom_program_inside(&network->heap, file, inside, &network->turns[i].program, error));
    }
    return check_programs(network, name, error);
}

static bitloom_status read_header(bitloom_program *network, const bitloom_json *json) {
    TRY(bitloom_read_format(json, "bitloom-partitions", BITLOOM_PARTITIONS_VERSION));
    TRY(bitloom_read_text(json, BITLOOM_NAME, network->name));
    TRY(bitloom_read_text(json, BITLOOM_MODEL_DIGEST, network->model));
    TRY(read_turns(network, json));
    TRY(gather_facts(network, json->name, json->error));
    TRY(lay_out_maps(network, json->name, json->error));
    return bitloom_read_classes(network, json);
}

bitloom_status bitloom_partitions_read(bitloom_program *network, const bitloom_archive *archive, const char *name,
                                       bitloom_error *error) {
    const bitloom_array *header = archive->arrays + BITLOOM_HEADER;
    const bitloom_bytes text = {header->data, header->count};
    bitloom_status status;
    bitloom_json json;
    TRY(read_programs(network, archive, name, error));
    TRY(bitloom_json_read(&json, &network->heap, text, name, "header", error));
    status = read_header(network, &json);
    bitloom_json_free(&json);
    return status;
}

void bitloom_partitions_own(bitloom_program *p) {
    const bitloom_program_facts *facts = &p->facts;
    bitloom_map *input = p->own_maps, *output = p->own_maps + 1;
    strcpy(input->name, INPUT_NAME);
    strcpy(output->name, "@output");
    input->height = facts->height;
    input->width = facts->width;
    input->channels = facts->channels;
    output->height = facts->output_height;
    output->width = facts->output_width;
    output->channels = facts->output_channels;
    output->low = INT64_MIN;
    output->high = INT64_MAX;
    output->type = BITLOOM_INT64;
    p->own_reads.end = facts->channels;
    p->own_turn.program = p;
    p->own_turn.reads = &p->own_reads;
    p->own_turn.read_count = 1;
    p->own_turn.gives.map = 1;
    p->own_turn.gives.end = facts->output_channels;
    p->maps = p->own_maps;
    p->map_count = 2;
    p->turns = &p->own_turn;
    p->turn_count = 1;
    p->facts.programs = 1;
}

void bitloom_partitions_free(bitloom_program *network) {
    size_t i;
    for (i = 0; network->turns != &network->own_turn && i < network->turn_count; i++) {
        bitloom_program_free(network->turns[i].program);
        bitloom_release(&network->heap, network->turns[i].reads);
    }
    if (network->turns != &network->own_turn) bitloom_release(&network->heap, network->turns);
    if (network->maps != network->own_maps) bitloom_release(&network->heap, network->maps);
}
