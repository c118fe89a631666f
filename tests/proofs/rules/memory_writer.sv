// Writer of memory: hls_gen/rtl/dma/memory_writer.py
module proof (
`include "inputs.svh"
    input clk, input rst, input watch
);
`include "outputs.svh"
  localparam PLACE = 32 - `UNIT;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH + 1)) source (.valid(s_axis_tvalid), .ready(s_axis_tready),
      .word({s_axis_tlast, s_axis_tdata}), .*);
  given_source #(.WIDTH(2)) b (.valid(m_axi_bvalid), .ready(m_axi_bready), .word(m_axi_bresp), .*);
  keeps_word #(.WIDTH(52)) aw (.valid(m_axi_awvalid), .ready(m_axi_awready),
      .word({m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst, m_axi_awcache, m_axi_awprot}), .*);
  keeps_word #(.WIDTH(`WIDTH + 5)) w (.valid(m_axi_wvalid), .ready(m_axi_wready),
      .word({m_axi_wlast, m_axi_wstrb, m_axi_wdata}), .*);

  // The channel: one transfer at a time, of a word at least, and none behind an error.
  wire refused = slave_error | decode_error, spoilt = refused | internal_error;
  wire taken = s_axis_tvalid & s_axis_tready, sent = m_axi_wvalid & m_axi_wready;
  wire begun = m_axi_awvalid & m_axi_awready, answered = m_axi_bvalid & m_axi_bready;
  wire [4:0] beats = m_axi_awlen[3:0] + 1;
  reg transfer = 0, open = 0;  // open: words are taken
  reg [`COUNT-1:0] room = 0, rest = 0;  // words that the buffer has room for; that have come and have no address yet
  reg [PLACE-1:0] next = 0;             // place of the first of the latter
  wire last = s_axis_tlast | room == 1;
  always @* assume (~start | ~transfer & ~spoilt & words != 0);
  always @(posedge clk) begin
    transfer <= ~rst & (start | transfer & ~ended);
    open <= ~rst & (start | open & ~(taken & last) & ~(answered & m_axi_bresp[1]));
    room <= rst ? 0 : start ? words : room - taken;
    rest <= rst ? 0 : rest + taken - (begun ? beats : 0);
    next <= rst ? 0 : start ? place : next + (begun ? beats : 0);
  end

  wire [5:0] inside, ahead;
  wire watching;
  wire [`WIDTH-1:0] word;
  in_order #(.WIDTH(`WIDTH), .MOST(33)) order (.in_taken(taken), .in_word(s_axis_tdata),
      .out_valid(m_axi_wvalid), .out_taken(sent), .out_word(m_axi_wdata), .*);

  // Memory: words of bursts whose address is offered at least; a burst is answered when all of it has come.
  reg may_wait = 0, stopped = 0;  // may_wait: an address that waits to be taken
  reg [6:0] unsent = 0;
  reg [3:0] index = 0;  // of the next word in its block of 16
  reg [2:0] addresses = 0, lasts = 0;  // that were taken, last words that were, of bursts that are not answered
  wire [6:0] owed = unsent + (m_axi_awvalid & ~may_wait ? beats : 0);
  always @(posedge clk) begin
    may_wait <= ~rst & m_axi_awvalid & ~m_axi_awready;
    stopped <= ~rst & (stop | refused);
    unsent <= rst ? 0 : owed - sent;
    index <= rst ? 0 : start ? place : index + sent;
    addresses <= rst ? 0 : addresses + begun - answered;
    lasts <= rst ? 0 : lasts + (sent & m_axi_wlast) - answered;
  end
  always @* assume (~m_axi_bvalid | addresses != 0 & lasts != 0);

  wire [7:0] block_words = index + owed + 15;
  wire [2:0] bursts = lasts + (owed == 0 ? 0 : block_words[7:4]);  // that have begun and are not answered
  soon #(.WITHIN(1)) words_of_bursts (.waits(owed != 0 & ~m_axi_wvalid), .*);
  soon #(.WITHIN(1)) takes (.waits(open & inside < 16 & bursts != 4 & ~m_axi_awvalid & ~s_axis_tready & ~stop), .*);
  always @* if (running) begin
    if (m_axi_awvalid) begin
      at_most_16_beats: assert (m_axi_awlen < 16);
      whole_words: assert (m_axi_awsize == `UNIT & m_axi_awaddr % `BYTES == 0 & m_axi_awburst == 1);
      inside_4_kb: assert (m_axi_awaddr[11:0] + beats * `BYTES <= 4096);
      in_the_buffer: assert (m_axi_awaddr == next * `BYTES & beats <= rest);
      blocks_of_bursts: assert (
          next[3:0] + beats == 16 | beats == rest & next[3:0] + beats < 16 & (~open | refused));
    end
    if (m_axi_wvalid) begin
      words_of_begun_bursts: assert (owed != 0);
      last_of_a_burst: assert (m_axi_wlast == (index == 15 | owed == 1));
      all_bytes: assert (&m_axi_wstrb);
    end
    answers_are_taken: assert (bursts == 0 | m_axi_bready);
    four_bursts_at_most: assert (bursts <= 4);
    none_begins_when_stopped: assert (~stopped | ~m_axi_awvalid | may_wait);
    quiet_is_true: assert (quiet == (bursts == 0));
    words_of_a_transfer: assert (~s_axis_tready | open & ~stop);
    ends_with_the_last: assert (ended == (transfer & quiet & (refused | ~open & rest == 0)));
    if (ended & ~refused) all_is_written: assert (inside == 0 & unsent == 0);
    if (ended) longer_packet: assert (~internal_error | room == 0);
    whole_transfer: cover (ended & ~spoilt & moved == 3);
    too_long: cover (ended & internal_error & ~refused);
    error: cover (ended & slave_error);
    two_bursts: cover (bursts == 2 & ~m_axi_awvalid);
    stop_with_words: cover (stop & quiet & transfer & inside == 2);
  end
endmodule
