/* bitloom: a generated accelerator as C sees it. C99, no dependency but the C library, no operating system needed.

       bitloom_program_read(&heap, bytes, size, "net.program.npz", &program, &error);
       bitloom_open(&platform, manifest, manifest_size, &device, &error);
       bitloom_load(device, program, &error);
       bitloom_classify(device, images, BITLOOM_UINT8, count, classes, &error);

   It does what bitloom's driver in Python does: the same packets, checks, waits and messages. What a board offers is a
   bitloom_platform, a few functions that you write; bitloom_linux.h has those of Linux. Registers and packets:
   docs/reference/device.md. One thread at a time may use a device or a program; there are no global variables. */
#ifndef BITLOOM_H
#define BITLOOM_H

#include <stddef.h>
#include <stdint.h>

#include "bitloom_hardware.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns; the class of an error. */
typedef enum bitloom_status {
    BITLOOM_OK = 0,
    BITLOOM_INVALID,   /* a file, an image or an argument is wrong */
    BITLOOM_NO_MEMORY, /* the heap or the platform's memory is too small */
    BITLOOM_MISMATCH,  /* hardware, manifest and program come from different builds, or the DMA is another one */
    BITLOOM_PACKET,    /* the device refused a packet: bitloom_error.code says why */
    BITLOOM_TRANSFER,  /* the DMA reported an error, or moved another number of bytes than was due */
    BITLOOM_TIMEOUT,   /* nothing moved for the allowed time */
    BITLOOM_TAKEN,     /* somebody else has loaded the device since; it stays theirs until bitloom_load */
    BITLOOM_BUS        /* a function of the platform failed */
} bitloom_status;

#define BITLOOM_TEXT 400

/* An error: one line with the thing, the rule and the value. Wherever a call takes one, it may be NULL. */
typedef struct bitloom_error {
    bitloom_status status;
    uint32_t code; /* of BITLOOM_PACKET: register ERROR_CODE, one of bitloom_error_code; else 0 */
    char text[BITLOOM_TEXT];
} bitloom_error;

/* Where memory for programs and devices comes from, such as malloc and free. */
typedef struct bitloom_heap {
    void *context;
    void *(*allocate)(void *context, size_t bytes); /* aligned for any type; NULL where there is none left */
    void (*release)(void *context, void *memory);
} bitloom_heap;

/* Programs */

/* A compiled network, NAME.program.npz, also one in partitions: opaque. */
typedef struct bitloom_program bitloom_program;

/* What a program says of itself. */
typedef struct bitloom_program_facts {
    const char *name;
    uint32_t height, width, channels; /* of the network's input */
    int64_t low, high;                /* the smallest and the largest value of the input */
    size_t image_values;              /* numbers of an image */
    uint32_t output_height, output_width, output_channels;
    size_t outputs;    /* output_height * output_width * output_channels */
    uint32_t output_maps; /* maps that leave for a frame; the outputs are their values one behind the other */
    size_t scores;     /* scores of an imported network; 0 for others */
    int takes_numbers; /* 1: images of bitloom_classify may be real numbers, as an imported network's file takes them */
    int takes_pixels;  /* 1: they are pixels, after bitloom_program_transform */
    size_t classes;    /* names of classes; 0 or output_channels */
    uint32_t programs; /* that run for a frame, one after another: of a network in partitions several */
    size_t map_bytes;  /* memory for a frame's maps between them, of the platform's heap, while frames are computed */
} bitloom_program_facts;

/* Read a program. `bytes` must stay as they are until bitloom_program_free: parameters are sent from there. Every size
   is checked before memory is taken, checksums and digest before anything is believed. `name` begins messages. What
   Python's driver computes on the host and this one doesn't (`tail`) is refused. */
bitloom_status bitloom_program_read(const bitloom_heap *heap, const void *bytes, size_t size, const char *name,
                                    bitloom_program **program, bitloom_error *error);
void bitloom_program_free(bitloom_program *program); /* NULL: nothing happens */
/* Say what images of bitloom_classify and bitloom_scores are from now on: pixels (row, column, channel) that `text`
   makes the network's input, as --transform of `bitloom evaluate` and `bitloom deploy` does: "minus:128", "host:1/255".
   "none": as without it. No call may be under way. */
bitloom_status bitloom_program_transform(bitloom_program *program, const char *text, bitloom_error *error);
const bitloom_program_facts *bitloom_program_about(const bitloom_program *program);
const char *bitloom_class_name(const bitloom_program *program, size_t number); /* UTF-8; NULL where there is none */

/* Platforms */

/* Which registers are meant: the core's, or the AXI DMA's (both channels). */
typedef enum bitloom_unit { BITLOOM_CORE = 0, BITLOOM_DMA = 1 } bitloom_unit;

