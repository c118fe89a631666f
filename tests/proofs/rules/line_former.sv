// Line former in front of a pool unit: hls_gen/rtl/sequencer/line_former.py
//
// Memories are loaded in reset alone. Lines are followed here by places, from 0 up; the module counts down.
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
`ifndef ROWS
`define ROWS 1
`endif
  localparam TAPS = `TAPS, ROWS = `ROWS, WIDTH = `WIDTH;  // taps of a line, and lines, of a word that leaves; bits of a word that comes
  localparam PLACE = ROWS * WIDTH;  // the word at hand, and those of the lines above it
  localparam KEPT = (TAPS - 1) * PLACE;
`ifdef SHARED
  localparam PART = WIDTH / 2;  // lanes of a line where two share those of a word
`else
  localparam PART = WIDTH;
`endif
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(WIDTH)) source (.valid(in_valid), .ready(in_ready), .word(in_data), .*);
  keeps_word #(.WIDTH(TAPS * PLACE)) sink (.valid(out_valid), .ready(out_ready), .word(out_data), .*);
  always @* assume (~load_to_pool_lines | rst);
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
`ifdef KEEPS
  (* hierconn *) wire [4:0] \dut.pool_lines_first_line , \dut.pool_lines_line_stride_minus_1 ;
  (* hierconn *) wire \dut.pool_lines_lines_before ;
`ifdef SHARED
  (* hierconn *) wire \dut.pool_lines_shares_lanes ;
  wire next_keeps = \dut.pool_lines_shares_lanes ;
  reg keeps;
`else
  wire next_keeps = 1, keeps = 1;
`endif
  always @* assume (~next_keeps | \dut.pool_lines_positions_minus_1 <= (\dut.pool_lines_words_minus_1 ? 1 : 3));  // 4 words of a line are kept
  reg [4:0] first_line, line_stride_minus_1;
  reg lines_before;
`endif
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
`ifdef KEEPS
  reg [4:0] line_ahead;  // lines up to the next one with which windows are complete
  wire line_completes = line_ahead == 0;
`else
  wire line_completes = 1;
`endif
  wire on_map = place <= positions_minus_1, column_completes = ahead == 0, complete = column_completes & line_completes;
  wire moves = work & (~on_map | in_valid) & (~complete | out_ready);
  wire step = moves & word == words_minus_1, line_ends = step & place == steps_minus_1;
  wire begins = ~work | line_ends & line == lines_minus_1;

  // For each word of a line that of the line before.
  wire [PLACE-1:0] here;
  assign here[PART-1:0] = in_data[PART-1:0];
`ifdef KEEPS
  reg [PART-1:0] above_0, above_1, above_2, above_3;
  reg [3:0] has_above = 0;
  reg [1:0] at = 0;  // number of the word in its line
  (* hierconn *) wire [PART-1:0] \dut.held_lines ;  // what lies there before a word was written, or beside the map, means nothing
  wire second = line != 0;
  wire [PART-1:0] above = ~on_map | ~second ? \dut.held_lines : at == 0 ? above_0 : at == 1 ? above_1 : at == 2 ? above_2 : above_3;
`ifdef SHARED
  assign here[PLACE-1:PART] = keeps ? above : in_data[WIDTH-1:PART];
`else
  assign here[PLACE-1:PART] = above;
