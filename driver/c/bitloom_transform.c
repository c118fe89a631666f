/* Pixels of a data set become values of a network's input: golden/transform.py, and for imported networks
   overlay/evaluation/host_transform.py, in the same order of operations. */
#include <math.h>
#include <string.h>

#include "bitloom_parts.h"

enum { MINUS, SHIFT, THRESHOLD, FIXED, KINDS };
enum { LARGEST_PIXEL = 255, MOST_DIGITS = 12, EXACT_DIGITS = 15 }; /* numbers of 15 digits are exact in double */
static const int64_t LIMIT = (int64_t)1 << 31;

static const struct {
    const char *name;
    int64_t low, high; /* of the argument */
} STEPS[KINDS] = {{"minus:", -((int64_t)1 << 31), ((int64_t)1 << 31) - 1},
                  {"shift:", 1, 31},
                  {"threshold:", -((int64_t)1 << 31), ((int64_t)1 << 31) - 1},
                  {"fixed:", 2, 16}};

/* Up to `most` digits from *text on, which moves behind them; their number, 0 where there are none. */
static unsigned digits(const char **text, unsigned most, double *value) {
    unsigned count = 0;
    for (; **text >= '0' && **text <= '9' && count < most; ++*text, count++) *value = *value * 10 + (**text - '0');
    return count;
}

static bool read_steps(const char *text, bitloom_transform *transform) {
    while (transform->count < BITLOOM_MOST_STEPS) {
        double value = 0;
        bool negative;
        unsigned kind;
        for (kind = 0; kind < KINDS && strncmp(text, STEPS[kind].name, strlen(STEPS[kind].name)); kind++) {
        }
        if (kind == KINDS) return false;
        text += strlen(STEPS[kind].name);
        negative = *text == '-';
        text += negative;
        if (!digits(&text, 10, &value)) return false;
        if (negative) value = -value;
        if (value < (double)STEPS[kind].low || value > (double)STEPS[kind].high) return false;
        transform->kinds[transform->count] = (uint8_t)kind;
        transform->arguments[transform->count++] = (int64_t)value;
        if (!*text) return true;
        if (*text++ != ',') return false;
    }
    return false;
}

/* A number, or a fraction: -1, 0.5, 1/255. */
static bool read_fraction(const char **text, double *numerator, double *denominator) {
    const bool negative = **text == '-';
    unsigned before, behind = 0;
    *text += negative;
    *numerator = 0;
    *denominator = 1;
    before = digits(text, MOST_DIGITS, numerator);
    if (!before) return false;
    if (**text == '.') {
        ++*text;
        behind = digits(text, MOST_DIGITS, numerator);
        if (!behind || before + behind > EXACT_DIGITS) return false;
        for (; behind; behind--) *denominator *= 10;
    } else if (**text == '/') {
        ++*text;
        *denominator = 0;
        if (**text == '0' || !digits(text, MOST_DIGITS, denominator)) return false;
    }
    if (negative) *numerator = -*numerator;
    return true;
}

/* In lowest terms, as Python's fractions are: a product is rounded otherwise. */
static void shorten(double *numerator, double *denominator) {
    double a = fabs(*numerator), b = *denominator;
    while (b > 0) {
        const double rest = fmod(a, b);
        a = b;
        b = rest;
    }
    *numerator /= a;
    *denominator /= a;
}

static bool read_host(const char *text, bitloom_transform *transform) {
    double numerator = 0, denominator = 1;
    transform->numerator = transform->denominator = 1;
    if (*text == ':') {
        text++;
        if (!read_fraction(&text, &transform->numerator, &transform->denominator)) return false;
        shorten(&transform->numerator, &transform->denominator);
    }
    if (*text == ':') {
        text++;
        if (!read_fraction(&text, &numerator, &denominator)) return false;
    }
    transform->offset = numerator / denominator;
    return !*text;
}

bitloom_status bitloom_program_transform(bitloom_program *program, const char *text, bitloom_error *error) {
    bitloom_transform transform;
    bool right = true;
    memset(&transform, 0, sizeof transform);
    if (!strncmp(text, "host", 4)) {
        if (!program->has_host)
            return bitloom_fail(error, BITLOOM_INVALID, program->name,
                                "transform host is for imported networks, got one without a host file");
        transform.of_host = true;
        right = read_host(text + 4, &transform);
    } else if (strcmp(text, "none")) {
        right = read_steps(text, &transform);
    }
    if (!right)
        return bitloom_fail(error, BITLOOM_INVALID, program->name,
                            "transform: must be none, up to 4 of minus:V, shift:1..31, threshold:T, fixed:2..16 with "
                            "commas between them, or host, host:SCALE or host:SCALE:OFFSET, got '%s'",
                            bitloom_show_bytes((const uint8_t *)text, strlen(text)).text);
    program->transform = transform;
    program->facts.takes_pixels = transform.of_host || transform.count;
    return BITLOOM_OK;
}

bool bitloom_transform_pixel(const bitloom_transform *transform, int64_t *value, const char **rule) {
    unsigned i;
    *rule = "pixels must be -2147483648..2147483647";
    if (*value < -LIMIT || *value >= LIMIT) return false;
    for (i = 0; i < transform->count; i++) {
        const int64_t argument = transform->arguments[i];
        switch (transform->kinds[i]) {
        case MINUS: *value -= argument; break;
        case SHIFT: *value = *value >= 0 ? *value >> argument : ~(~*value >> argument); break;
        case THRESHOLD: *value = *value >= argument ? 1 : -1; break;
        default: {
            const double half = (double)((int64_t)1 << (argument - 1));
            const double scaled = floor((2.0 * (double)*value / (double)LARGEST_PIXEL - 1) * half + 0.5);
            *rule = "what fixed takes must be 0..255";
            if (*value < 0 || *value > LARGEST_PIXEL) return false;
            *value = (int64_t)(scaled < half - 1 ? scaled : half - 1);
        }
        }
    }
    return true;
}

double bitloom_transform_number(const bitloom_program *program, double pixel) {
    const bitloom_transform *transform = &program->transform;
    const bitloom_host *host = &program->host;
    volatile double quotient = pixel * transform->numerator / transform->denominator;
    double x = quotient + transform->offset;
    if (!host->takes_integers || !isfinite(x)) return x;
    x = copysign(floor(fabs(x / host->scale) + 0.5), x) + (double)host->ends[1];
    return x < (double)host->ends[0] ? (double)host->ends[0] : x > (double)host->ends[2] ? (double)host->ends[2] : x;
}
