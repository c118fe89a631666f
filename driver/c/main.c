/* Classifies images on Linux without Python:

       ./classify NAME.manifest.json NETWORK.program.npz IMAGES [CORE [DMA [MEMORY [TRANSFORM]]]]

   IMAGES holds bytes, image after image, each value by value (row, column, channel; of an imported network as its file
   has them; with a TRANSFORM, pixels). The others are of bitloom_linux.h: /dev/uio0, /dev/uio1 and udmabuf0. */
#include <stdio.h>
#include <stdlib.h>

#include "bitloom_linux.h"

static bitloom_error error;

static bitloom_status classify(bitloom_device *device, const bitloom_program *program, const void *images,
                               size_t bytes) {
    const bitloom_program_facts *facts = bitloom_program_about(program);
    const bitloom_type type = facts->takes_pixels || facts->low >= 0 ? BITLOOM_UINT8 : BITLOOM_INT8; /* -1: byte 255 */
    const size_t count = bytes / facts->image_values;
    int32_t *classes = calloc(count + 1, sizeof *classes);
    bitloom_status status = classes && count && count * facts->image_values == bytes ? BITLOOM_OK : BITLOOM_INVALID;
    size_t i;
    if (status) {
        error.status = status;
        snprintf(error.text, sizeof error.text, "images: must be whole images of %lu bytes, got %lu bytes",
                 (unsigned long)facts->image_values, (unsigned long)bytes);
    }
    if (!status) status = bitloom_load(device, program, &error);
    if (!status) status = bitloom_classify(device, images, type, count, classes, &error);
    for (i = 0; !status && i < count; i++) {
        const char *name = bitloom_class_name(program, (size_t)classes[i]);
        printf("%lu: %ld %s\n", (unsigned long)i, (long)classes[i], name ? name : "");
    }
    free(classes);
    return status;
}

int main(int count, char **words) {
    const bitloom_heap heap = bitloom_linux_heap();
    bitloom_linux_options options = {0};
    bitloom_linux *board = NULL;
    bitloom_device *device = NULL;
    bitloom_program *program = NULL;
    void *manifest = NULL, *file = NULL, *images = NULL;
    size_t manifest_size, size, bytes;
    if (count < 4 || count > 8) {
        fprintf(stderr, "usage: %s MANIFEST PROGRAM IMAGES [CORE [DMA [MEMORY [TRANSFORM]]]]\n", words[0]);
        return 2;
    }
    options.core = count > 4 ? words[4] : "/dev/uio0";
    options.dma = count > 5 ? words[5] : "/dev/uio1";
    options.memory = count > 6 ? words[6] : "udmabuf0";
    if (bitloom_linux_file(words[1], &manifest, &manifest_size, &error) ||
        bitloom_linux_file(words[2], &file, &size, &error) || bitloom_linux_file(words[3], &images, &bytes, &error) ||
        bitloom_program_read(&heap, file, size, words[2], &program, &error) ||
        (count > 7 && bitloom_program_transform(program, words[7], &error)) ||
        bitloom_linux_open(&options, &board, &error) ||
        bitloom_open(bitloom_linux_platform(board), manifest, manifest_size, &device, &error) ||
        classify(device, program, images, bytes))
        fprintf(stderr, "%s\n", error.text);
    bitloom_close(device);
    bitloom_linux_close(board);
    bitloom_program_free(program);
    free(manifest);
    free(file);
    free(images);
    return error.status != BITLOOM_OK;
}
