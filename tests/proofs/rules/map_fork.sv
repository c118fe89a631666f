// Fork of maps to their outlet and the skip store: hls_gen/rtl/stores/map_fork.py
module proof (
    input clk, input rst, input in_valid, input [`WIDTH-1:0] in_data, input in_last, input [4:0] in_side,
    input out_ready, input skip_ready
);
  wire in_ready, running, out_valid, out_last, skip_valid, skip_side;
  wire [`WIDTH-1:0] out_data, skip_data;
  wire [2:0] out_side;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH + 6)) source (
      .valid(in_valid), .ready(in_ready), .word({in_side, in_last, in_data}), .*);
  keeps_word #(.WIDTH(`WIDTH + 4)) sink_out (
      .valid(out_valid), .ready(out_ready), .word({out_side, out_last, out_data}), .*);
  keeps_word #(.WIDTH(`WIDTH + 1)) sink_skip (
      .valid(skip_valid), .ready(skip_ready), .word({skip_side, skip_data}), .*);

  wire forks = in_side[3], for_addition = in_side[4];
  wire to_out = in_side[2:1] != `SKIP, to_skip = forks | ~to_out;
  reg has_out = 0, has_skip = 0;  // who has the word that is offered
  wire take = in_valid & in_ready;
  always @(posedge clk) begin
    has_out <= ~(rst | take) & (has_out | (out_valid & out_ready));
    has_skip <= ~(rst | take) & (has_skip | (skip_valid & skip_ready));
  end

  always @* if (running) begin
    offered_to_who_lacks_it: assert (out_valid == (in_valid & to_out & ~has_out));
    skipped_where_it_lacks: assert (skip_valid == (in_valid & to_skip & ~has_skip));
    taken_when_all_have_it: assert (
        take == (in_valid & (~to_out | has_out | out_ready) & (~to_skip | has_skip | skip_ready)));
    if (out_valid) same_word_0: assert ({out_side, out_last, out_data} == {in_side[2:0], in_last, in_data});
    if (skip_valid) same_word_1: assert ({skip_side, skip_data} == {for_addition, in_data});
    outlet_first: cover (take & has_out & ~has_skip & to_skip);
    store_first: cover (take & has_skip & ~has_out & to_out);
    both_at_once: cover (take & to_out & to_skip & ~has_out & ~has_skip);
    outlet_alone: cover (take & ~to_skip);
    store_alone: cover (take & ~to_out);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.sides_done_0 , \dut.sides_done_1 , \source.waits ;
  always @* if (running) begin
    assert (~(\dut.sides_done_0 | \dut.sides_done_1 | has_out | has_skip) | \source.waits );
    if (in_valid) assert (has_out == (to_out & \dut.sides_done_0 ));
    if (in_valid) assert (has_skip == (to_skip & \dut.sides_done_1 ));
  end
`endif
endmodule
