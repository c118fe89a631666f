/* Written by bitloom.driver.c.hardware_header: don't edit. */
#ifndef BITLOOM_HARDWARE_H
#define BITLOOM_HARDWARE_H

/* The interface between driver and hardware, and register IDENT. */
#define BITLOOM_VLNV "bitloom:bitloom:npu:0.2"
#define BITLOOM_INTERFACE_MAJOR 0u
#define BITLOOM_INTERFACE_MINOR 2u
#define BITLOOM_IDENT 0x424C4D31u

/* Registers of the core: byte offsets, and fields as masks. */
#define BITLOOM_REG_IDENT 0x000u /* RO: 0x424C4D31, "BLM1" */
#define BITLOOM_REG_VERSION 0x004u /* RO: of the interface between driver and hardware */
#define BITLOOM_VERSION_PATCH 0x000000FFu
#define BITLOOM_VERSION_MINOR 0x0000FF00u
#define BITLOOM_VERSION_MAJOR 0xFFFF0000u
#define BITLOOM_REG_DIGEST_0 0x008u /* RO: bytes 0..3 of the design's digest */
#define BITLOOM_REG_DIGEST_1 0x00Cu /* RO: bytes 4..7 of the design's digest */
#define BITLOOM_REG_DIGEST_2 0x010u /* RO: bytes 8..11 of the design's digest */
#define BITLOOM_REG_DIGEST_3 0x014u /* RO: bytes 12..15 of the design's digest */
#define BITLOOM_REG_GEOMETRY 0x018u /* RO: shape of the design */
#define BITLOOM_GEOMETRY_NPUS 0x000000FFu /* NPUs */
#define BITLOOM_GEOMETRY_STREAM_BITS 0x0000FF00u /* stream width */
#define BITLOOM_REG_SCRATCH 0x01Cu /* RW: gives back what was written: to try the bus */
#define BITLOOM_REG_CONTROL 0x020u /* RW: control */
#define BITLOOM_CONTROL_START 0x00000001u /* frames may enter */
#define BITLOOM_CONTROL_SOFT_RESET 0x00000002u /* write 1: reset, clears itself */
#define BITLOOM_CONTROL_CLEAR_COUNTERS 0x00000004u /* write 1: counters to 0, clears itself */
#define BITLOOM_REG_STATUS 0x024u /* RO: status */
#define BITLOOM_STATUS_IDLE 0x00000001u /* no frame in flight */
#define BITLOOM_STATUS_ERROR 0x00000002u /* a packet was malformed */
#define BITLOOM_STATUS_LOADED 0x00000004u /* a network is loaded */
#define BITLOOM_STATUS_LOADER_STATE 0x00000070u /* state of the loader */
#define BITLOOM_REG_ERROR_CODE 0x028u /* RO: which rule a packet broke; 0 = none */
#define BITLOOM_REG_ERROR_HEADER 0x02Cu /* RO: word 0 of that packet */
#define BITLOOM_REG_ERROR_ADDRESS 0x030u /* RO: its word 1 */
#define BITLOOM_REG_ERROR_LENGTH 0x034u /* RO: its word 2 */
#define BITLOOM_REG_SIGNATURE 0x038u /* RO: signature of the parameters that were loaded since the last reset */
#define BITLOOM_REG_OWNER 0x03Cu /* RW: who has loaded them: a number that the driver writes, 0 from a reset or a LOAD on */
#define BITLOOM_OWNER_OWNER 0x0000FFFFu
#define BITLOOM_REG_IRQ_ENABLE 0x040u /* RW: enabled interrupts */
#define BITLOOM_IRQ_ENABLE_RESULT 0x00000001u
#define BITLOOM_IRQ_ENABLE_ERROR 0x00000002u
#define BITLOOM_REG_IRQ_STATUS 0x044u /* RW1C: pending interrupts */
#define BITLOOM_IRQ_STATUS_RESULT 0x00000001u /* a word with tlast has left */
#define BITLOOM_IRQ_STATUS_ERROR 0x00000002u /* an error was found */
#define BITLOOM_REG_CYCLES 0x050u /* RO: cycles with a frame in flight, since CLEAR_COUNTERS */
#define BITLOOM_REG_FRAMES 0x054u /* RO: frames whose results have left */
#define BITLOOM_REG_WORDS_IN 0x058u /* RO: stream words taken */
#define BITLOOM_REG_WORDS_OUT 0x05Cu /* RO: stream words given */
#define BITLOOM_OWNER_BITS 16

/* Registers of NPU n. */
#define BITLOOM_REG_NPU_LANES(n) (0x100u + 0x40u * (n))
#define BITLOOM_REG_NPU_WIDTHS(n) (0x104u + 0x40u * (n))
#define BITLOOM_REG_NPU_BEATS(n) (0x110u + 0x40u * (n))
#define BITLOOM_REG_NPU_WAIT_INPUT(n) (0x114u + 0x40u * (n))
#define BITLOOM_REG_NPU_WAIT_ROOM(n) (0x118u + 0x40u * (n))
#define BITLOOM_REG_NPU_WAIT_TABLE(n) (0x11Cu + 0x40u * (n))
#define BITLOOM_REG_NPU_STATE(n) (0x120u + 0x40u * (n))
#define BITLOOM_MOST_NPUS 60