`endif
  always @(posedge clk) begin
    if (moves & on_map & keeps) begin
      at <= at + 1;
      if (at == 0) {above_0, has_above[0]} <= {in_data[PART-1:0], 1'b1};
      if (at == 1) {above_1, has_above[1]} <= {in_data[PART-1:0], 1'b1};
      if (at == 2) {above_2, has_above[2]} <= {in_data[PART-1:0], 1'b1};
      if (at == 3) {above_3, has_above[3]} <= {in_data[PART-1:0], 1'b1};
    end
    if (line_ends | rst) at <= 0;
  end
`endif

  // For each word of a position those of the positions before, the last one low.
  reg [KEPT-1:0] before_0, before_1;
  reg has_0 = 0, has_1 = 0;
  (* hierconn *) wire [KEPT-1:0] \dut.held ;  // what lies there before a word was written means nothing
  wire [KEPT-1:0] before = word ? before_1 : before_0;
  wire [KEPT-1:0] kept = (word ? has_1 : has_0) ? before : \dut.held ;
  always @(posedge clk) begin
    if (moves & ~word) {before_0, has_0} <= {kept, here, 1'b1};
    if (moves & word) {before_1, has_1} <= {kept, here, 1'b1};
  end
  always @(posedge clk) begin
    if (moves) word <= step ? 0 : word + 1;
    if (step) begin
      place <= line_ends ? 0 : place + 1;
      ahead <= line_ends ? first : column_completes ? stride_minus_1 : ahead - 1;
`ifdef KEEPS
      if (line_ends) line_ahead <= line_completes ? line_stride_minus_1 : line_ahead - 1;
`endif
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
`ifdef KEEPS
      {first_line, line_ahead} <= {2{\dut.pool_lines_first_line }};
      line_stride_minus_1 <= \dut.pool_lines_line_stride_minus_1 ;
      lines_before <= \dut.pool_lines_lines_before ;
`endif
`ifdef SHARED
      keeps <= \dut.pool_lines_shares_lanes ;
`endif
`ifdef LOWEST
      lowest <= \dut.pool_lines_lowest ;
`endif
    end
    if (rst) {work, number, word} <= 0;
  end

  // The word that leaves: the newest position in the highest lanes, those before below it; then those of the line above,
  // or where it shares lanes that line in the upper lanes of each position.
`ifdef LOWEST
  (* hierconn *) wire \dut.pool_lines_lowest , \dut.layer_lowest ;
  wire [WIDTH-1:0] beside = lowest ? `LOWEST : 0;
`else
  wire [WIDTH-1:0] beside = 0;
`endif
  wire [TAPS*PLACE-1:0] window;
  localparam LINE = (ROWS - 1) * TAPS * WIDTH;  // where the taps of the line at hand begin
`ifdef KEEPS
  wire line_above = second & lines_before;
`endif
`ifdef SHARED
  wire [WIDTH-1:0] lanes_there = {{PART{~keeps | line_above}}, {PART{1'b1}}};
`else
  wire [WIDTH-1:0] lanes_there = {WIDTH{1'b1}};
`endif
  assign window[LINE + (TAPS - 1) * WIDTH +: WIDTH] = on_map ? here[WIDTH-1:0] & lanes_there | beside & ~lanes_there : beside;
`ifdef TWO_LINES
  assign window[(TAPS - 1) * WIDTH +: WIDTH] = on_map & line_above ? here[PLACE-1:WIDTH] : beside;
`endif
  wire [TAPS-2:0] there;
  genvar k;
  for (k = 1; k < TAPS; k = k + 1) begin
    assign there[k-1] = place >= k & place - k <= positions_minus_1;
    assign window[LINE + (TAPS - 1 - k) * WIDTH +: WIDTH] =
        there[k-1] & taps_before[k-1] ? before[(k - 1) * PLACE +: WIDTH] & lanes_there | beside & ~lanes_there : beside;
`ifdef TWO_LINES
    assign window[(TAPS - 1 - k) * WIDTH +: WIDTH] =
        there[k-1] & taps_before[k-1] & line_above ? before[(k - 1) * PLACE + WIDTH +: WIDTH] : beside;
`endif
  end

  always @* if (running) begin
    each_window_once: assert (out_valid == (work & complete & (~on_map | in_valid)));
    each_word_once: assert (in_ready == (work & on_map & (~complete | out_ready)));
    if (out_valid) taps_of_the_window: assert (out_data == window);
    layer_after_layer: assert (\dut.layer_upcoming == number);
    all_taps: cover (out_valid & word & &(there & taps_before) & on_map);
    beside_the_map: cover (out_valid & ~on_map & place != 0);
`ifdef KEEPS
    both_lines: cover (out_valid & keeps & line_above & &(there & taps_before) & on_map);
    line_without_windows: cover (step & ~line_completes & line == 1);
`endif
    window_after_window: cover (step & complete & stride_minus_1 == 0 & ~line_ends);
    second_line: cover (work & line == 1 & out_valid);
    second_layer: cover (number == 0 & work & out_valid & last == 1);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.loaded , \dut.starts , \dut.on_map , \dut.beside_map , \dut.hit_last , \dut.word , \dut.steps_last , \dut.positions_last ;
  (* hierconn *) wire \dut.tuple_ends , \dut.line_ends , \dut.layer_ends ;
  wire last_place = place == steps_minus_1 & word == words_minus_1;
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
`ifdef KEEPS
  (* hierconn *) wire [4:0] \dut.line_hit_left , \dut.layer_line_stride_minus_1 ;
`ifdef SHARED
  (* hierconn *) wire \dut.layer_shares_lanes ;
`endif
  (* hierconn *) wire \dut.line_hit_last , \dut.layer_lines_before , \dut.above_1 ;
  (* hierconn *) wire [1:0] \dut.place ;
  (* keep *) wire [1:0] at_0 = 0, at_1 = 1, at_2 = 2, at_3 = 3;
  (* keep *) wire [PART-1:0] kept_0 = above_0, kept_1 = above_1, kept_2 = above_2, kept_3 = above_3;
  (* keep *) wire kept_is_0 = has_above[0], kept_is_1 = has_above[1], kept_is_2 = has_above[2], kept_is_3 = has_above[3];
  integer n;
`endif
  (* keep *) wire row_0 = 0, row_1 = 1;
  (* keep *) wire [KEPT-1:0] word_0 = before_0, word_1 = before_1;
  (* keep *) wire written_0 = has_0, written_1 = has_1;
  always @* if (running) begin
    assert (\dut.loaded == work & \dut.word == word);
    assert (\dut.starts == ~\dut.loaded & \dut.beside_map == ~\dut.on_map );
    if (~work) assert (word == 0);
`ifdef KEEPS
    assert (\dut.place == at);
    if (~work) assert (at == 0);
`endif
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
    assert (\dut.hit_left == ahead & \dut.hit_last == column_completes);
    assert (\dut.on_map == on_map);
    assert ({\dut.tuple_ends , \dut.line_ends } == {word == words_minus_1, last_place});
    assert (\dut.layer_ends == (last_place & line == lines_minus_1));
    if (on_map) assert (\dut.positions_left == positions_minus_1 - place & \dut.positions_last == (place == positions_minus_1));
    assert (\dut.before_1 == there[0]);
`ifdef LOWEST
    assert (\dut.layer_lowest == lowest & \dut.before_2 == there[1]);
`endif
`ifdef KEEPS
    assert (\dut.layer_line_stride_minus_1 == line_stride_minus_1 & \dut.layer_lines_before == lines_before);
    assert (\dut.line_hit_left == line_ahead & \dut.line_hit_last == line_completes);
    assert (\dut.above_1 == second);
`ifdef SHARED
    assert (\dut.layer_shares_lanes == keeps);
`endif
    assert (~keeps | positions_minus_1 <= (words_minus_1 ? 1 : 3));
    if (~keeps) assert (at == 0);
    if (keeps & on_map) assert (at == (words_minus_1 ? {place[0], word} : place[1:0]));
    for (n = 0; n < 4; n = n + 1)
      if (keeps & n < (second ? (positions_minus_1 + 1) << words_minus_1 : on_map ? at : (positions_minus_1 + 1) << words_minus_1))
        assert (has_above[n]);
`endif
    if (place != 0) assert (has_0 & (has_1 | ~words_minus_1));
    if (word) assert (has_0);
  end
`endif
endmodule
