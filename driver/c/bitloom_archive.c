/* A program's file, or that of a network in partitions: a plain zip of .npy arrays, as hls_gen/design/array_file.py
   writes it and golden/reading reads it.

   Stricter than Python's reader: members are stored, not deflated, and nothing stands in front of the archive or behind
   it; arrays have the byte order, the order of axes and the types that bitloom writes. Nothing is copied: an array is a
   piece of the file. Every offset and size is checked against the file before it is used. */
#include <stdio.h>
#include <string.h>

#include "bitloom_parts.h"

enum { END_BYTES = 22, CENTRAL_BYTES = 46, LOCAL_BYTES = 30 };
static const uint32_t END_MARK = 0x06054B50u, CENTRAL_MARK = 0x02014B50u, LOCAL_MARK = 0x04034B50u;

/* What an array must be; "i" stands for "<i4" or "<i8", one integer. */
typedef struct array_form {
    const char *name, *dtype;
    unsigned axes;
} array_form;
static const array_form ARRAYS[BITLOOM_ARRAYS] = {
    {"header", "|u1", 1},        {"parameters", "<u4", 1},    {"frame_positions", "<i4", 2}, {"frame_lanes", "<i4", 2},
    {"result_maps", "<i4", 2},   {"result_places", "<i4", 2}, {"digest", "|u1", 1},          {"weights", "<u4", 1},
    {"weights_before", "i", 0},  {"host", "|u1", 1},          {"tail", "|u1", 1},
};
static const array_form PROGRAM = {"program_", "|u1", 1}; /* and its number */

const char *bitloom_array_name(unsigned number) { return ARRAYS[number].name; }