/* The DMA's registers: offsets of both channels, offsets in a channel, and fields as masks. */
#define BITLOOM_DMA_MM2S 0x00u
#define BITLOOM_DMA_S2MM 0x30u
#define BITLOOM_DMA_REG_CONTROL 0x00u /* DMACR: control */
#define BITLOOM_DMA_CONTROL_RUN 0x00000001u /* transfers may begin; 0: the channel halts at the end of the one under way */
#define BITLOOM_DMA_CONTROL_ONE 0x00000002u /* always 1 */
#define BITLOOM_DMA_CONTROL_RESET 0x00000004u /* write 1: reset of both channels; reads 1 until it has ended */
#define BITLOOM_DMA_CONTROL_DONE_IRQ 0x00001000u /* interrupt at the end of a transfer */
#define BITLOOM_DMA_CONTROL_ERROR_IRQ 0x00004000u /* interrupt at an error */
#define BITLOOM_DMA_CONTROL_THRESHOLD 0x00FF0000u /* always 1: an interrupt each transfer */
#define BITLOOM_DMA_REG_STATUS 0x04u /* DMASR: status; of a write, the interrupts alone count */
#define BITLOOM_DMA_STATUS_HALTED 0x00000001u /* the channel does not run */
#define BITLOOM_DMA_STATUS_IDLE 0x00000002u /* the transfer has ended */
#define BITLOOM_DMA_STATUS_INTERNAL 0x00000010u /* length 0, an unaligned address or length, or a packet longer than its buffer */
#define BITLOOM_DMA_STATUS_SLAVE 0x00000020u /* memory refused an access (SLVERR) */
#define BITLOOM_DMA_STATUS_DECODE 0x00000040u /* there is no memory at an address (DECERR) */
#define BITLOOM_DMA_STATUS_DONE_IRQ 0x00001000u /* a transfer has ended */
#define BITLOOM_DMA_STATUS_ERROR_IRQ 0x00004000u /* a transfer has ended with an error; only a reset helps */
#define BITLOOM_DMA_REG_ADDRESS 0x18u /* SA, DA: low 32 bits of the buffer's address */
#define BITLOOM_DMA_REG_ADDRESS_MSB 0x1Cu /* SA_MSB, DA_MSB: high bits of the buffer's address */
#define BITLOOM_DMA_REG_LENGTH 0x28u /* bytes; a write begins a transfer. Of S2MM at its end: bytes that came */

/* Registers of the packetizer, which makes frames of a raw stream. */
#define BITLOOM_PACKETIZER_REG_CONTROL 0x00u /* what the packetizer does */
#define BITLOOM_PACKETIZER_CONTROL_RUN 0x00000001u /* frames are made; an error clears it; 0: ends with the frame under way */
#define BITLOOM_PACKETIZER_CONTROL_RESET 0x00000002u /* write 1: a frame under way is dropped, and errors are cleared; reads 0 */
#define BITLOOM_PACKETIZER_CONTROL_ERROR_IRQ 0x00000004u /* interrupt while there is an error */
#define BITLOOM_PACKETIZER_REG_STATUS 0x04u /* how the packetizer stands; of a write, the errors alone count */
#define BITLOOM_PACKETIZER_STATUS_BUSY 0x00000001u /* a frame is under way */
#define BITLOOM_PACKETIZER_STATUS_SHORT 0x00000002u /* a frame had too few beats; what was missing is 0 */
#define BITLOOM_PACKETIZER_STATUS_LONG 0x00000004u /* a frame had too many beats; those in excess are dropped when frames are made again */
#define BITLOOM_PACKETIZER_REG_SIGNATURE 0x08u /* signature of the parameters that frames are for: the device's SIGNATURE */
#define BITLOOM_PACKETIZER_REG_NUMBER 0x0Cu /* number of the next frame, counted up with each; its low 8 bits go into the header */
#define BITLOOM_PACKETIZER_REG_TRANSFER_FRAMES 0x10u /* frames of a result transfer: the last one's results end with tlast; 0: none do */
#define BITLOOM_PACKETIZER_TRANSFER_FRAMES_FRAMES 0x0000FFFFu /* frames */
#define BITLOOM_PACKETIZER_REG_BEATS 0x14u /* beats of a frame, always the same */

