// Way past the pool unit: hls_gen/rtl/pool_unit/pass_by.py
//
// Side of `in`: whether the map has a pool, where it goes, last of its map; `pooled` and `out` lack the first.
module proof (
    input clk, input rst, input in_valid, input [`WIDTH-1:0] in_data, input in_last, input [`SIDE:0] in_side,
    input to_pool_ready, input pooled_valid, input [`WIDTH-1:0] pooled_data, input pooled_last,
    input [`SIDE-1:0] pooled_side, input out_ready
);
  wire in_ready, to_pool_valid, to_pool_last, pooled_ready, out_valid, out_last, running;
  wire [`WIDTH-1:0] to_pool_data, out_data;
  wire [`SIDE-1:0] out_side;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH + `SIDE + 2)) source (
      .valid(in_valid), .ready(in_ready), .word({in_side, in_last, in_data}), .*);
  given_source #(.WIDTH(`WIDTH + `SIDE + 1)) pool_unit (
      .valid(pooled_valid), .ready(pooled_ready), .word({pooled_side, pooled_last, pooled_data}), .*);
  keeps_word #(.WIDTH(`WIDTH + 1)) to_pool (
      .valid(to_pool_valid), .ready(to_pool_ready), .word({to_pool_last, to_pool_data}), .*);
  keeps_word #(.WIDTH(`WIDTH + `SIDE + 1)) sink (
      .valid(out_valid), .ready(out_ready), .word({out_side, out_last, out_data}), .*);

  // The pool unit: how many maps are in it as a whole, and whether a part of one is.
  reg [15:0] inside = 0;
  reg in_part = 0;
  wire has_pool = in_side[`SIDE];
  wire enters = to_pool_valid & to_pool_ready;
  wire ends = in_last & in_side[0];
  wire leaves = pooled_valid & pooled_ready & pooled_last & pooled_side[0];
  always @(posedge clk) begin
    inside <= rst ? 0 : inside + (enters & ends) - leaves;
    if (enters) in_part <= ~ends;
    if (rst) in_part <= 0;
  end
  // It has room for MOST maps, and gives no word of a map that it has none of, nor the last one before it has all.
  always @* if (~rst) begin
    if (inside == `MOST) assume (~to_pool_ready);
    if (pooled_valid) assume (inside != 0 | in_part & ~(pooled_last & pooled_side[0]));
    if (in_part & in_valid) assume (has_pool);  // all steps of a map go the same way
  end

  wire passes = in_valid & ~has_pool & inside == 0;
  always @* if (running) begin
    to_pool_alone: assert (to_pool_valid == (in_valid & has_pool));
    if (to_pool_valid) step_to_pool: assert ({to_pool_last, to_pool_data} == {in_last, in_data});
    none_of_nothing: assert (out_valid == (passes | pooled_valid));
    if (passes) step_past: assert ({out_side, out_last, out_data} == {in_side[`SIDE-1:0], in_last, in_data});
    if (pooled_valid) step_pooled: assert ({out_side, out_last, out_data} == {pooled_side, pooled_last, pooled_data});
    if (in_valid) taken_once: assert (in_ready == (has_pool ? to_pool_ready : passes & out_ready));
    if (pooled_valid) pooled_taken_once: assert (pooled_ready == out_ready);
    waits_for_maps: cover (in_valid & ~has_pool & inside == 2);
    passes_behind: cover (passes & out_ready);
    both_ways: cover (pooled_valid & to_pool_valid);
  end
`ifdef INVARIANTS
  (* hierconn *) wire [$clog2(`MOST + 1)-1:0] \dut.maps ;
  (* hierconn *) wire \dut.empty ;
  always @* if (running) begin
    assert (\dut.maps == inside);
    assert (\dut.empty == (inside == 0));
    assert (inside <= `MOST);
  end
`endif
endmodule
