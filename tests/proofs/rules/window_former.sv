// Window former: hls_gen/rtl/former/window_former.py
//
// The network's row stays as it is from reset to reset. Which taps a window has, simulation says: here the windows are
// those that the module's columns hold when one is complete.
module proof (
`include "inputs.svh"
    input clk, input rst,
    input watch  // the window that is complete now is remembered
);
`include "outputs.svh"
  localparam WORDS = `WORDS, WIDTH = `WIDTH;  // of the longest window; bits of a word
  localparam ROW = $bits({`FIELDS});
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(WIDTH)) source (.valid(in_valid), .ready(in_ready), .word(in_data), .*);
  keeps_word #(.WIDTH(WIDTH)) sink (.valid(out_valid & former_on), .ready(out_ready), .word(out_data), .*);
  reg [ROW-1:0] row_before;
  reg had_row = 0;
  always @(posedge clk) begin
    row_before <= {`FIELDS};
    had_row <= ~rst;
  end
  always @* if (had_row) assume ({`FIELDS} == row_before);
`ifdef SEVERAL
  always @* assume (former_words_minus_1 < WORDS);
  wire [3:0] words = former_words_minus_1 + 4'd1;
`else
  wire [3:0] words = 1;
`endif

  // Words of complete windows that have not left.
  (* hierconn *) wire \dut.step , \dut.x_hit , \dut.y_hit , \dut.come , \dut.x_ends , \dut.y_ends ;
  (* hierconn *) wire \dut.moves , \dut.on_map , \dut.fresh ;
  (* hierconn *) wire [WORDS*WIDTH-1:0] \dut.window ;
  wire completes = \dut.step & \dut.x_hit & \dut.y_hit ;
  wire give = former_on & out_valid & out_ready, take = former_on & in_valid & in_ready;
  reg [4:0] owed = 0;
  reg complete = 0;
  always @(posedge clk) begin
    owed <= rst ? 0 : owed - give + (completes ? words : 0);
    complete <= completes & ~rst;
  end

  // A window that is remembered, and which of its words leaves next; below 0 as long as those of the one before leave.
  reg watching = 0;
  reg [WORDS*WIDTH-1:0] saved;
  reg signed [5:0] next;
  wire known = watching | (complete & watch);
  wire [WORDS*WIDTH-1:0] window = watching ? saved : \dut.window ;
  wire signed [5:0] at = watching ? next : $signed({2'b0, words}) - $signed({1'b0, owed}), at_next = at + $signed({1'b0, give});
  always @(posedge clk) begin
    watching <= known & ~rst & at_next != $signed({2'b0, words});
    saved <= window;
    next <= at_next;
  end

  // Positions of the word that was taken last.
  reg [`POSITION_BITS:0] positions = 0;
  wire of_the_frame = \dut.come & \dut.x_ends & \dut.y_ends ;  // its last one that comes
  always @(posedge clk) begin
    if (\dut.come ) positions <= of_the_frame ? 0 : positions - 1;
    if (take) positions <= former_positions_minus_1 + 1'b1;
    if (rst) positions <= 0;
  end

  always @* if (running & former_on) begin
    each_word_once: assert (out_valid == (owed != 0));
    if (known & out_valid & at >= 0) word_of_the_window: assert (out_data == window[at[2:0] * WIDTH +: WIDTH]);
    if (completes) leaves_in_time: assert (owed - give <= `COPIED * (words - 1));
    if (\dut.come ) position_of_a_word: assert (positions != 0);
    step_of_a_word: assert (\dut.come == (\dut.step & \dut.on_map ));
    step_of_all: assert (\dut.moves == (\dut.step | \dut.fresh ));
    when_it_is_empty: assert (in_ready == (positions == 0 | \dut.come & (positions == 1 | of_the_frame)));
    waits_for_a_word: cover (owed == 0 & ~complete & positions == 0 & ~in_valid & known == 0 & \dut.x_hit );
    window_after_window: cover (complete & completes);
    all_words: cover (known & at == WORDS - 1 & give);
    rest_is_dropped: cover (of_the_frame & positions > 1);
  end
  always @* if (running & ~former_on) begin
    words_pass: assert ({in_ready, out_valid, out_data} == {out_ready, in_valid, in_data});
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.offering , \dut.begun , \dut.there ;
  (* hierconn *) wire [`POSITION_BITS-1:0] \dut.left ;
  wire [3:0] number;
`ifdef SEVERAL
  (* hierconn *) wire [$clog2(WORDS)-1:0] \dut.number ;
  (* hierconn *) wire \dut.last_word ;
  assign number = \dut.number ;
`else
  assign number = 0;
`endif
`ifdef AHEAD
  (* hierconn *) wire \dut.first_word ;
  (* hierconn *) wire [WIDTH-1:0] \dut.copy_1 ;
  wire whole = \dut.first_word ;
`else
  wire whole = 1;
`endif
  wire [3:0] rest = whole ? 0 : words - number;  // of the copy
  always @* if (running) begin
    assert (~\dut.begun | former_on);
    assert (\dut.begun | ~\dut.offering & ~complete & owed == 0);
    assert (former_on | owed == 0 & ~\dut.there & positions == 0 & ~known);
    assert (positions == (\dut.there ? \dut.left + 1'b1 : 0));
  end
  always @* if (running & \dut.begun ) begin
`ifdef AHEAD
    assert (owed == rest + (\dut.offering ? words : 0));
    assert (\dut.first_word == (number == 0) & number < words);
    if (watching & next <= 0) assert (\dut.offering & saved == \dut.window & -next == rest);
    if (watching & next > 0) assert (number == next & \dut.copy_1 == saved[WIDTH +: WIDTH]);
`else
    assert (number < words & (\dut.offering | number == 0));
    assert (owed == (\dut.offering ? words - number : 0));
    if (watching) assert (\dut.offering & saved == \dut.window & next == number);
`endif
`ifdef SEVERAL
    assert (\dut.last_word == (number == former_words_minus_1));
`endif
    if (complete) assert (\dut.offering & (number == 0 | ~whole));
  end
`endif
endmodule
