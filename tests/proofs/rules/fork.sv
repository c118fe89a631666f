// Fork into three: hls_gen/rtl/primitives/stream.py
module proof (
    input clk, input rst, input in_valid, input [11:0] in_data, input in_last, input [2:0] in_side, input restart,
    input out0_ready, input out1_ready, input out2_ready
);
  wire in_ready, running;
  wire out0_valid, out1_valid, out2_valid, out0_last, out1_last;
  wire [11:0] out0_data, out1_data, out2_data;
  wire [2:0] out0_side;
  `DUT dut (.*);

  wire anew = rst | restart;
  given_reset given_reset (.*);
  given_source #(.WIDTH(16)) source (
      .rst(anew), .valid(in_valid), .ready(in_ready), .word({in_side, in_last, in_data}), .clk(clk));
  wire runs = running & ~restart;
  keeps_word #(.WIDTH(16)) sink_0 (
      .rst(anew), .running(runs), .valid(out0_valid), .ready(out0_ready), .word({out0_side, out0_last, out0_data}), .*);
  keeps_word #(.WIDTH(13)) sink_1 (
      .rst(anew), .running(runs), .valid(out1_valid), .ready(out1_ready), .word({out1_last, out1_data}), .*);
  keeps_word #(.WIDTH(12)) sink_2 (
      .rst(anew), .running(runs), .valid(out2_valid), .ready(out2_ready), .word(out2_data), .*);

  wire [2:0] valids = {out2_valid, out1_valid, out0_valid}, readys = {out2_ready, out1_ready, out0_ready};
  reg [2:0] has = 0;  // sinks that have the word that is offered
  wire take = in_valid & in_ready;
  always @(posedge clk) has <= anew | take ? 0 : has | (valids & readys);

  always @* if (running) begin
    offered_to_who_lacks_it: assert (valids == ({3{in_valid}} & ~has));
    taken_when_all_have_it: assert (take == (in_valid & &(has | readys)));
    if (out0_valid) same_word_0: assert ({out0_side, out0_last, out0_data} == {in_side, in_last, in_data});
    if (out1_valid) same_word_1: assert ({out1_last, out1_data} == {in_last, in_data});
    if (out2_valid) same_word_2: assert (out2_data == in_data);
    one_after_another: cover (take & has == 3'b101);
    all_at_once: cover (take & has == 0);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.way_done_0 , \dut.way_done_1 , \dut.way_done_2 ;
  always @* if (running) assert (has == { \dut.way_done_2 , \dut.way_done_1 , \dut.way_done_0 });
`endif
endmodule