/* CRC-32 of zip archives, four bits at a time. */
static uint32_t crc_of(bitloom_bytes bytes) {
    uint32_t table[16], crc = 0xFFFFFFFFu, i;
    size_t at;
    for (i = 0; i < 16; i++) {
        uint32_t entry = i;
        int bit;
        for (bit = 0; bit < 4; bit++) entry = entry & 1 ? entry >> 1 ^ 0xEDB88320u : entry >> 1;
        table[i] = entry;
    }
    for (at = 0; at < bytes.size; at++) {
        crc ^= bytes.data[at];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* SHA-256 (FIPS 180-4) */

typedef struct sha256 {
    uint32_t state[8];
    uint8_t block[64];
    uint64_t bytes;
} sha256;

static uint32_t rotated(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void sha256_block(uint32_t *state, const uint8_t *block) {
    static const uint32_t K[64] = {
        0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
        0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
        0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
        0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
        0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
        0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
        0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
        0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u};
    uint32_t w[64], s[8];
    unsigned i;
    for (i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (; i < 64; i++) {
        const uint32_t a = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t b = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, state, sizeof s);
    for (i = 0; i < 64; i++) { /* the eight numbers move up by one in each round: their places do, instead of them */
#define S(k) s[((k) + 64 - i) % 8]
        const uint32_t choice = (S(4) & S(5)) ^ (~S(4) & S(6));
        const uint32_t majority = (S(0) & S(1)) ^ (S(0) & S(2)) ^ (S(1) & S(2));
        const uint32_t a = S(7) + (rotated(S(4), 6) ^ rotated(S(4), 11) ^ rotated(S(4), 25)) + choice + K[i] + w[i];
        const uint32_t b = (rotated(S(0), 2) ^ rotated(S(0), 13) ^ rotated(S(0), 22)) + majority;
        S(3) += a;
        S(7) = a + b;
#undef S
    }
    for (i = 0; i < 8; i++) state[i] += s[i];
}

static void sha256_begin(sha256 *sha) {
    static const uint32_t START[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                      0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
    memcpy(sha->state, START, sizeof START);
    sha->bytes = 0;
}

static void sha256_add(sha256 *sha, const uint8_t *data, size_t size) {
    while (size) {
        const size_t used = (size_t)(sha->bytes % 64), part = size < 64 - used ? size : 64 - used;
        if (part == 64) { /* a whole block, from where it is */
            sha256_block(sha->state, data);
            sha->bytes += part;
            data += part;
            size -= part;
            continue;
        }
        memcpy(sha->block + used, data, part);
        sha->bytes += part;
        data += part;
        size -= part;
        if (sha->bytes % 64 == 0) sha256_block(sha->state, sha->block);
    }
}

static void sha256_end(sha256 *sha, uint8_t out[32]) {
    const uint64_t bits = 8 * sha->bytes;
    uint8_t length[8];
    int i;
    for (i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(sha, (const uint8_t *)"\x80", 1);
    while (sha->bytes % 64 != 56) sha256_add(sha, (const uint8_t *)"", 1);
    sha256_add(sha, length, sizeof length);
    for (i = 0; i < 32; i++) out[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* npy */

static bool take(bitloom_bytes *text, const char *what) {
    const size_t length = strlen(what);
    if (text->size < length || memcmp(text->data, what, length) != 0) return false;
    text->data += length;
    text->size -= length;
    return true;
}

/* The tuple of a shape, up to and with its closing bracket: (), (3,) or (3, 4). False where it is none of these. */
static bool take_shape(bitloom_bytes *text, bitloom_array *array) {
    if (!take(text, "(")) return false;
    for (array->axes = 0; !take(text, ")"); array->axes++) {
        size_t size = 0, digits = 0;
        if (array->axes == 2 || (array->axes && !take(text, " "))) return false;
        for (; text->size && text->data[0] >= '0' && text->data[0] <= '9'; text->data++, text->size--, digits++) {
            if (size > (SIZE_MAX - 9) / 10) return false;
            size = size * 10 + (size_t)(text->data[0] - '0');
        }
        if (!digits) return false;
        array->shape[array->axes] = size;
        if (!take(text, ",")) {
            array->axes++;
            return array->axes == 2 && take(text, ")");
        }
    }
    return array->axes < 2;
}

/* An array in the form that numpy writes; its rule in words where it is another. */
static const char *read_npy(bitloom_bytes file, const array_form *form, bitloom_array *array) {
    bitloom_bytes text;
    size_t item, header, wide, i;
    if (file.size < 12 || memcmp(file.data, "\x93NUMPY", 6) != 0) return "must be npy data";
    wide = file.data[6] == 1 ? 2 : 4;
    if (file.data[6] < 1 || file.data[6] > 3) return "must be npy data of version 1, 2 or 3";
    header = wide == 2 ? bitloom_u16(file.data + 8) : bitloom_u32(file.data + 8);
    if (header > 1024 || header > file.size - 8 - wide) return "the npy header must not go beyond the file's end";
    text.data = file.data + 8 + wide;
    text.size = header;
    if (!take(&text, "{'descr': '") || text.size < 3) return "must have an npy header of one plain dtype and a shape";
    memcpy(array->dtype, text.data, 3);
    array->dtype[3] = 0;
    text.data += 3;
    text.size -= 3;
    if (form->dtype[0] == 'i') {
        if (strcmp(array->dtype, "<i4") != 0 && strcmp(array->dtype, "<i8") != 0) return "must be a '<i8'";
    } else if (strcmp(array->dtype, form->dtype) != 0) {
        return "must be of the dtype that bitloom writes";
    }
    if (!take(&text, "', 'fortran_order': False, 'shape': ") || !take_shape(&text, array) ||
        array->axes != form->axes || !(take(&text, ", }") || take(&text, "}")))
        return "must have the shape that bitloom writes, row by row";
    while (take(&text, " ")) {
    }
    take(&text, "\n");
    if (text.size) return "must have an npy header of one plain dtype and a shape";
    item = (size_t)(array->dtype[2] - '0');
    array->count = 1;
    for (i = 0; i < array->axes; i++) {
        if (array->shape[i] && array->count > SIZE_MAX / array->shape[i]) return "must fit the file";
        array->count *= array->shape[i];
    }
    array->data = file.data + 8 + wide + header;
    if (array->count != (file.size - 8 - wide - header) / item || (file.size - 8 - wide - header) % item)
        return "must have as many bytes as its shape needs";
    return NULL;
}

/* Zip */

/* The array that a member's name means, and its form; NULL where it is none. */
static bitloom_array *array_of(bitloom_archive *archive, bitloom_bytes name, const array_form **form) {
    unsigned number, digits;
    for (number = 0; number < BITLOOM_ARRAYS; number++) {
        bitloom_bytes rest = name;
        *form = ARRAYS + number;
        if (take(&rest, ARRAYS[number].name) && take(&rest, ".npy") && !rest.size) return archive->arrays + number;
    }
    *form = &PROGRAM;
    if (!take(&name, PROGRAM.name)) return NULL;
    for (number = digits = 0; digits < 4 && name.size && name.data[0] >= '0' && name.data[0] <= '9'; digits++) {
        if (digits && !number) return NULL; /* 0 in front */
        number = number * 10 + (unsigned)(name.data[0] - '0');
        name.data++;
        name.size--;
    }
    if (!digits || !take(&name, ".npy") || name.size || number >= archive->program_room) return NULL;
    if (number >= archive->program_count) archive->program_count = number + 1;
    return archive->programs + number;
}

/* Take the next member of the central directory, of which `directory` is what is left; NULL, or its rule in words. */
static const char *next_member(bitloom_bytes file, bitloom_bytes *directory, size_t data_end, bitloom_bytes *name,
                               bitloom_bytes *content) {
    static const char *const CUT = "its directory must be whole";
    const uint8_t *entry = directory->data, *local;
    size_t named, more, size, offset, local_more;
    if (directory->size < CENTRAL_BYTES || bitloom_u32(entry) != CENTRAL_MARK) return CUT;
    named = bitloom_u16(entry + 28);
    more = named + bitloom_u16(entry + 30) + bitloom_u16(entry + 32);
    size = bitloom_u32(entry + 24);
    offset = bitloom_u32(entry + 42);
    if (directory->size - CENTRAL_BYTES < more) return CUT;
    name->data = entry + CENTRAL_BYTES;
    name->size = named;
    directory->data += CENTRAL_BYTES + more;
    directory->size -= CENTRAL_BYTES + more;
    if (bitloom_u16(entry + 8) || bitloom_u16(entry + 10) || bitloom_u32(entry + 20) != size)
        return "must be stored, without compression or encryption";
    if (offset > data_end || data_end - offset < LOCAL_BYTES + named) return "must lie in the file";
    local = file.data + offset;
    local_more = named + bitloom_u16(local + 28);
    if (bitloom_u32(local) != LOCAL_MARK || bitloom_u16(local + 26) != named ||
        memcmp(local + LOCAL_BYTES, name->data, named) != 0 || memcmp(local + 6, entry + 8, 4) != 0)
        return "must be the same in the directory and in its place";
    if (data_end - offset < LOCAL_BYTES + local_more || data_end - offset - LOCAL_BYTES - local_more < size)
        return "must lie in the file";
    content->data = local + LOCAL_BYTES + local_more;
    content->size = size;
    return crc_of(*content) == bitloom_u32(entry + 16) ? NULL : "must have its checksum";
}

/* An array into a digest: its name, dtype and shape as JSON, and its bytes. Nothing where there is no such array. */
static void add_array(sha256 *sha, const bitloom_array *array, const char *name) {
    char text[128];
    int length;
    if (!array->data) return;
    length = snprintf(text, sizeof text, "[\"%s\", \"%s\", [", name, array->dtype);
    if (array->axes > 0)
        length += snprintf(text + length, sizeof text - (size_t)length, "%lu", (unsigned long)array->shape[0]);
    if (array->axes > 1)
        length += snprintf(text + length, sizeof text - (size_t)length, ", %lu", (unsigned long)array->shape[1]);
    length += snprintf(text + length, sizeof text - (size_t)length, "]]");
    sha256_add(sha, (const uint8_t *)text, (size_t)length);
    sha256_add(sha, array->data, array->count * (size_t)(array->dtype[2] - '0'));
}

/* SHA-256 of the arrays: of the header, of the programs of a network in partitions, and of the others in the order of
   ARRAYS. */
static void digest_of(const bitloom_archive *archive, uint8_t out[32]) {
    char name[32];
    size_t i;
    sha256 sha;
    sha256_begin(&sha);
    add_array(&sha, archive->arrays + BITLOOM_HEADER, ARRAYS[BITLOOM_HEADER].name);
    for (i = 0; i < archive->program_count; i++) {
        snprintf(name, sizeof name, "%s%lu", PROGRAM.name, (unsigned long)i);
        add_array(&sha, archive->programs + i, name);
    }
    for (i = BITLOOM_HEADER + 1; i < BITLOOM_ARRAYS; i++)
        if (i != BITLOOM_DIGEST) add_array(&sha, archive->arrays + i, ARRAYS[i].name);
    sha256_end(&sha, out);
}

/* A file must hold what its kind needs, and a network in partitions nothing else. */
static bitloom_status check_arrays(const bitloom_archive *archive, const char *name, bitloom_error *error) {
    const bitloom_array *arrays = archive->arrays;
    unsigned number;
    for (number = 0; number < archive->program_count; number++)
        if (!archive->programs[number].data)
            return bitloom_fail(error, BITLOOM_INVALID, name, "must hold %s%u.npy, got none", PROGRAM.name, number);
    for (number = 0; number < BITLOOM_ARRAYS; number++) {
        const bool weights = arrays[BITLOOM_WEIGHTS_ARRAY].data || arrays[BITLOOM_WEIGHTS_BEFORE].data;
        const bool both = number == BITLOOM_HEADER || number == BITLOOM_DIGEST;
        const bool needed = both || (!archive->program_count &&
                                     (number < BITLOOM_DIGEST || (number <= BITLOOM_WEIGHTS_BEFORE && weights)));
        if (needed && !arrays[number].data)
            return bitloom_fail(error, BITLOOM_INVALID, name, "must hold %s.npy, got none", ARRAYS[number].name);
        if (archive->program_count && arrays[number].data && !both && number != BITLOOM_HOST)
            return bitloom_fail(error, BITLOOM_INVALID, name, "must hold no %s.npy beside programs, got one",
                                ARRAYS[number].name);
    }
    return BITLOOM_OK;
}

static bitloom_status read_archive(bitloom_bytes file, const char *name, bitloom_archive *archive,
                                   bitloom_error *error) {
    const uint8_t *end;
    bitloom_bytes directory;
    size_t members, data_end;
    uint8_t digest[32];
    end = file.size < END_BYTES ? NULL : file.data + file.size - END_BYTES;
    if (!end || bitloom_u32(end) != END_MARK)
        return bitloom_fail(error, BITLOOM_INVALID, name, "must be a whole, unchanged zip archive, got none");
    members = bitloom_u16(end + 8);
    directory.size = bitloom_u32(end + 12);
    data_end = bitloom_u32(end + 16);
    if (bitloom_u32(end + 4) || bitloom_u16(end + 10) != members || bitloom_u16(end + 20) ||
        data_end > file.size - END_BYTES || directory.size != file.size - END_BYTES - data_end)
        return bitloom_fail(error, BITLOOM_INVALID, name, "must be a whole, unchanged zip archive, got another end");
    directory.data = file.data + data_end;
    archive->program_room = members < BITLOOM_MOST_PROGRAMS ? members : BITLOOM_MOST_PROGRAMS;
    if (members * CENTRAL_BYTES > directory.size) archive->program_room = 0; /* which is refused below */
    archive->programs = bitloom_allocate(archive->heap, archive->program_room, sizeof *archive->programs);
    if (!archive->programs)
        return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "must fit the heap, got no memory");
    for (; members; members--) {
        bitloom_bytes member = {(const uint8_t *)"?", 1}, content = {NULL, 0};
        const char *wrong = next_member(file, &directory, data_end, &member, &content);
        const array_form *form;
        bitloom_array *array = wrong ? NULL : array_of(archive, member, &form);
        if (!wrong && !array) wrong = "must not be there, as a program has no such array";
        if (!wrong && array->data) wrong = "must be there once";
        if (!wrong) wrong = read_npy(content, form, array);
        if (wrong)
            return bitloom_fail(error, BITLOOM_INVALID, name, "member %s: %s",
                                bitloom_show_bytes(member.data, member.size).text, wrong);
    }
    if (directory.size)
        return bitloom_fail(error, BITLOOM_INVALID, name, "must be a whole, unchanged zip archive, got more members");
    TRY(check_arrays(archive, name, error));
    digest_of(archive, digest);
    if (archive->arrays[BITLOOM_DIGEST].count != sizeof digest ||
        memcmp(archive->arrays[BITLOOM_DIGEST].data, digest, sizeof digest) != 0)
        return bitloom_fail(error, BITLOOM_INVALID, name, "the content's digest must be that of the file, got another");
    return BITLOOM_OK;
}

bitloom_status bitloom_archive_read(const bitloom_heap *heap, bitloom_bytes file, const char *name,
                                    bitloom_archive *archive, bitloom_error *error) {
    bitloom_status status;
    memset(archive, 0, sizeof *archive);
    archive->heap = heap;
    status = read_archive(file, name, archive, error);
    if (status || !archive->program_count) bitloom_archive_free(archive);
    return status;
}

void bitloom_archive_free(bitloom_archive *archive) {
    bitloom_release(archive->heap, archive->programs);
    archive->programs = NULL;
}