/* Bits of c_sg_length_width in the block designs that bitloom makes. */
#define BITLOOM_DMA_LENGTH_BITS 26

/* What a board offers. Functions return 0, or below 0 where they fail: then the call ends with BITLOOM_BUS. The order
   of accesses must be that of the calls for the DMA, too: where the processor may change it, `write` begins and `read`
   ends with a barrier, such as dsb. */
typedef struct bitloom_platform {
    void *context;    /* what the functions get */
    const char *name; /* what messages begin with; it must stay */
    bitloom_heap heap;
    volatile uint32_t *memory; /* memory that the DMA reads and writes, physically in one piece; used word by word */
    uint64_t address;          /* the same for the DMA, a multiple of 8 */
    size_t memory_bytes;       /* a MiB or more, so that frames are packed while others are computed */
    unsigned dma_length_bits;  /* c_sg_length_width of the AXI DMA, 8..26 */
    uint32_t timeout_ms;       /* without any progress (words, frames, beats) after which a wait is given up */
    int (*read)(void *context, bitloom_unit unit, uint32_t offset, uint32_t *value);
    int (*write)(void *context, bitloom_unit unit, uint32_t offset, uint32_t value);
    uint64_t (*now_us)(void *context); /* microseconds since whenever; never backwards */
    /* The rest may be NULL. flush, invalidate: bytes of `memory` that the processor has written, or is about to read;
       NULL where it has no cache or the memory isn't cached. wait: until an interrupt of core or DMA (s2mm_introut) has
       come, then it returns 1, or the time is over, then 0; NULL: the device is looked at again and again. An interrupt
       that gets lost, or comes too often, costs time at most. random: 32 bits; NULL: of the time. */
    int (*flush)(void *context, size_t offset, size_t bytes);
    int (*invalidate)(void *context, size_t offset, size_t bytes);
    int (*wait)(void *context, uint32_t microseconds);
    uint32_t (*random)(void *context);
} bitloom_platform;

/* Devices */

/* A core, its DMA, and what is loaded: opaque. */
typedef struct bitloom_device bitloom_device;

/* Types of an image's numbers. */
typedef enum bitloom_type {
    BITLOOM_UINT8,
    BITLOOM_INT8,
    BITLOOM_INT16,
    BITLOOM_INT32,
    BITLOOM_INT64,
    BITLOOM_FLOAT,
    BITLOOM_DOUBLE
} bitloom_type;

/* Totals since bitloom_clear_counters, of transfers of frames. */
typedef struct bitloom_counters {
    uint64_t cycles, frames, words_in, words_out;
    unsigned npus;
    uint64_t beats[BITLOOM_MOST_NPUS]; /* cycles in which the array of each NPU was fed */
} bitloom_counters;

/* Hold the hardware to its manifest (NAME.manifest.json of the build), and reset it. The manifest may go afterwards. */
bitloom_status bitloom_open(const bitloom_platform *platform, const void *manifest, size_t size,
                            bitloom_device **device, bitloom_error *error);
void bitloom_close(bitloom_device *device); /* NULL: nothing happens */

/* Send a program's parameters; of a network in partitions the first one's, each other's when its turn comes. The program must stay until another one is loaded or the device is closed. */
bitloom_status bitloom_load(bitloom_device *device, const bitloom_program *program, bitloom_error *error);

/* Compute frames. Those of a network in partitions go through in rounds: all of a round through a program, before the
   next one is loaded; a round has as many as the heap has memory for their maps, at most 64 MB. After an error the device is as it was left, to be looked at; the next call resets it and loads the
   program again. `images`: count images, each of image_values numbers (row, column, channel).

   predict   images are integers of the network's input; outputs: count * facts.outputs, golden's
   classify  of networks with one output: the number of the largest value, of equal ones the first; of single bits the
             last one that is set. Images of an imported network are as its file takes them, and the largest score counts
   scores    of imported networks: count * facts.scores, as the network's file computes them, behind its softmax if it
             has one */
bitloom_status bitloom_predict(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                               int64_t *outputs, bitloom_error *error);
bitloom_status bitloom_classify(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                                int32_t *classes, bitloom_error *error);
bitloom_status bitloom_scores(bitloom_device *device, const void *images, bitloom_type type, size_t count,
                              double *scores, bitloom_error *error);

/* Abort everything in device and DMA, and load the program again: the next frame is right. */
bitloom_status bitloom_reset(bitloom_device *device, bitloom_error *error);

void bitloom_count(const bitloom_device *device, bitloom_counters *counters);
bitloom_status bitloom_clear_counters(bitloom_device *device, bitloom_error *error);

/* A register of the core by its offset, BITLOOM_REG_.... */
bitloom_status bitloom_register(bitloom_device *device, uint32_t offset, uint32_t *value, bitloom_error *error);

#ifdef __cplusplus
}
#endif

#endif
