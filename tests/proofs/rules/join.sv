// Join of three: hls_gen/rtl/primitives/stream.py
module proof (
    input clk, input rst, input in0_valid, input in1_valid, input in2_valid, input in0_data, input [39:0] in1_data,
    input [1:0] in2_data, input in0_last, input in1_last, input in2_last, input in1_side, input [1:0] in2_side,
    input out_ready
);
  wire in0_ready, in1_ready, in2_ready, out_valid, out_last, running;
  wire [42:0] out_data;
  wire [2:0] out_side;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(2)) source_0 (.valid(in0_valid), .ready(in0_ready), .word({in0_last, in0_data}), .*);
  given_source #(.WIDTH(42)) source_1 (
      .valid(in1_valid), .ready(in1_ready), .word({in1_side, in1_last, in1_data}), .*);
  given_source #(.WIDTH(5)) source_2 (
      .valid(in2_valid), .ready(in2_ready), .word({in2_side, in2_last, in2_data}), .*);
  keeps_word #(.WIDTH(47)) sink (
      .valid(out_valid), .ready(out_ready), .word({out_side, out_last, out_data}), .*);

  wire [2:0] valids = {in2_valid, in1_valid, in0_valid}, readys = {in2_ready, in1_ready, in0_ready};
  always @* if (running) begin
    offered_when_all_are: assert (out_valid == &valids);
    all_taken_with_it: assert ((valids & readys) == {3{out_valid & out_ready}});
    if (out_valid) begin
      side_by_side: assert (out_data == {in2_data, in1_data, in0_data});
      sides_side_by_side: assert (out_side == {in2_side, in1_side});
      last_of_all: assert (out_last == (in0_last & in1_last & in2_last));
    end
    one_waits: cover (valids == 3'b101);
  end
endmodule
