/* JSON from outside, as RFC 8259 has it and golden/reading/json_text.py reads it: UTF-8, no NaN, no key twice, no
   endless depth, no numbers that don't fit. Stricter than Python's reader in three things: keys have no escapes, an
   object has at most MOST_KEYS of them, and a number has at most LONGEST_NUMBER characters. */
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bitloom_parts.h"

enum { DEEPEST = 64, MOST_KEYS = 256, LONGEST_INTEGER = 20, LONGEST_NUMBER = 64 };

/* Errors and memory, which all files use */

bitloom_status bitloom_fail(bitloom_error *error, bitloom_status status, const char *name, const char *format, ...) {
    va_list arguments;
    size_t length;
    if (!error) return status;
    error->status = status;
    error->code = 0;
    length = (size_t)snprintf(error->text, sizeof error->text, "%s: ", name);
    if (length >= sizeof error->text) return status;
    va_start(arguments, format);
    vsnprintf(error->text + length, sizeof error->text - length, format, arguments);
    va_end(arguments);
    return status;
}

void *bitloom_allocate(const bitloom_heap *heap, size_t count, size_t size) {
    void *memory;
    if (!count) count = 1;
    if (size && count > SIZE_MAX / size) return NULL;
    memory = heap->allocate(heap->context, count * size);
    if (memory) memset(memory, 0, count * size);
    return memory;
}

void bitloom_release(const bitloom_heap *heap, void *memory) {
    if (memory) heap->release(heap->context, memory);
}

