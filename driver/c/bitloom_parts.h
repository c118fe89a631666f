/* What the files of libbitloom share, and nobody else needs: errors, JSON, archives, programs. */
#ifndef BITLOOM_PARTS_H
#define BITLOOM_PARTS_H

#include <stdbool.h>

#include "bitloom.h"

/* A number of bitloom_hardware.h as text. */
#define BITLOOM_QUOTED(number) #number
#define BITLOOM_DECIMAL(name) BITLOOM_QUOTED(name)

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "libbitloom: memory must be little-endian, as the words of streams are"
#endif

#if defined(__GNUC__)
#define BITLOOM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define BITLOOM_PRINTF(text, first)
#endif

/* Return the status of a call that is not BITLOOM_OK. */
#define TRY(call) \
    do { \
        const bitloom_status status_ = (call); \
        if (status_) return status_; \
    } while (0)

/* Write an error, one printable line, and return its status. The name that messages begin with stands in front. */
bitloom_status bitloom_fail(bitloom_error *error, bitloom_status status, const char *name, const char *format, ...)
    BITLOOM_PRINTF(4, 5);

/* Memory for `count` things of `size` bytes, all 0; NULL where there is none, or the number doesn't fit. */
void *bitloom_allocate(const bitloom_heap *heap, size_t count, size_t size);
void bitloom_release(const bitloom_heap *heap, void *memory);

/* Little-endian numbers at any address. */
uint32_t bitloom_u16(const uint8_t *bytes);
static inline uint32_t bitloom_u32(const uint8_t *bytes) { /* in a header: packing a frame calls it often */
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}
uint64_t bitloom_u64(const uint8_t *bytes);

/* A piece of a file. */
typedef struct bitloom_bytes {
    const uint8_t *data;
    size_t size;
} bitloom_bytes;

/* Names of networks and designs: 1 to 64 of A-Z a-z 0-9 _ - . that don't begin with - or . (golden/names.py). */
#define BITLOOM_NAME_LENGTH 64
bool bitloom_is_name(const char *text, size_t length);
/* SHA-256 as 64 lower-case hexadecimal digits. */
#define BITLOOM_DIGEST_LENGTH 64
bool bitloom_is_digest(const char *text, size_t length);

/* JSON (bitloom_json.c): a value is a node in an array; the nodes of what it holds follow it. */

typedef enum bitloom_json_kind {
    BITLOOM_JSON_NULL,
    BITLOOM_JSON_FALSE,
    BITLOOM_JSON_TRUE,
    BITLOOM_JSON_INTEGER,
    BITLOOM_JSON_REAL,
    BITLOOM_JSON_STRING,
    BITLOOM_JSON_LIST,
    BITLOOM_JSON_OBJECT
} bitloom_json_kind;

typedef struct bitloom_node {
    uint32_t kind, begin, end; /* bytes of the text; of a string what is between the quotation marks */
    uint32_t count;            /* entries of a list or an object, whose keys are nodes of their own */
    uint32_t after;            /* number of the node behind this one and all that it holds */
} bitloom_node;

typedef struct bitloom_json {
    const bitloom_heap *heap;
    const uint8_t *text;
    bitloom_node *nodes;     /* nodes[0] is the whole */
    const char *name, *what; /* what messages begin with: the file, and which text of it */
    bitloom_error *error;
} bitloom_json;

bitloom_status bitloom_json_read(bitloom_json *json, const bitloom_heap *heap, bitloom_bytes text, const char *name,
                                 const char *what, bitloom_error *error);
void bitloom_json_free(bitloom_json *json);
/* The error of a value that breaks a rule. */
bitloom_status bitloom_json_wrong(const bitloom_json *json, const char *rule, const bitloom_node *node);
/* The value of a key; NULL where there is none, or `object` is none or NULL. */
const bitloom_node *bitloom_json_get(const bitloom_json *json, const bitloom_node *object, const char *key);
/* The first entry of a list or an object, and the one behind an entry: to be called count - 1 times. */
const bitloom_node *bitloom_json_next(const bitloom_json *json, const bitloom_node *entry);
bool bitloom_json_is(const bitloom_json *json, const bitloom_node *node, const char *text); /* this very string */
bool bitloom_json_integer(const bitloom_json *json, const bitloom_node *node, int64_t *value);
bool bitloom_json_number(const bitloom_json *json, const bitloom_node *node, double *value); /* an integer, too */
/* A string's text in UTF-8 with a 0 behind it. False where it isn't one, has control characters or more than `length`
   characters, or where the room of `bytes` bytes is too small. */
bool bitloom_json_text(const bitloom_json *json, const bitloom_node *node, size_t length, char *out, size_t bytes);
/* A value for messages. */
typedef struct bitloom_shown {
    char text[64];
} bitloom_shown;
bitloom_shown bitloom_show(const bitloom_json *json, const bitloom_node *node);
bitloom_shown bitloom_show_bytes(const uint8_t *bytes, size_t size);

/* Archives (bitloom_archive.c): a file and its arrays, which stay where they are. */

