/* The platform of libbitloom on Linux: registers by UIO or /dev/mem, memory of u-dma-buf or at a physical address.

       bitloom_linux_options options = {0};
       options.core = "/dev/uio0";
       options.dma = "/dev/uio1";
       options.memory = "udmabuf0";
       if (!bitloom_linux_open(&options, &board, &error))
           bitloom_open(bitloom_linux_platform(board), manifest, size, &device, &error);

   Not for two threads at once. Never run on a board from here: what is tested is said in docs/how-to/without-pynq.md.
 */
#ifndef BITLOOM_LINUX_H
#define BITLOOM_LINUX_H

#include "bitloom.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bitloom_linux_options {
    const char *core;   /* the core's registers: "/dev/uio0", or a physical address for /dev/mem, "0xA0000000" */
    const char *dma;    /* the AXI DMA's, likewise. An interrupt of a UIO device is waited for, if it has one */
    const char *memory; /* a device of u-dma-buf, "udmabuf0"; or reserved memory by address and bytes for /dev/mem,
                           "0x70000000+0x400000" */
    const char *name;   /* what messages begin with; NULL: "bitloom" */
    unsigned dma_length_bits; /* 0: as the block designs of bitloom have it */
    uint32_t timeout_ms;      /* 0: 10 seconds */
    const char *root;         /* folder in which /dev and /sys lie, for tests; NULL: "" */
} bitloom_linux_options;

typedef struct bitloom_linux bitloom_linux;

bitloom_status bitloom_linux_open(const bitloom_linux_options *options, bitloom_linux **board, bitloom_error *error);
const bitloom_platform *bitloom_linux_platform(const bitloom_linux *board);
void bitloom_linux_close(bitloom_linux *board); /* after bitloom_close; NULL: nothing happens */

/* malloc and free. */
bitloom_heap bitloom_linux_heap(void);
/* Content of a regular file, to be freed with free. */
bitloom_status bitloom_linux_file(const char *path, void **bytes, size_t *size, bitloom_error *error);

#ifdef __cplusplus
}
#endif

#endif