uint32_t bitloom_u16(const uint8_t *bytes) { return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8; }
uint64_t bitloom_u64(const uint8_t *bytes) { return bitloom_u32(bytes) | (uint64_t)bitloom_u32(bytes + 4) << 32; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

bool bitloom_is_name(const char *text, size_t length) {
    size_t i;
    if (length < 1 || length > BITLOOM_NAME_LENGTH || text[0] == '-' || text[0] == '.') return false;
    for (i = 0; i < length; i++) {
        const int c = (unsigned char)text[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !is_digit(c) && c != '_' && c != '-' && c != '.') return false;
    }
    return true;
}

bool bitloom_is_digest(const char *text, size_t length) {
    size_t i;
    for (i = 0; i < length; i++)
        if (!is_digit((unsigned char)text[i]) && !(text[i] >= 'a' && text[i] <= 'f')) return false;
    return length == BITLOOM_DIGEST_LENGTH;
}

/* Parsing: once without nodes, to count them, and then once more. */

typedef struct parser {
    const uint8_t *text;
    size_t size, at;
    bitloom_node *nodes;
    size_t count;
    unsigned depth;
    const char *wrong;
} parser;

static bool value(parser *p);

static bool refuse(parser *p, const char *what) {
    if (!p->wrong) p->wrong = what;
    return false;
}

static int peek(const parser *p) { return p->at < p->size ? p->text[p->at] : -1; }

static void skip_blanks(parser *p) {
    while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\n' || peek(p) == '\r') p->at++;
}

/* Take the next node; its number. */
static size_t begin(parser *p, bitloom_json_kind kind) {
    const size_t number = p->count++;
    if (p->nodes) {
        p->nodes[number].kind = (uint32_t)kind;
        p->nodes[number].begin = (uint32_t)p->at;
    }
    return number;
}

static bool end(parser *p, size_t number, size_t at, size_t count) {
    if (p->nodes) {
        p->nodes[number].end = (uint32_t)at;
        p->nodes[number].count = (uint32_t)count;
        p->nodes[number].after = (uint32_t)p->count;
    }
    return true;
}

static bool word(parser *p, const char *text, bitloom_json_kind kind) {
    const size_t length = strlen(text), number = begin(p, kind);
    if (p->size - p->at < length || memcmp(p->text + p->at, text, length) != 0) return refuse(p, "no value");
    p->at += length;
    return end(p, number, p->at, 0);
}

/* The code of four hexadecimal digits at `at`; -1 where they are none. */
static long hexadecimal(const uint8_t *text, size_t size, size_t at) {
    long code = 0;
    size_t i;
    if (size < 4 || at > size - 4) return -1;
    for (i = at; i < at + 4; i++) {
        const int c = text[i];
        if (is_digit(c)) code = code * 16 + c - '0';
        else if (c >= 'a' && c <= 'f') code = code * 16 + c - 'a' + 10;
        else if (c >= 'A' && c <= 'F') code = code * 16 + c - 'A' + 10;
        else return -1;
    }
    return code;
}

/* One character of a string's text, escapes decoded, from `at` on; -1 where it is none. */
static long character(const uint8_t *text, size_t size, size_t *at) {
    static const char NAMES[] = "\"\\/bfnrt", CODES[] = "\"\\/\b\f\n\r\t";
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    const int c = text[(*at)++];
    if (c == '\\') {
        const char *name;
        long code, low;
        if (*at >= size) return -1;
        if (text[*at] != 'u') {
            name = text[*at] ? strchr(NAMES, text[*at]) : NULL;
            ++*at;
            return name ? (unsigned char)CODES[name - NAMES] : -1;
        }
        code = hexadecimal(text, size, *at + 1);
        *at += 5;
        if (code < 0xD800 || code > 0xDFFF) return code;
        if (code > 0xDBFF || *at + 6 > size || text[*at] != '\\' || text[*at + 1] != 'u') return -1;
        low = hexadecimal(text, size, *at + 2);
        *at += 6;
        return low >= 0xDC00 && low <= 0xDFFF ? 0x10000 + (code - 0xD800) * 0x400 + low - 0xDC00 : -1;
    }
    if (c < 0x20) return -1;
    if (c < 0x80) return c;
    {
        const int bytes = c >= 0xF0 && c <= 0xF4 ? 4 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xC2 && c < 0xE0 ? 2 : 0;
        uint32_t code = (uint32_t)c & (0xFFu >> (bytes + 1));
        int i;
        if (!bytes) return -1;
        for (i = 1; i < bytes; i++, ++*at) {
            if (*at >= size || (text[*at] & 0xC0) != 0x80) return -1;
            code = code << 6 | (text[*at] & 0x3Fu);
        }
        if (code < LEAST[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return -1;
        return (long)code;
    }
}

static bool string(parser *p) {
    size_t number;
    p->at++;
    number = begin(p, BITLOOM_JSON_STRING);
    while (peek(p) != '"') {
        if (p->at >= p->size) return refuse(p, "a string without an end");
        if (character(p->text, p->size, &p->at) < 0) return refuse(p, "a string with a wrong character");
        if (p->at > p->size) return refuse(p, "a string without an end");
    }
    end(p, number, p->at, 0);
    p->at++;
    return true;
}

static size_t digits(parser *p) {
    const size_t first = p->at;
    while (is_digit(peek(p))) p->at++;
    return p->at - first;
}

/* The number in a piece of JSON, whatever the locale's decimal point is; false where it isn't finite. */
static bool real(const uint8_t *text, size_t length, double *number) {
    char copy[LONGEST_NUMBER + 1], *point;
    if (length > LONGEST_NUMBER) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    point = strchr(copy, '.');
    if (point) *point = localeconv()->decimal_point[0];
    *number = strtod(copy, NULL);
    return isfinite(*number) != 0;
}

static bool number(parser *p) {
    const size_t first = p->at, node = begin(p, BITLOOM_JSON_INTEGER);
    bool integer = true;
    double unused;
    if (peek(p) == '-') p->at++;
    if (peek(p) == '0') p->at++;
    else if (!digits(p)) return refuse(p, "no value");
    if (peek(p) == '.') {
        p->at++;
        integer = false;
        if (!digits(p)) return refuse(p, "a number without digits");
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        integer = false;
        if (peek(p) == '+' || peek(p) == '-') p->at++;
        if (!digits(p)) return refuse(p, "a number without digits");
    }
    if (integer && p->at - first > LONGEST_INTEGER) return refuse(p, "an integer of more than 20 characters");
    if (!integer && !real(p->text + first, p->at - first, &unused))
        return refuse(p, "a number that is too large, or of more than 64 characters");
    if (!integer && p->nodes) p->nodes[node].kind = BITLOOM_JSON_REAL;
    return end(p, node, p->at, 0);
}

/* Whether the keys of an object, whose first one is node `first`, are plain, few and all different. */
static bool check_keys(parser *p, size_t first, size_t count) {
    size_t i, j, key = first, other;
    if (count > MOST_KEYS) return refuse(p, "more than 256 keys in one object");
    if (!p->nodes) return true;
    for (i = 0; i < count; i++, key = p->nodes[key + 1].after) {
        const bitloom_node *a = p->nodes + key;
        if (memchr(p->text + a->begin, '\\', a->end - a->begin)) return refuse(p, "a key with an escape");
        for (j = 0, other = first; j < i; j++, other = p->nodes[other + 1].after) {
            const bitloom_node *b = p->nodes + other;
            const size_t length = a->end - a->begin;
            if (length == b->end - b->begin && !memcmp(p->text + a->begin, p->text + b->begin, length))
                return refuse(p, "a key twice in one object");
        }
    }
    return true;
}

/* A list, or an object, up to the closing bracket. */
static bool many(parser *p, bool object) {
    const int close = object ? '}' : ']';
    const size_t node = begin(p, object ? BITLOOM_JSON_OBJECT : BITLOOM_JSON_LIST), first = p->count;
    size_t count = 0;
    if (++p->depth > DEEPEST) return refuse(p, "more than 64 lists and objects inside each other");
    p->at++;
    skip_blanks(p);
    if (peek(p) != close) {
        for (;; p->at++) {
            skip_blanks(p);
            if (object) {
                if (peek(p) != '"') return refuse(p, "an object without a key");
                if (!string(p)) return false;
                skip_blanks(p);
                if (peek(p) != ':') return refuse(p, "a key without a colon");
                p->at++;
                skip_blanks(p);
            }
            if (!value(p)) return false;
            count++;
            skip_blanks(p);
            if (peek(p) == close) break;
            if (peek(p) != ',') return refuse(p, "a list or an object without an end");
        }
    }
    p->at++;
    p->depth--;
    end(p, node, p->at, count);
    return !object || check_keys(p, first, count);
}

static bool value(parser *p) {
    switch (peek(p)) {
    case '{': return many(p, true);
    case '[': return many(p, false);
    case '"': return string(p);
    case 'n': return word(p, "null", BITLOOM_JSON_NULL);
    case 't': return word(p, "true", BITLOOM_JSON_TRUE);
    case 'f': return word(p, "false", BITLOOM_JSON_FALSE);
    default: return number(p);
    }
}

static bool parse(parser *p) {
    skip_blanks(p);
    if (!value(p)) return false;
    skip_blanks(p);
    return p->at == p->size || refuse(p, "more behind its end");
}

bitloom_status bitloom_json_read(bitloom_json *json, const bitloom_heap *heap, bitloom_bytes text, const char *name,
                                 const char *what, bitloom_error *error) {
    parser counting = {text.data, text.size, 0, NULL, 0, 0, NULL}, filling = counting;
    json->heap = heap;
    json->text = text.data;
    json->nodes = NULL;
    json->name = name;
    json->what = what;
    json->error = error;
    if (text.size > INT32_MAX) counting.wrong = "more than 2 GB";
    else if (parse(&counting)) {
        json->nodes = bitloom_allocate(heap, counting.count, sizeof *json->nodes);
        if (!json->nodes)
            return bitloom_fail(error, BITLOOM_NO_MEMORY, name, "%s needs %lu bytes, got no memory", what,
                                (unsigned long)(counting.count * sizeof *json->nodes));
        filling.nodes = json->nodes;
        if (parse(&filling)) return BITLOOM_OK;
        counting.wrong = filling.wrong;
        bitloom_json_free(json);
    }
    return bitloom_fail(error, BITLOOM_INVALID, name, "%s must be JSON, got: %s", what, counting.wrong);
}

bitloom_status bitloom_json_wrong(const bitloom_json *json, const char *rule, const bitloom_node *node) {
    return bitloom_fail(json->error, BITLOOM_INVALID, json->name, "%s: %s, got %s", json->what, rule,
                        bitloom_show(json, node).text);
}

void bitloom_json_free(bitloom_json *json) {
    bitloom_release(json->heap, json->nodes);
    json->nodes = NULL;
}

/* Values */

const bitloom_node *bitloom_json_next(const bitloom_json *json, const bitloom_node *entry) {
    return json->nodes + entry->after;
}

const bitloom_node *bitloom_json_get(const bitloom_json *json, const bitloom_node *object, const char *key) {
    const bitloom_node *entry;
    uint32_t i;
    if (!object || object->kind != BITLOOM_JSON_OBJECT) return NULL;
    for (i = 0, entry = object + 1; i < object->count; i++, entry = bitloom_json_next(json, entry + 1))
        if (bitloom_json_is(json, entry, key)) return entry + 1;
    return NULL;
}

bool bitloom_json_is(const bitloom_json *json, const bitloom_node *node, const char *text) {
    const size_t length = strlen(text);
    return node && node->kind == BITLOOM_JSON_STRING && node->end - node->begin == length &&
           !memcmp(json->text + node->begin, text, length);
}

bool bitloom_json_integer(const bitloom_json *json, const bitloom_node *node, int64_t *out) {
    uint64_t magnitude = 0;
    uint32_t at;
    bool negative;
    if (!node || node->kind != BITLOOM_JSON_INTEGER) return false;
    negative = json->text[node->begin] == '-';
    for (at = node->begin + negative; at < node->end; at++) {
        const unsigned digit = (unsigned)(json->text[at] - '0');
        if (magnitude > ((uint64_t)INT64_MAX - digit) / 10) return false;
        magnitude = magnitude * 10 + digit;
    }
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

bool bitloom_json_number(const bitloom_json *json, const bitloom_node *node, double *out) {
    if (!node || (node->kind != BITLOOM_JSON_INTEGER && node->kind != BITLOOM_JSON_REAL)) return false;
    return real(json->text + node->begin, node->end - node->begin, out);
}

bool bitloom_json_text(const bitloom_json *json, const bitloom_node *node, size_t length, char *out, size_t bytes) {
    size_t at, used = 0, characters = 0;
    if (!node || node->kind != BITLOOM_JSON_STRING) return false;
    for (at = node->begin; at < node->end; characters++) {
        const long code = character(json->text, node->end, &at);
        const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        int i;
        if (code < 0x20 || (code >= 0x7F && code < 0xA0) || bytes < used + (size_t)more + 2) return false;
        out[used++] = (char)(more ? (0xFF00 >> (more + 1) & 0xFF) | code >> 6 * more : code);
        for (i = more - 1; i >= 0; i--) out[used++] = (char)(0x80 | (code >> 6 * i & 0x3F));
    }
    out[used] = 0;
    return characters <= length;
}

bitloom_shown bitloom_show_bytes(const uint8_t *bytes, size_t size) {
    bitloom_shown shown;
    const size_t most = sizeof shown.text - 4, length = size > most ? most : size;
    size_t i;
    for (i = 0; i < length; i++) shown.text[i] = (char)(bytes[i] >= 0x20 && bytes[i] < 0x7F ? bytes[i] : '?');
    strcpy(shown.text + length, size > most ? "..." : "");
    return shown;
}

bitloom_shown bitloom_show(const bitloom_json *json, const bitloom_node *node) {
    size_t quote;
    if (!node) return bitloom_show_bytes((const uint8_t *)"nothing", 7);
    quote = node->kind == BITLOOM_JSON_STRING;
    return bitloom_show_bytes(json->text + node->begin - quote, node->end - node->begin + 2 * quote);
}
