# boards/<board>/<network>: make writes the sources for that network's bitstream on that board, runs Vivado, and keeps
# what pynq needs in the folder, under the network's name.

NETWORK := $(notdir $(CURDIR))
override BOARD := $(notdir $(patsubst %/,%,$(dir $(CURDIR))))
BITLOOM ?= bitloom
BUILD := build
KEPT := bit hwh manifest.json

.PHONY: all sources clean
.DEFAULT_GOAL := all

all: sources
	$(MAKE) -C $(BUILD)/vivado BOARD=$(BOARD)
	@newest=$$(ls -t $(BUILD)/vivado/output/*.bit | head -n 1) && \
	for suffix in $(KEPT); do cp "$${newest%.bit}.$$suffix" $(NETWORK).$$suffix || exit 1; done
	@cp $(BUILD)/vivado/output/*.program.npz .

sources: $(BUILD)/build.json

$(BUILD)/build.json:
	$(BITLOOM) build $(NETWORK) --board $(BOARD) --out $(BUILD)

clean:
	rm -rf $(BUILD)
