// Results unit: hls_gen/rtl/results/results.py
//
// Its memories are loaded in reset, as the loader does it, and then stay; what they hold may be anything.
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  always @* if (~rst) assume ({`LOADS} == 0);
  keeps_word #(.WIDTH($bits(features_data) + 1)) features (
      .valid(features_valid), .ready(features_ready), .word({features_last, features_data}), .*);
  keeps_word #(.WIDTH($bits(raw_data) + 1)) raw (
      .valid(raw_valid), .ready(raw_ready), .word({raw_last, raw_data}), .*);

  // Windows: the sequencer ends one only where there is room; its results come in some later cycle, in order.
  (* hierconn *) wire \dut.load , \dut.finish , \dut.loaded ;
  wire load = \dut.load , finish = \dut.finish ;
  wire given_back = `SEVERAL ? load : finish;
  reg [4:0] in_use = 0, coming = 0, waiting = 0;  // windows with a credit, not yet there, there and not yet at work
  reg at_work = 0;
  reg [SUMS-1:0] newest;
  localparam SUMS = $bits(results);
  wire [SUMS-1:0] present = result_valid ? results : newest;
  always @(posedge clk) begin
    in_use <= rst ? 0 : in_use + taken - given_back;
    coming <= rst ? 0 : coming + taken - result_valid;
    waiting <= rst ? 0 : waiting + result_valid - load;
    at_work <= ~rst & (load | at_work & ~finish);
    newest <= present;
  end
  always @* begin
    assume (~taken | room);
    assume (~result_valid | coming != 0);
    if (~`SEVERAL) assume (results == present);  // a processing element's sum stays until the next one
  end

  // No deadlock: a window that waits goes to work when the one before is done, and a step leaves when one can.
  soon #(.WITHIN(1)) loads (.waits(waiting != 0 & ~at_work & ~load), .*);
  soon #(.WITHIN(`STAGES)) steps (.waits(at_work & ~features_valid & ~raw_valid), .*);
  reg loaded_before = 0;
  reg [SUMS-1:0] loaded_sums;
  always @(posedge clk) begin
    loaded_before <= load & ~rst;
    loaded_sums <= `SEVERAL ? results : present;
  end
  (* hierconn *) wire [`QUEUE-1:0] \dut.queue ;
  always @* if (running) begin
    credits_suffice: assert (in_use <= `WINDOWS);
    room_while_there_is_some: assert (room == (in_use != `WINDOWS));
    if (~`SEVERAL & result_valid) none_overwritten: assert (waiting == 0);
    if (load) load_of_results: assert (waiting != 0 | result_valid);
    if (load) one_at_work: assert (~at_work | finish);
    if (finish) finish_of_a_window: assert (at_work);
    if (loaded_before) same_results: assert ( \dut.queue [SUMS-1:0] == loaded_sums);
`ifdef SLOT
    in_turn: assert (drain_slot == slot);
`endif
    no_room: cover (~room);
    window_after_window: cover (load & finish);
    waits_for_the_one_before: cover (waiting != 0 & at_work);
  end
`ifdef SLOT
  reg [`SLOT-1:0] slot = 0;  // accumulators are looked at one after another
  always @(posedge clk) slot <= rst ? 0 : slot + load;
`endif

`ifdef INVARIANTS
  (* hierconn *) wire \dut.window_last , \dut.tuple_last , \dut.map_last ;
  (* hierconn *) wire \dut.levels_last , \dut.units_last , \dut.groups_last , \dut.windows_last ;
  (* hierconn *) wire \dut.busy , \dut.idle , \dut.starts , \dut.value_valid , \dut.value_empty ;
  (* hierconn *) wire [`FULL-1:0] \dut.full ;
  (* hierconn *) wire [`CREDIT-1:0] \dut.credits ;
`ifdef BINARY
  (* hierconn *) wire \dut.some_full , \dut.some_credits ;
`endif
  always @* if (running) begin
    assert (\dut.busy == at_work & \dut.idle == ~at_work & \dut.starts == ~\dut.loaded );
    assert (\dut.value_empty == ~\dut.value_valid );
    if (\dut.loaded ) assert (\dut.window_last == (\dut.levels_last & \dut.units_last ));
    if (\dut.loaded ) assert (\dut.tuple_last == (\dut.window_last & \dut.groups_last ));
    if (\dut.loaded ) assert (\dut.map_last == (\dut.tuple_last & \dut.windows_last ));
`ifdef BINARY
    assert (\dut.full == waiting && \dut.some_full == (waiting != 0));
    assert (\dut.credits == `WINDOWS - in_use && \dut.some_credits == (in_use != `WINDOWS));
`else
    assert (\dut.full == (1 << waiting) - 1);  // as many ones as they count
    assert (\dut.credits == (1 << `WINDOWS - in_use) - 1);
`endif
    assert (in_use == coming + waiting + (`SEVERAL ? 0 : at_work));
  end
`endif
endmodule
