// Loader: what it finds of a packet, and what follows: hls_gen/rtl/loader
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  wire in_header = loader_state == `HEADER, in_range = loader_state == `RANGE, in_judge = loader_state == `JUDGE;
  wire in_load = loader_state == `LOAD, in_frame = loader_state == `FRAME, in_drain = loader_state == `DRAIN;
  wire taken = s_axis_tvalid & s_axis_tready;
  wire [63:0] data = s_axis_tdata;
  wire [16*`NPUS-1:0] loads = {`LOADS};  // of each NPU, the memory with id 0 low

  // The header's words, as they come.
  reg [31:0] word_0, word_1, word_2, word_3;
  reg [1:0] place = 0;
  wire whole = taken & in_header & place == 128 / `WIDTH - 1;
  always @(posedge clk) begin
    if (taken & in_header) begin
      place <= whole ? 0 : place + 1;
      if (`WIDTH == 64)
        if (place == 0) {word_1, word_0} <= data; else {word_3, word_2} <= data;
      else case (place)
        0: word_0 <= data;
        1: word_1 <= data;
        2: word_2 <= data;
        3: word_3 <= data;
      endcase
    end
    if (rst) place <= 0;
  end
  wire [3:0] kind = word_0[3:0];
  wire [7:0] memory = word_0[15:8], npu = word_0[23:16];
  wire [23:0] address = word_1[23:0], length = word_2[23:0];
  wire is_load = kind == 1, is_frame = kind == 2;

  // What was loaded: rows and banks of each memory, and what the network row says of a frame.
  localparam [16 * 24 * `NPUS - 1:0] DEPTHS = `DEPTHS, LAST_BANKS = `LAST_BANKS;  // 16 memories an NPU, 24 bits each
  wire [9:0] at = 24 * {npu[0] & `NPUS > 1, memory[3:0]};
  wire known = memory < 16 & npu < `NPUS;
  wire [23:0] depth = known ? DEPTHS[at +: 24] : 0, last_bank = known ? LAST_BANKS[at +: 24] : 0;
  (* hierconn *) wire [23:0] \dut.npu0_network_frame_words , \dut.npu0_network_frame_beats ;
  wire [23:0] frame_words = \dut.npu0_network_frame_words , frame_beats = \dut.npu0_network_frame_beats ;

  // What the cycle before was like, where it was none of reset.
  reg after = 0, error_before, taken_before, start_before, full_before, computing_before, load_before;
  reg start_earlier, full_earlier, computing_earlier;  // two cycles before: what may begin is known a cycle ahead
  reg whole_before, final_before, cut = 0, cut_before = 0;
  reg [2:0] state_before;
  reg [3:0] code_before, verdict_before;

  // The packet's payload, and frames: `flags` of them wait for their results' last word, `leaving` has left the loader.
  reg [23:0] rows, banks, beats;
  reg [4:0] flags = 0;
  reg leaving = 0;
  wire final_word = in_load & rows + 24'd1 == length & banks == last_bank | in_frame & beats + 24'd1 == frame_beats;
  wire flag_taken = flag_valid & flag_ready_out, full = flags - flag_valid == 16;
  wire frame_begins = after & state_before == `JUDGE & in_frame;
  reg [7:0] counted = 0;
  wire [7:0] number = counted + frame_begins;
  function [31:0] times_x(input [31:0] value);
    times_x = {value[30:0], 1'b0} ^ (value[31] ? 32'h00400007 : 32'd0);
  endfunction
  reg [31:0] signed_words = 32'hffffffff;
  wire [31:0] signed_half = times_x(signed_words) ^ data[31:0];
  always @(posedge clk) begin
    if (in_judge) {rows, banks, beats} <= 0;
    if (in_load & taken) {rows, banks} <= banks == last_bank ? {rows + 24'd1, 24'd0} : {rows, banks + 24'd1};
    if (in_frame & taken) beats <= beats + 1;
    counted <= rst | load_begins ? 0 : number;
    leaving <= ~rst & (flag_taken | leaving & ~frame_left);
    if (load_begins) signed_words <= times_x(signed_words) ^ word_3;
    if (in_load & taken) signed_words <= `WIDTH == 64 ? times_x(signed_half) ^ data[63:32] : signed_half;
    if (rst) signed_words <= 32'hffffffff;
  end
  reg [4:0] flags_before = 0;
  always @* flags = flags_before + frame_begins;
  always @(posedge clk) flags_before <= rst ? 0 : flags - flag_taken;
  always @* begin
    if (running) assume (~frame_left | leaving);
    if (running) assume (~flag_taken | ~leaving | frame_left);
  end

  // The first rule that the header breaks.
  wire [31:0] end_row = address + length;
  wire [3:0] verdict =
      word_0[31:24] != `MAGIC | word_3 != ~(word_0 ^ word_1 ^ word_2) ? `BAD_HEADER :
      ~is_load & ~is_frame ? `BAD_KIND :
      npu >= `NPUS ? `BAD_NPU :
      is_load & depth == 0 ? `BAD_MEMORY :
      is_load & (length == 0 | end_row > depth | word_1[31:24] != 0 | word_2[31:24] != 0) ? `BAD_RANGE :
      is_frame & ~loaded ? `NOT_LOADED :
      is_frame & word_1 != signature ? `BAD_PROGRAM :
      is_frame & length != frame_words ? `BAD_FRAME :
      is_frame & word_2[31:24] != number ? `BAD_ORDER : 0;

  always @(posedge clk) begin
    after <= ~rst;
    {error_before, code_before, state_before, verdict_before} <= {error, error_code, loader_state, verdict};
    {taken_before, start_before, full_before, computing_before} <= {taken, start, full, computing};
    {start_earlier, full_earlier, computing_earlier} <= {start_before, full_before, computing_before};
    {load_before, whole_before, final_before} <= {is_load, whole, final_word};
    cut <= taken & s_axis_tlast & ~final_word & ~in_drain & ~rst;
    cut_before <= cut & ~rst;
  end
  wire was_judged = after & state_before == `JUDGE;
  wire [2:0] accepts = load_before ? (computing_earlier ? `JUDGE : `LOAD) : start_earlier & ~full_earlier ? `FRAME : `JUDGE;
  always @* if (running) begin
    if (after & whole_before) judged: assert (in_range);
    if (after & state_before == `RANGE & ~cut_before) judged_at_once: assert (in_judge);
    if (was_judged & verdict_before != 0) refused: assert (in_drain & error_code == verdict_before);
    if (was_judged & verdict_before == 0) never_refused: assert (loader_state == accepts & ~error);
    if (cut_before) truncated: assert (in_drain & error_code == `TRUNCATED);
    if (cut) nothing_after_the_cut: assert (~s_axis_tready);
    if (error & ~(after & error_before)) error_has_a_cause: assert (cut_before | was_judged & verdict_before != 0);
    if (after & error_before) only_reset_leaves: assert (in_drain & error_code == code_before);
    in_error: assert (error == in_drain & (error_code != 0) == error);
    if (error) nothing_written_in_error: assert (loads == 0 & ~load_begins & restart);
    if (error) error_takes_all: assert (s_axis_tready);
    if (in_header | in_load) words_are_taken: assert (s_axis_tready | cut);
    if (loads != 0) written_by_a_load: assert (after & state_before == `LOAD & taken_before & is_load);
    if (loads != 0) written_where_told: assert (
        loads == 1 << {npu, memory[3:0]} & load_row >= address & load_row < end_row & load_row < depth);
    if (after & state_before == `LOAD & taken_before & is_load & memory != 0) each_word_written: assert (loads != 0);
    if (after & taken_before & final_before) packet_ends: assert (in_header);
    if (after & (state_before == `LOAD | state_before == `FRAME) & ~(taken_before & final_before) & ~cut_before)
      packet_goes_on: assert (loader_state == state_before);
    signed: assert (signature == signed_words);
    frames_are_counted: assert (computing == (flags != 0 | leaving) & flags <= 17);

    bad_header: cover (error_code == `BAD_HEADER);
    bad_kind: cover (error_code == `BAD_KIND);
    bad_npu: cover (error_code == `BAD_NPU);
    bad_memory: cover (error_code == `BAD_MEMORY);
    bad_range: cover (error_code == `BAD_RANGE & end_row > depth & address < depth);
    not_loaded: cover (error_code == `NOT_LOADED);
    cut_header: cover (error_code == `TRUNCATED & state_before == `RANGE);
    cut_load: cover (error_code == `TRUNCATED & state_before == `LOAD);
    two_rows: cover (in_load & taken & final_word & rows == 1);
`ifndef TWO_NPUS  // the way to a frame, a row for each of them, is too long to be looked for
    bad_program: cover (error_code == `BAD_PROGRAM);
    bad_frame: cover (error_code == `BAD_FRAME);
    bad_order: cover (error_code == `BAD_ORDER);
    frame: cover (in_frame & taken & final_word);
`endif
  end

`ifdef INVARIANTS
  (* hierconn *) wire [64 / `WIDTH - 1:0] \dut.header_place ;
  (* hierconn *) wire [31:0] \dut.header_0 , \dut.header_1 , \dut.header_2 , \dut.header_3 ;
  (* hierconn *) wire \dut.early_last , \dut.is_load , \dut.is_frame ;
  (* hierconn *) wire [`ROW_BITS:0] \dut.memory_depth , \dut.row_place_next ;
  (* hierconn *) wire \dut.row_place_last , \dut.frame_place_last , \dut.passed ;
  (* hierconn *) wire [`ROW_BITS-1:0] \dut.row ;
  (* hierconn *) wire [`BANK_BITS-1:0] \dut.memory_before_last_bank , \dut.bank ;
  (* hierconn *) wire [3:0] \dut.verdict ;
  (* hierconn *) wire [7:0] \dut.next_number ;
  (* hierconn *) wire [4:0] \dut.in_flight , \dut.last_flags.level ;
  (* hierconn *) wire \dut.begun , \dut.memory_one_bank , \dut.is_network ;
  (* hierconn *) wire \dut.flag_ready , \dut.last_flags.some , \dut.may_load , \dut.may_frame ;
  (* hierconn *) wire [23:0] \dut.frame_place_next ;
  (* hierconn *) wire \dut.in_header , \dut.in_range , \dut.in_judge , \dut.in_load , \dut.in_frame , \dut.in_drain ;
  (* hierconn *) wire \dut.bank_last ;
  (* hierconn *) wire [`ROW_BITS+1:0] \dut.end_row ;
`ifdef TWO_NPUS
  (* hierconn *) wire \dut.is_npu0 , \dut.is_npu1 ;
  always @* if (running & ~in_header & ~in_drain) assert ({\dut.is_npu1 , \dut.is_npu0 } == {npu == 1, npu == 0});
`endif
  wire [5:0] states = {\dut.in_drain , \dut.in_frame , \dut.in_load , \dut.in_judge , \dut.in_range , \dut.in_header };
  wire [2:0] words_there = in_header ? place * (`WIDTH / 32) : 4;  // words of the header that have come
  wire [`ROW_BITS-1:0] row = address + rows;
  always @* if (running) begin
    assert (states == 1 << loader_state);
    assert (loader_state <= `DRAIN & (in_header | in_drain | place == 0) & place < 128 / `WIDTH);
    assert (\dut.header_place == place & \dut.early_last == cut);
    if (words_there > 0 & ~in_drain) assert (\dut.header_0 == word_0);
    if (words_there > 1 & ~in_drain) assert (\dut.header_1 == word_1);
    if (words_there > 2 & ~in_drain) assert (\dut.header_2 == word_2);
    if (words_there > 2 & ~in_drain) assert (\dut.end_row == {1'b0, address[`ROW_BITS:0]} + length[`ROW_BITS:0]);
    if (words_there > 3 & ~in_drain) assert (\dut.header_3 == word_3);
    if (~in_header & ~in_drain & npu < `NPUS)
      assert (\dut.memory_depth == depth & \dut.is_network == (memory == 0));
    if (~in_header & ~in_drain & npu < `NPUS & depth != 0)
      assert (\dut.memory_one_bank == (last_bank == 0) & (last_bank == 0 | \dut.memory_before_last_bank == last_bank - 24'd1));
    if (in_range | in_judge) assert (\dut.is_load == is_load & \dut.is_frame == is_frame);
    if (in_judge) assert (\dut.verdict == verdict & \dut.passed == (verdict == 0));
    if (in_judge) assert (\dut.may_load == (is_load & ~computing_before) & \dut.may_frame == (is_frame & start_before & ~full_before));
    if (in_judge) assert (after & (state_before == `RANGE | state_before == `JUDGE));
    if (in_judge | in_load | in_frame) assert (~in_judge | ~cut);
    if (in_load) assert (\dut.is_load & is_load & npu < `NPUS & end_row <= depth & rows < length & banks <= last_bank);
    if (in_load) assert (\dut.row == row & \dut.row_place_next == rows + 2 & \dut.bank == banks);
    if (in_load) assert (\dut.bank_last == (banks == last_bank));
    if (in_load) assert (\dut.row_place_last == (rows + 24'd1 == length));
    if (in_frame) assert (~\dut.is_load & is_frame & \dut.frame_place_next == beats + 24'd2);
    if (in_frame) assert (\dut.frame_place_last == (beats + 24'd1 == frame_beats));
    assert (\dut.next_number == number);
    assert (\dut.begun == frame_begins & \dut.in_flight + \dut.begun == flags + leaving & \dut.last_flags.level + flag_valid + \dut.begun == flags);
    assert (\dut.last_flags.level <= 16 & \dut.flag_ready == (\dut.last_flags.level != 16));
    assert (\dut.last_flags.some == (\dut.last_flags.level != 0));
    if (~error) assert (error_code == 0);
    if (cut | cut_before) assert (after);
  end
`endif
endmodule