enum {
    BITLOOM_HEADER,
    BITLOOM_PARAMETERS,
    BITLOOM_FRAME_POSITIONS,
    BITLOOM_FRAME_LANES,
    BITLOOM_RESULT_MAPS,
    BITLOOM_RESULT_PLACES,
    BITLOOM_DIGEST,
    BITLOOM_WEIGHTS_ARRAY,
    BITLOOM_WEIGHTS_BEFORE,
    BITLOOM_HOST,
    BITLOOM_TAIL,
    BITLOOM_ARRAYS
};

typedef struct bitloom_array {
    const uint8_t *data; /* NULL: the file has no such array */
    char dtype[4];       /* "<u4" */
    unsigned axes;
    size_t shape[2], count; /* count: values */
} bitloom_array;

typedef struct bitloom_archive {
    const bitloom_heap *heap;
    bitloom_array arrays[BITLOOM_ARRAYS];
    bitloom_array *programs; /* of a network in partitions: the files of its programs; else NULL */
    size_t program_count, program_room;
} bitloom_archive;

/* Read and check all arrays of a program, or of a network in partitions, their checksums and the digest. Of the second
   one the archive must be freed, where it was read. */
bitloom_status bitloom_archive_read(const bitloom_heap *heap, bitloom_bytes file, const char *name,
                                    bitloom_archive *archive, bitloom_error *error);
void bitloom_archive_free(bitloom_archive *archive);
const char *bitloom_array_name(unsigned number);

/* What the host computes around an imported network (bitloom_host.c) */

/* Steps of a chain, each with two numbers a channel: x * first + second, or clipped to first..second. */
typedef struct bitloom_links {
    size_t count, channels;
    uint8_t *clips;  /* (count,) 1: a clip, 0: a line */
    double *numbers; /* (count, 2, channels) */
} bitloom_links;

typedef struct bitloom_host {
    size_t values, channels; /* numbers of an image, channels of the input */
    uint32_t *order;         /* (values,) the place of each number in the input map */
    bool takes_integers;
    int64_t ends[3]; /* of such a file's integers: the smallest, that of the number 0, the largest */
    double scale;    /* the real number of a step between two of them */
    bitloom_links front;
    size_t rows, levels; /* rows 0: images are integers already */
    double *boundaries;  /* (rows, levels) */
    uint32_t *equal;     /* (levels + 1,) of the first boundaries, those that equality reaches */
    int64_t first, stride;
    bitloom_links back;
    size_t scores, output_channels;
    uint32_t *output_order; /* (scores,) the place of each score in the output map */
    size_t closings;
    uint8_t closing[64]; /* which operators end the file, in order */
    size_t classes, apart; /* over so many scores at a time, each so many places behind the one before */
} bitloom_host;

bitloom_status bitloom_host_read(const bitloom_heap *heap, bitloom_bytes text, const bitloom_program *program,
                                 bitloom_host *host, bitloom_error *error);
void bitloom_host_free(const bitloom_heap *heap, bitloom_host *host);
/* Numbers of an image, in the order of the input map -> values of the input, in place. False where one isn't finite or
   not of the encoding: then numbers[0] is the one. */
bool bitloom_host_input(const bitloom_program *program, double *numbers, const char **rule);
/* Outputs -> scores; `closed`: behind what ends the file. False where one isn't finite. */
bool bitloom_host_scores(const bitloom_host *host, const int64_t *outputs, bool closed, double *scores);

/* What pixels stand for (bitloom_transform.c) */

#define BITLOOM_MOST_STEPS 4

typedef struct bitloom_transform {
    unsigned count; /* steps of integers, which give values of the input */
    uint8_t kinds[BITLOOM_MOST_STEPS];
    int64_t arguments[BITLOOM_MOST_STEPS];
    bool of_host; /* instead: numbers as the network was trained on, pixel * numerator / denominator + offset */
    double numerator, denominator, offset;
} bitloom_transform;

/* A pixel through the steps. False where it is out of range, with the rule. */
bool bitloom_transform_pixel(const bitloom_transform *transform, int64_t *value, const char **rule);
/* What the file takes for a pixel. */
double bitloom_transform_number(const bitloom_program *program, double pixel);

/* Programs (bitloom_program.c) */

/* Words of lanes, and how they become stream words (hls_gen/design/lane_words.py). */
typedef struct bitloom_words {
    uint32_t lanes, lane_bits;
    uint64_t word_bits;
    uint32_t together, pieces; /* words in a stream word, stream words of a word: one of the two is 1 */
} bitloom_words;

/* What a lane of a frame holds: `what` 0 or 1 is that number; 2: the bits of a value from `shift` on. */
typedef struct bitloom_lane {
    uint32_t position, channel; /* position: of its group */
    uint8_t what, shift;
} bitloom_lane;

/* Channels of a map: of the network's input (map 0), or of one that a program gives. */
typedef struct bitloom_channels {
    size_t map;
    uint32_t begin, end; /* end: behind the last one */
} bitloom_channels;