/* Headers of packets: fields of words 0 to 2. Word 3 is NOT (word 0 XOR word 1 XOR word 2). */
#define BITLOOM_HEADER_WORDS 4u
#define BITLOOM_HEADER_KIND_LSB 0 /* word 0: LOAD, FRAME or WEIGHTS */
#define BITLOOM_HEADER_KIND_BITS 4
#define BITLOOM_HEADER_LAST_LSB 4 /* word 0: FRAME: its results end the transfer; WEIGHTS: the layer's weights are whole */
#define BITLOOM_HEADER_LAST_BITS 1
#define BITLOOM_HEADER_MEMORY_LSB 8 /* word 0: LOAD: id of the memory; WEIGHTS: streamed layers that may be unfinished */
#define BITLOOM_HEADER_MEMORY_BITS 8
#define BITLOOM_HEADER_NPU_LSB 16 /* word 0: number of the NPU */
#define BITLOOM_HEADER_NPU_BITS 8
#define BITLOOM_HEADER_MAGIC_LSB 24 /* word 0: what every header begins with */
#define BITLOOM_HEADER_MAGIC_BITS 8
#define BITLOOM_HEADER_ADDRESS_LSB 0 /* word 1: first row */
#define BITLOOM_HEADER_ADDRESS_BITS 24
#define BITLOOM_HEADER_LAYER_LSB 24 /* word 1: WEIGHTS: number of the layer among the streamed ones */
#define BITLOOM_HEADER_LAYER_BITS 8
#define BITLOOM_HEADER_LENGTH_LSB 0 /* word 2: rows, or input words of a frame */
#define BITLOOM_HEADER_LENGTH_BITS 24
#define BITLOOM_HEADER_NUMBER_LSB 24 /* word 2: FRAME, WEIGHTS: how many of them came since the last LOAD */
#define BITLOOM_HEADER_NUMBER_BITS 8
#define BITLOOM_MAGIC 0xB1u
#define BITLOOM_LOAD 1u
#define BITLOOM_FRAME 2u
#define BITLOOM_WEIGHTS 3u

/* Signature of parameters: x * signature + word, over the polynomial x^32 + these powers of x. */
#define BITLOOM_SIGNATURE_START 0xFFFFFFFFu
#define BITLOOM_SIGNATURE_POLYNOMIAL 0x00400007u

/* Register ERROR_CODE: the rule that a packet broke. */
typedef enum bitloom_error_code {
    BITLOOM_BAD_HEADER = 1, /* word 0 begins with 0xB1 and word 3 is the check */
    BITLOOM_BAD_KIND = 2, /* kind is 1 or 2 */
    BITLOOM_BAD_NPU = 3, /* the NPU exists */
    BITLOOM_BAD_MEMORY = 4, /* the memory exists */
    BITLOOM_BAD_RANGE = 5, /* rows >= 1 and first row + rows <= depth of the memory */
    BITLOOM_BAD_FRAME = 6, /* the frame has as many input words as the loaded network says */
    BITLOOM_TRUNCATED = 7, /* tlast does not come before the end of a packet */
    BITLOOM_NOT_LOADED = 8, /* a network row was loaded since the last reset */
    BITLOOM_BAD_ORDER = 9, /* frames come in the order of their numbers */
    BITLOOM_BAD_PROGRAM = 10 /* the frame is for the parameters that were loaded, none of which was lost */
} bitloom_error_code;

/* Words of a program's file: encodings of the input, and kinds of the maps that leave. */
typedef enum bitloom_encoding { BITLOOM_BIPOLAR, BITLOOM_TERNARY, BITLOOM_SIGNED, BITLOOM_UNSIGNED } bitloom_encoding;
#define BITLOOM_ENCODINGS {"bipolar", "ternary", "signed", "unsigned"}
#define BITLOOM_ENCODINGS_TEXT "bipolar, ternary, signed, unsigned"
typedef enum bitloom_result_kind { BITLOOM_RESULT_RAW, BITLOOM_RESULT_BITS, BITLOOM_RESULT_SIGNED } bitloom_result_kind;
#define BITLOOM_RESULT_KINDS {"raw", "bits", "signed"}
#define BITLOOM_RESULT_KINDS_TEXT "raw, bits, signed"
#define BITLOOM_RESULT_KIND_LANE_BITS {32, 1, 0} /* of each of these, bits of a lane; 0: those of a feature */
#define BITLOOM_RESULT_KIND_PLACES {1, 62, 1} /* lanes of a value at most */

/* Files: the version that is read, and what there is at most. */
#define BITLOOM_PROGRAM_VERSION 3 /* of a program's file */
#define BITLOOM_PARTITIONS_VERSION 1 /* of the file of a network in partitions */
#define BITLOOM_HOST_VERSION 5 /* of a host file */
#define BITLOOM_MOST_IMAGE_BITS 16777216 /* bits of an image */
#define BITLOOM_MOST_WORDS 16777216 /* 32-bit words of a frame, or of its results */
#define BITLOOM_MOST_VALUES 67108864 /* values of a frame's results */
#define BITLOOM_MOST_PROGRAMS 1024 /* programs of a network */
#define BITLOOM_MOST_BITS 62 /* bits of a value */
#define BITLOOM_MOST_LANES 65536 /* lanes of a word */
#define BITLOOM_MOST_LANE_BITS 32 /* bits of a lane */

#endif
