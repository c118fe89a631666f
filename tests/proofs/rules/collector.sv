// Collector: hls_gen/rtl/primitives/gearbox.py
`define OUT (`IN * `COUNT)
module proof (
    input clk, input rst, input in_valid, input [`IN-1:0] in_data, input in_last, input [`SIDE-1:0] in_side,
    input out_ready, input watch
);
  wire in_ready, out_valid, out_last, running;
  wire [`OUT-1:0] out_data;
  wire [`SIDE-1:0] out_side;
  `DUT dut (.*);

  localparam MARKS = 1 + $bits(in_side);
  wire [MARKS-1:0] in_marks = {in_side, in_last}, out_marks = {out_side, out_last};
  given_reset given_reset (.*);
  given_source #(.WIDTH(`IN + MARKS)) source (
      .valid(in_valid), .ready(in_ready), .word({in_marks, in_data}), .*);
  keeps_word #(.WIDTH(`OUT + MARKS)) sink (
      .valid(out_valid), .ready(out_ready), .word({out_marks, out_data}), .*);

  // What must be at the output: one collection of COUNT words, or fewer up to a word with `last`.
  reg [7:0] words = 0;  // of the collection that is whole, or of the one that has begun
  reg whole = 0;
  reg [MARKS-1:0] marks;  // of the newest word
  wire take = in_valid & in_ready, give = out_valid & out_ready;
  wire [7:0] place = whole ? 0 : words;  // of the word that comes
  always @(posedge clk) begin
    if (give) begin
      whole <= 0;
      words <= 0;
    end
    if (take) begin
      whole <= in_last | place == `COUNT - 1;
      words <= place + 1;
      marks <= in_marks;
    end
    if (rst) begin
      whole <= 0;
      words <= 0;
    end
  end

  // A word that the solver picks, and its place.
  reg watching = 0;
  reg [7:0] watched;
  reg [`IN-1:0] word;
  always @(posedge clk) begin
    if (give) watching <= 0;
    if (take & watch) begin
      watching <= 1;
      watched <= place;
      word <= in_data;
    end
    if (rst) watching <= 0;
  end
  localparam WIDE = 2 * `OUT;
  wire [WIDE-1:0] ones = {`IN{1'b1}};
  wire [WIDE-1:0] mask = ones << (watched * `IN), expected = word << (watched * `IN);
  wire same = ((out_data ^ expected) & mask[`OUT-1:0]) == 0;
  wire empty_above = (out_data >> (words * `IN)) == 0;

  always @* if (running) begin
    each_collection_once: assert (out_valid == whole);
    never_blocked: assert (in_ready | whole & ~out_ready);
    if (whole & watching) word_in_its_place: assert (same);
    if (whole) nothing_from_nothing: assert (empty_above);
    if (whole) last_and_side_of_the_newest: assert (out_marks == marks);
    in_last_place: cover (whole & watching & watched == `COUNT - 1);
    if (`COUNT > 1) ends_early: cover (whole & words < `COUNT);
    one_after_another: cover (give & take);
  end

`ifdef INVARIANTS
`ifdef SEVERAL
  (* hierconn *) wire \dut.begins ;
  always @* if (running) assert (\dut.begins == (place == 0));
`endif
`ifdef PLACES
  (* hierconn *) wire [`COUNT-2:0] \dut.at_place ;
  always @* if (running) assert (\dut.at_place == 1 << (place == 0 ? 0 : place - 1));
`endif
  always @* if (running) begin
    assert (words <= `COUNT);
    assert (whole | words < `COUNT);
    assert (~whole | words != 0);
    if (watching) assert (same & watched < words);
    if (words != 0) assert ((out_data >> ((whole ? words : words + 1) * `IN)) == 0);  // in the next place is what came without a word
  end
`endif
endmodule
