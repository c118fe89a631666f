// Counts of the sequencer, in its issuer: hls_gen/rtl/sequencer/issuer.py and counts.py
//
// What the compiler's tables keep to is assumed: the words that a layer has claimed and not given back fit into the
// ring, and a word is given back when it is there and nobody reads it any more (hls_gen/compiler/schedule/tables.py).
module proof (
`include "inputs.svh"
    input clk, input rst,
    input [7:0] own_words  // that the tap at hand gives back as it is taken
);
`include "outputs.svh"
  localparam RING = `RING, BITS = $clog2(RING), COUNT = BITS + 2;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  localparam TAP = $bits({tap_skip, tap_claim, tap_last, tap_layer_end, tap_address, tap_words_minus_1, tap_hold_words});
  given_source #(.WIDTH(TAP)) source (
      .valid(tap_valid), .ready(tap_ready), .word({tap_skip, tap_claim, tap_last, tap_layer_end, tap_address,
      tap_words_minus_1, tap_hold_words}), .*);

  // The tap at work, and how many of its words were used.
  reg busy = 0, skip, claim, layer_end;
  reg [BITS-1:0] address, words_minus_1;
  reg [`HOLD-1:0] hold_words;
  reg [BITS:0] used;
  wire step = tap_valid & tap_ready;
  wire final_word = used == words_minus_1;
  wire done = busy & (skip | beat & final_word);
  always @(posedge clk) begin
    if (beat) used <= used + 1;
    if (done) busy <= 0;
    if (step) begin
      busy <= 1;
      used <= 0;
      {skip, claim, layer_end, address, words_minus_1, hold_words} <=
          {tap_skip, tap_claim, tap_layer_end, tap_address, tap_words_minus_1, tap_hold_words};
    end
    if (rst) busy <= 0;
  end

  // Words: written, claimed and given back, as differences that are far too wide to overflow.
  wire [7:0] claims = (beat & claim) + (busy & skip & claim ? words_minus_1 + 8'd1 : 0)
`ifdef GAP
      + (step & tap_gap ? tap_gap_words : 0)
`endif
      ;
  wire [7:0] gives = (step ? own_words : 0) + (done & layer_end ? hold_words : 0);
  reg signed [7:0] unclaimed = 0, kept = 0;  // written and not claimed; claimed and not given back
  reg [7:0] gives_before = 0, own_before = 0;
  wire signed [7:0] in_ring = unclaimed + kept;  // written and not given back: must not be overwritten
  wire signed [7:0] in_ring_next = in_ring + write - gives, kept_next = kept + claims - gives;
  always @(posedge clk) begin
    unclaimed <= rst ? 0 : unclaimed + write - claims;
    kept <= rst ? 0 : kept_next;
    gives_before <= rst ? 0 : gives;
    own_before <= step & ~rst ? own_words : 0;
  end
  always @* begin
    assume (~write | has_free);
    if (running) assume (tap_given_words == own_before);  // told in the cycle after the tap was taken
    if (running) assume (kept_next >= 0 & kept_next <= RING & in_ring_next >= 0);
    if (running) assume (gives <= RING & claims <= RING);
  end

  wire enough = claim ? unclaimed > 0 : unclaimed >= 0;
  soon #(.WITHIN(1)) frees (.waits(in_ring < RING & ~has_free), .*);
  (* hierconn *) wire [COUNT-1:0] \dut.arrived , \dut.free_minus_1 ;
  wire signed [COUNT-1:0] arrived = \dut.arrived , free = \dut.free_minus_1 + 1'b1;
  always @* if (running) begin
    nothing_overwritten: assert (in_ring <= RING);
    if (has_free) free_is_free: assert (in_ring < RING);
    if (beat) word_is_there: assert (busy & ~skip & enough);
    if (beat) word_of_the_tap: assert (read_row == address + used[BITS-1:0]);
    if (busy & ~skip & enough & room) goes_on: assert (beat);
`ifdef ARRAY
    place_of_a_result: assert (takes_room == (beat & last));
`endif
    tap_after_tap: assert (tap_ready == (~busy | done));
    arrived_counts: assert (arrived == unclaimed);
    free_counts: assert (free == RING - in_ring - $signed(gives_before));
    ring_full: cover (in_ring == RING & ~has_free);
    claims_ahead: cover (unclaimed < -2);
    given_and_written: cover (write & gives_before != 0);
    several_words: cover (done & ~skip & words_minus_1 == 2);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.busy , \dut.idle , \dut.skips , \dut.claims_word , \dut.claims_tuple , \dut.full ;
  (* hierconn *) wire \dut.at_layer_end , \dut.word_last , \dut.pass_last , \dut.ends ;
  (* hierconn *) wire [BITS-1:0] \dut.left , \dut.at_address ;
  (* hierconn *) wire [COUNT-1:0] \dut.arrived_minus_1 , \dut.ended_words ;
  (* hierconn *) wire [`HOLD-1:0] \dut.at_hold_words ;
  reg after_reset = 1;
  always @(posedge clk) after_reset <= rst;
  always @* if (running) begin
    assert ({ \dut.busy , \dut.idle , \dut.skips } == {busy & ~skip, ~(busy & ~skip), busy & skip});
    assert ({ \dut.claims_word , \dut.claims_tuple } == {busy & ~skip & claim, busy & skip & claim});
    if (\dut.pass_last ) assert (busy & ~skip);
    assert (\dut.ends == (~busy | skip | final_word));
    if (busy) assert ( \dut.at_layer_end == layer_end);
    assert ( \dut.full == (after_reset | free < 1));
    if (busy) assert (used <= words_minus_1 & \dut.left == words_minus_1 - used & \dut.word_last == final_word);
    if (busy) assert (\dut.at_hold_words == hold_words & \dut.at_address == address + used[BITS-1:0]);
    if (busy & skip) assert (used == 0);
    assert (\dut.arrived_minus_1 == \dut.arrived - 1'b1);
    assert (own_before + \dut.ended_words == gives_before & gives_before <= RING);
    assert (kept >= 0 & kept <= RING & in_ring >= 0 & in_ring + $signed(gives_before) <= RING);
  end
`endif
endmodule
