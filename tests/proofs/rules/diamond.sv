// A fork whose branches are FIFOs of different depths, and a join behind them: hls_gen/rtl/primitives/stream.py
module proof (input clk, input rst, input in_valid, input [7:0] in_data, input out_ready, input watch);
  wire in_ready, out_valid, running, watching;
  wire [15:0] out_data, word;
  wire [7:0] inside, ahead;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(8)) source (.valid(in_valid), .ready(in_ready), .word(in_data), .*);
  keeps_word #(.WIDTH(16)) sink (.valid(out_valid), .ready(out_ready), .word(out_data), .*);
  in_order #(.WIDTH(16), .MOST(`LEAST + 1), .BITS(8)) order (
      .in_taken(in_valid & in_ready), .in_word({in_data, in_data}), .out_taken(out_valid & out_ready),
      .out_word(out_data), .*);
  soon #(.WITHIN(1)) offers (.waits(inside != 0 & ~out_valid), .*);
  soon #(.WITHIN(1)) takes (.waits(inside < `LEAST & ~in_ready), .*);
endmodule