/* A map that the host holds between programs (driver/host_maps.py), position by position. */
typedef struct bitloom_map {
    char name[BITLOOM_NAME_LENGTH + 1]; /* of the layer that makes it */
    uint32_t height, width, channels;
    int64_t low, high; /* the values that its readers take */
    bitloom_type type; /* of its values */
    size_t bytes, offset; /* of a frame: where it lies among all maps that are held; 0 bytes: it isn't */
    size_t first, last, read; /* turns that give and read it first and last; how many read it */
} bitloom_map;

/* A program, and the maps for which it runs (hls_gen/design/compiled_network.py). */
typedef struct bitloom_turn {
    struct bitloom_program *program;
    bitloom_channels *reads; /* its images, channels behind channels */
    size_t read_count;
    bitloom_channels gives;
} bitloom_turn;

/* A network in partitions has other programs, whose arrays it uses. Else there is one turn, its own. */
struct bitloom_program {
    bitloom_heap heap;
    bitloom_program_facts facts;
    char name[BITLOOM_NAME_LENGTH + 1], design[BITLOOM_DIGEST_LENGTH + 1], model[BITLOOM_DIGEST_LENGTH + 1];
    bitloom_array arrays[BITLOOM_ARRAYS];
    bitloom_encoding encoding;
    unsigned bits; /* of a value of the input */
    bitloom_result_kind output;
    bool single_bits; /* whether each value of the output is one bit, as the device gives it */
    size_t payload_words, result_words, weights, weights_before; /* in 32-bit words */
    uint32_t frame_words, stream_bits, position_values;
    bitloom_words frame;
    bitloom_lane *lanes; /* of the words of a group of positions, one behind the other */
    char *class_names; /* one behind the other, each with a 0 */
    bool has_host;
    bitloom_host host;
    bitloom_transform transform;
    bitloom_turn *turns, own_turn;
    size_t turn_count;
    bitloom_map *maps, own_maps[2]; /* the input, then the others in the order in which they are given */
    size_t map_count;
    bitloom_channels own_reads;
};

/* A program's file that must be no network in partitions; freed by bitloom_program_free. */
bitloom_status bitloom_program_inside(const bitloom_heap *heap, bitloom_bytes file, const char *name,
                                      bitloom_program **program, bitloom_error *error);
/* What a file's header has of every network. */
bitloom_status bitloom_read_format(const bitloom_json *json, const char *format, int64_t version);
typedef enum bitloom_text { BITLOOM_NAME, BITLOOM_DESIGN_DIGEST, BITLOOM_MODEL_DIGEST } bitloom_text;
bitloom_status bitloom_read_text(const bitloom_json *json, bitloom_text which, char out[65]);
bitloom_status bitloom_read_classes(bitloom_program *program, const bitloom_json *json);
/* An integer of 1..2^31 - 1. */
bool bitloom_read_size(const bitloom_json *json, const bitloom_node *node, uint32_t *size);

/* Networks in partitions (bitloom_partitions.c) */

/* The turns of a network, of its archive, and all facts that follow from them. */
bitloom_status bitloom_partitions_read(bitloom_program *network, const bitloom_archive *archive, const char *name,
                                       bitloom_error *error);
/* The same of a program alone. */
void bitloom_partitions_own(bitloom_program *program);
void bitloom_partitions_free(bitloom_program *network);

/* Frames */

/* The values of some frames of a map, where somebody holds them. */
typedef struct bitloom_held {
    void *values; /* NULL: nobody holds them */
    bitloom_type type;
    size_t first; /* number of the image whose values are the first ones */
    bool as_file; /* of the input: images are as an imported network's file takes them */
} bitloom_held;

/* Scratch memory of whoever packs and unpacks frames: of one device. */
typedef struct bitloom_scratch {
    uint64_t *codes;  /* (image values,) as they are stored, the highest bit repeated where values may be negative */
    double *numbers;  /* (image values,) of an imported network */
    int64_t *outputs; /* (outputs,) */
    double *scores;
} bitloom_scratch;

bitloom_status bitloom_scratch_allocate(const bitloom_heap *heap, const bitloom_program *network,
                                        bitloom_scratch *scratch, bitloom_error *error);
void bitloom_scratch_free(const bitloom_heap *heap, bitloom_scratch *scratch);
/* Payload of the frame of a turn for image `number`, of the network's maps. */
bitloom_status bitloom_pack(const bitloom_program *network, const bitloom_turn *turn, const bitloom_held *maps,
                            bitloom_scratch *scratch, size_t number, volatile uint32_t *payload, bitloom_error *error);
/* Output values of a frame's result words, of the program of one turn. */
void bitloom_unpack(const bitloom_program *program, const volatile uint32_t *words, int64_t *outputs);
/* Outputs of a turn for image `number` into the map that it gives. */
bitloom_status bitloom_give(const bitloom_program *network, const bitloom_turn *turn, const int64_t *outputs,
                            size_t number, const bitloom_held *map, bitloom_error *error);
/* The class of a frame, of its outputs. False where a score isn't finite. */
bool bitloom_class_of(const bitloom_program *program, const int64_t *outputs, double *scores, int32_t *number);

#endif
