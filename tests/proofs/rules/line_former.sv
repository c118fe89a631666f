// Line former in front of a pool unit: hls_gen/rtl/sequencer/line_former.py
//
// Memories are loaded in reset alone. Lines are followed here by places, from 0 up; the module counts down.
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  localparam TAPS = `TAPS, WIDTH = `WIDTH;  // taps of a word that leaves; bits of a word that comes
  localparam KEPT = (TAPS - 1) * WIDTH;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(WIDTH)) source (.valid(in_valid), .ready(in_ready), .word(in_data), .*);
  keeps_word #(.WIDTH(TAPS * WIDTH)) sink (.valid(out_valid), .ready(out_ready), .word(out_data), .*);
  always @* assume (~load_valid | rst);
  (* anyconst *) reg [7:0] last;
  always @* assume (last_layer == last);

  // The row of the layer that begins next, and that of the layer at work; the compiler's lines have no more positions
  // than steps.
  (* hierconn *) wire \dut.pool_lines_words_minus_1 ;
  (* hierconn *) wire [1:0] \dut.pool_lines_lines_minus_1 ;
  (* hierconn *) wire [10:0] \dut.pool_lines_steps_minus_1 , \dut.pool_lines_positions_minus_1 ;
  (* hierconn *) wire [4:0] \dut.pool_lines_first , \dut.pool_lines_stride_minus_1 ;
  (* hierconn *) wire [TAPS-2:0] \dut.pool_lines_taps_before ;
  (* hierconn *) wire [7:0] \dut.layer_upcoming ;
  always @* assume (\dut.pool_lines_positions_minus_1 <= \dut.pool_lines_steps_minus_1 );
  reg work = 0;  // there is a layer at work
  reg [7:0] number = 0;  // of the layer that begins next
  reg words_minus_1, lowest;
  reg [1:0] lines_minus_1;
  reg [10:0] steps_minus_1, positions_minus_1;
  reg [4:0] first, stride_minus_1;
  reg [TAPS-2:0] taps_before;

  // The word at hand: of which line, of which position of the line, which word of the position; and how many steps
  // there are up to the next one with which a window is complete.
  reg [1:0] line;
  reg [10:0] place;
  reg word = 0;
  reg [4:0] ahead;
  wire on_map = place <= positions_minus_1, complete = ahead == 0;
  wire moves = work & (~on_map | in_valid) & (~complete | out_ready);
  wire step = moves & word == words_minus_1, line_ends = step & place == steps_minus_1;
  wire begins = ~work | line_ends & line == lines_minus_1;

  // For each word of a position those of the positions before, the last one low.
  reg [KEPT-1:0] before_0, before_1;
  reg has_0 = 0, has_1 = 0;
  (* hierconn *) wire [KEPT-1:0] \dut.held ;  // what lies there before a word was written means nothing
  wire [KEPT-1:0] before = word ? before_1 : before_0;
  wire [KEPT-1:0] kept = (word ? has_1 : has_0) ? before : \dut.held ;
  always @(posedge clk) begin
    if (moves & ~word) {before_0, has_0} <= {kept, in_data, 1'b1};
    if (moves & word) {before_1, has_1} <= {kept, in_data, 1'b1};
  end
  always @(posedge clk) begin
    if (moves) word <= step ? 0 : word + 1;
    if (step) begin
      place <= line_ends ? 0 : place + 1;
      ahead <= line_ends ? first : complete ? stride_minus_1 : ahead - 1;
      if (line_ends) line <= line + 1;
    end
    if (begins) begin
      work <= 1;
      number <= number == last ? 0 : number + 1;
      {line, place} <= 0;
      words_minus_1 <= \dut.pool_lines_words_minus_1 ;
      lines_minus_1 <= \dut.pool_lines_lines_minus_1 ;
      steps_minus_1 <= \dut.pool_lines_steps_minus_1 ;
      positions_minus_1 <= \dut.pool_lines_positions_minus_1 ;
      {first, ahead} <= {2{\dut.pool_lines_first }};
      stride_minus_1 <= \dut.pool_lines_stride_minus_1 ;
      taps_before <= \dut.pool_lines_taps_before ;
`ifdef LOWEST
      lowest <= \dut.pool_lines_lowest ;
`endif
    end
    if (rst) {work, number, word} <= 0;
  end

  // The word that leaves: the newest position in the highest lanes, those before below it.
`ifdef LOWEST
  (* hierconn *) wire \dut.pool_lines_lowest , \dut.layer_lowest ;
  wire [WIDTH-1:0] beside = lowest ? `LOWEST : 0;
`else
  wire [WIDTH-1:0] beside = 0;
`endif
  wire [TAPS*WIDTH-1:0] window;
  assign window[(TAPS - 1) * WIDTH +: WIDTH] = on_map ? in_data : beside;
  wire [TAPS-2:0] there;
  genvar k;
  for (k = 1; k < TAPS; k = k + 1) begin
    assign there[k-1] = place >= k & place - k <= positions_minus_1;
    assign window[(TAPS - 1 - k) * WIDTH +: WIDTH] = there[k-1] & taps_before[k-1] ? before[(k - 1) * WIDTH +: WIDTH] : beside;
  end

  always @* if (running) begin
    each_window_once: assert (out_valid == (work & complete & (~on_map | in_valid)));
    each_word_once: assert (in_ready == (work & on_map & (~complete | out_ready)));
    if (out_valid) taps_of_the_window: assert (out_data == window);
    layer_after_layer: assert (\dut.layer_upcoming == number);
    all_taps: cover (out_valid & word & &(there & taps_before) & on_map);
    beside_the_map: cover (out_valid & ~on_map & place != 0);
    window_after_window: cover (step & complete & stride_minus_1 == 0 & ~line_ends);
    second_line: cover (work & line == 1 & out_valid);
    second_layer: cover (number == 0 & work & out_valid & last == 1);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.loaded , \dut.on_map , \dut.hit_last , \dut.word , \dut.steps_last , \dut.positions_last ;
  (* hierconn *) wire \dut.lines_last , \dut.layer_words_minus_1 ;
  (* hierconn *) wire [1:0] \dut.lines_left ;
  (* hierconn *) wire [10:0] \dut.steps_left , \dut.positions_left ;
  (* hierconn *) wire [10:0] \dut.layer_steps_minus_1 , \dut.layer_positions_minus_1 ;
  (* hierconn *) wire [4:0] \dut.hit_left , \dut.layer_first , \dut.layer_stride_minus_1 ;
  (* hierconn *) wire [TAPS-2:0] \dut.layer_taps_before ;
  (* hierconn *) wire \dut.before_1 ;
`ifdef LOWEST
  (* hierconn *) wire \dut.before_2 ;
`endif
  (* keep *) wire row_0 = 0, row_1 = 1;
  (* keep *) wire [KEPT-1:0] word_0 = before_0, word_1 = before_1;
  (* keep *) wire written_0 = has_0, written_1 = has_1;
  always @* if (running) begin
    assert (\dut.loaded == work & \dut.word == word);
    if (~work) assert (word == 0);
  end
  always @* if (running & work) begin
    assert (word <= words_minus_1 & line <= lines_minus_1 & place <= steps_minus_1);
    assert (positions_minus_1 <= steps_minus_1);
    assert (\dut.layer_words_minus_1 == words_minus_1);
    assert ({\dut.layer_steps_minus_1 , \dut.layer_positions_minus_1 } == {steps_minus_1, positions_minus_1});
    assert ({\dut.layer_first , \dut.layer_stride_minus_1 } == {first, stride_minus_1});
    assert (\dut.layer_taps_before == taps_before);
    assert (\dut.lines_left == lines_minus_1 - line & \dut.lines_last == (line == lines_minus_1));
    assert (\dut.steps_left == steps_minus_1 - place & \dut.steps_last == (place == steps_minus_1));
    assert (\dut.hit_left == ahead & \dut.hit_last == complete);
    assert (\dut.on_map == on_map);
    if (on_map) assert (\dut.positions_left == positions_minus_1 - place & \dut.positions_last == (place == positions_minus_1));
    assert (\dut.before_1 == there[0]);
`ifdef LOWEST
    assert (\dut.layer_lowest == lowest & \dut.before_2 == there[1]);
`endif
    if (place != 0) assert (has_0 & (has_1 | ~words_minus_1));
    if (word) assert (has_0);
  end
`endif
endmodule
