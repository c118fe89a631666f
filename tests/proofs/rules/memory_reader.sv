// Reader of memory: hls_gen/rtl/dma/memory_reader.py
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  localparam PLACE = 32 - `UNIT;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  keeps_word #(.WIDTH(52)) ar (.valid(m_axi_arvalid), .ready(m_axi_arready),
      .word({m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst, m_axi_arcache, m_axi_arprot}), .*);
  given_source #(.WIDTH(`WIDTH + 3)) r (.valid(m_axi_rvalid), .ready(m_axi_rready),
      .word({m_axi_rresp, m_axi_rlast, m_axi_rdata}), .*);
  keeps_word #(.WIDTH(`WIDTH + 1)) sink (.valid(m_axis_tvalid), .ready(m_axis_tready),
      .word({m_axis_tlast, m_axis_tdata}), .*);

  wire [4:0] beats = m_axi_arlen[3:0] + 1;

  // Memory: words of the bursts that it has taken, in their order, the last one of each marked.
  wire failed = slave_error | decode_error;
  wire asked = m_axi_arvalid & m_axi_arready, came = m_axi_rvalid & m_axi_rready;
  wire left_m = m_axis_tvalid & m_axis_tready;
  reg [6:0] coming = 0;  // words that were asked for and have not come
  reg [3:0] index = 0;   // of the next one in its block of 16
  wire [7:0] block_words = index + coming + 15;
  // All bursts but a transfer's last one end with their block: blocks_of_bursts.
  wire [2:0] bursts = coming == 0 ? 0 : block_words[7:4];
  always @(posedge clk) begin
    coming <= rst ? 0 : coming - came + (asked ? beats : 0);
    index <= rst ? 0 : start ? place : index + came;
  end
  always @* begin
    assume (~m_axi_rvalid | coming != 0);
    assume (m_axi_rlast == (index == 15 | coming == 1));
  end

  // The channel: one transfer at a time, of a word at least, and none behind an error.
  reg transfer = 0;
  always @* assume (~start | ~transfer & ~failed & words != 0);
  reg [PLACE-1:0] next = 0;     // place of the next word that is asked for
  reg [`COUNT-1:0] rest = 0;    // words that have not been asked for
  always @(posedge clk) begin
    transfer <= ~rst & (start | transfer & ~ended);
    next <= rst ? 0 : start ? place : next + (asked ? beats : 0);
    rest <= rst ? 0 : start ? words : rest - (asked ? beats : 0);
  end

  reg [6:0] inside = 0;  // words that came before an error and have not left
  always @(posedge clk) inside <= rst ? 0 : inside + (came & ~m_axi_rresp[1] & ~failed) - left_m;
  wire [`COUNT+1:0] to_leave = rest + coming + inside;
  reg may_wait = 0;  // an address that waits to be taken
  reg stopped = 0;
  always @(posedge clk) begin
    may_wait <= ~rst & m_axi_arvalid & ~m_axi_arready;
    stopped <= ~rst & (stop | failed);
  end
  wire room = coming + inside <= 48 & bursts != 4;
  soon #(.WITHIN(1)) asks (.waits(transfer & rest != 0 & room & ~m_axi_arvalid & ~stop & ~failed), .*);
  always @* if (running) begin
    if (m_axi_arvalid) begin
      at_most_16_beats: assert (m_axi_arlen < 16);
      whole_words: assert (m_axi_arsize == `UNIT & m_axi_araddr % `BYTES == 0 & m_axi_arburst == 1);
      inside_4_kb: assert (m_axi_araddr[11:0] + beats * `BYTES <= 4096);
      blocks_of_bursts: assert (next[3:0] + beats == 16 | beats == rest & next[3:0] + beats < 16);
      in_the_buffer: assert (m_axi_araddr == next * `BYTES & beats <= rest);
    end
    never_stops_the_bus: assert (coming == 0 | m_axi_rready);
    four_bursts_at_most: assert (bursts + m_axi_arvalid <= 4);
    none_begins_when_stopped: assert (~stopped | ~m_axi_arvalid | may_wait);
    nothing_behind_an_error: assert (inside != 0 | ~m_axis_tvalid);
    quiet_is_true: assert (quiet == (coming == 0 & ~m_axi_arvalid));
    if (m_axis_tvalid & ~failed) last_of_all: assert (m_axis_tlast == (to_leave == 1));
    ends_with_the_last: assert (ended == (transfer & (left_m & m_axis_tlast | failed & quiet)));
    whole_transfer: cover (ended & ~failed);
    two_bursts: cover (bursts == 2);
    error: cover (ended & slave_error);
    error_behind_words: cover (failed & inside == 1);
    stop_with_a_burst: cover (stop & quiet & transfer & inside == 1);
  end

`ifdef INVARIANTS
  (* hierconn *) wire [6:0] \dut.words_store.level , \dut.reserved ;
  (* hierconn *) wire [5:0] \dut.words_store.write_row , \dut.words_store.read_row ;
  (* hierconn *) wire [2:0] \dut.bursts ;
  (* hierconn *) wire [`COUNT-1:0] \dut.left , \dut.to_leave ;
  (* hierconn *) wire [PLACE-1:0] \dut.ask_place , \dut.burst_place ;
  (* hierconn *) wire \dut.busy , \dut.failed , \dut.words_store.in_ready ;
  wire [6:0] level = \dut.words_store.level ;
  wire [5:0] write_row = \dut.words_store.write_row , read_row = \dut.words_store.read_row ;
  wire [8:0] total = coming + waiting + inside;
  wire [3:0] after = index + coming;
  wire [5:0] newest = read_row + level;
  wire [4:0] waiting = m_axi_arvalid ? beats : 0;
  always @* if (running) begin
    assert (level <= 64 & inside == level + m_axis_tvalid & write_row == newest);
    assert (\dut.words_store.in_ready == (level != 64));
    assert (\dut.busy == transfer & \dut.failed == failed & ~(slave_error & decode_error));
    assert (\dut.bursts == bursts + m_axi_arvalid);
    assert (next[3:0] == after & (rest == 0 | coming == 0 | after == 0));
    assert (\dut.left + waiting == rest);
    assert (\dut.reserved <= 64 & \dut.reserved >= total);
    if (~failed) assert (\dut.reserved == total);
    if (m_axi_arvalid) assert (\dut.burst_place == next);
    if (\dut.left != 0) assert (\dut.ask_place == next + waiting);
    if (~failed) assert (transfer ? \dut.to_leave == to_leave & to_leave != 0 : to_leave == 0);
    if (failed) assert (\dut.to_leave > inside);
    if (m_axi_arvalid & \dut.left != 0) assert (\dut.ask_place [3:0] == 0);
  end
`endif
endmodule
