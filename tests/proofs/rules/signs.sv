// Signs behind the addition of a binary NPU: hls_gen/rtl/results/signs.py
module proof (
    input clk, input rst, input in_valid, input [`WIDTH-1:0] in_data, input in_last, input [`SIDE:0] in_side,
    input out_ready, input skip_ready
);
  wire in_ready, running, out_valid, out_last, skip_valid;
  wire [`LANES-1:0] out_data;
  wire [`WIDTH-1:0] skip_data;
  wire [`SIDE-1:0] out_side;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH + `SIDE + 2)) source (
      .valid(in_valid), .ready(in_ready), .word({in_side, in_last, in_data}), .*);
  keeps_word #(.WIDTH(`LANES + `SIDE + 1)) sink_out (
      .valid(out_valid), .ready(out_ready), .word({out_side, out_last, out_data}), .*);
  keeps_word #(.WIDTH(`WIDTH)) sink_skip (.valid(skip_valid), .ready(skip_ready), .word(skip_data), .*);

  wire kept = in_side[`SIDE];
  reg has_out = 0, has_skip = 0;  // who has the step that is offered
  wire take = in_valid & in_ready;
  always @(posedge clk) begin
    has_out <= ~(rst | take) & (has_out | (out_valid & out_ready));
    has_skip <= ~(rst | take) & (has_skip | (skip_valid & skip_ready));
  end

  wire [`LANES-1:0] at_least_0;
  genvar k;
  for (k = 0; k < `LANES; k = k + 1) assign at_least_0[k] = ~in_data[(k + 1) * (`WIDTH / `LANES) - 1];
  always @* if (running) begin
    offered_to_who_lacks_it: assert (out_valid == (in_valid & ~has_out));
    kept_where_it_lacks: assert (skip_valid == (in_valid & kept & ~has_skip));
    taken_when_all_have_it: assert (
        take == (in_valid & (has_out | out_ready) & (~kept | has_skip | skip_ready)));
    if (out_valid) begin
      same_ends: assert ({out_side, out_last} == {in_side[`SIDE-1:0], in_last});
      bits_are_signs: assert (out_data == at_least_0);
    end
    if (skip_valid) same_word: assert (skip_data == in_data);
    bits_first: cover (take & has_out & ~has_skip & kept);
    store_first: cover (take & has_skip & ~has_out);
    both_at_once: cover (take & kept & ~has_out & ~has_skip);
    bits_alone: cover (take & ~kept);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.sides_done_0 , \dut.sides_done_1 , \source.waits ;
  always @* if (running) begin
    assert (~(\dut.sides_done_0 | \dut.sides_done_1 | has_out | has_skip) | \source.waits );
    if (in_valid) assert (has_out == \dut.sides_done_0 );
    if (in_valid) assert (has_skip == (kept & \dut.sides_done_1 ));
  end
`endif
endmodule
