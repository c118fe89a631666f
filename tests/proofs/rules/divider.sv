// Divider: hls_gen/rtl/primitives/gearbox.py
module proof (
    input clk, input rst, input in_valid, input [`IN-1:0] in_data, input in_last,
`ifdef SIDE
    input [`SIDE-1:0] in_side,
`endif
`ifdef LAST_PIECE_BITS
    input [`LAST_PIECE_BITS-1:0] in_last_piece,
`endif
    input out_ready
);
  wire in_ready, out_valid, out_last, running;
  wire [`OUT-1:0] out_data;
`ifdef SIDE
  wire [`SIDE-1:0] out_side;
`else
  wire in_side = 0, out_side = 0;
`endif
`ifdef LAST_PIECE_BITS
  wire [7:0] pieces_in = in_last ? in_last_piece + 1 : `PIECES;
  localparam LEFT = `LAST_PIECE_BITS;
`else
  wire [7:0] pieces_in = `PIECES;
  localparam LEFT = `PIECES > 2 ? $clog2(`PIECES) : 1;
`endif
  `DUT dut (.*);

  localparam SIDE_BITS = $bits(in_side);
  given_reset given_reset (.*);
  given_source #(.WIDTH(`IN + SIDE_BITS + 9)) source (
      .valid(in_valid), .ready(in_ready), .word({pieces_in, in_side, in_last, in_data}), .*);
  keeps_word #(.WIDTH(`OUT + SIDE_BITS + 1)) sink (
      .valid(out_valid), .ready(out_ready), .word({out_side, out_last, out_data}), .*);

`ifdef LAST_PIECE_BITS
  always @* if (in_valid & in_last) assume (in_last_piece < `PIECES);
`endif

  // The word whose pieces leave, and how many have left.
  reg busy = 0, last;
  reg [`IN-1:0] word;
  reg [SIDE_BITS-1:0] side;
  reg [7:0] pieces, given;
  wire take = in_valid & in_ready, give = out_valid & out_ready;
  wire final_piece = given == pieces - 1;
  always @(posedge clk) begin
    if (give) begin
      given <= given + 1;
      busy <= ~final_piece;
    end
    if (take) begin
      busy <= 1;
      {word, side, last, pieces, given} <= {in_data, in_side, in_last, pieces_in, 8'd0};
    end
    if (rst) busy <= 0;
  end
  wire [`IN+`OUT-1:0] rest = word >> (given * `OUT);

  always @* if (running) begin
    each_piece_once: assert (out_valid == busy);
    if (take) word_after_word: assert (~busy | give & final_piece);
    never_blocked: assert (in_ready | busy & ~(out_ready & final_piece));
    if (busy) begin
      piece_in_its_turn: assert (out_data == rest[`OUT-1:0]);
      last_with_the_final_piece: assert (out_last == (last & final_piece));
      side_with_every_piece: assert (out_side == side);
    end
    goes_through: cover (busy & last & final_piece & given == `PIECES - 1 & word != 0);
    one_after_another: cover (give & take);
`ifdef LAST_PIECE_BITS
    if (`PIECES > 1) shorter_word: cover (give & final_piece & pieces < `PIECES);
`endif
  end

`ifdef INVARIANTS
  (* hierconn *) wire [LEFT-1:0] \dut.left ;
  (* hierconn *) wire [`IN-1:0] \dut.rest ;
  (* hierconn *) wire \dut.is_last , \dut.at_end ;
  always @* if (running & busy) begin
    assert (given < pieces & pieces <= `PIECES);
    assert (\dut.left == pieces - 1 - given);
    assert (\dut.rest == word >> (given * `OUT));
    assert (\dut.is_last == last & \dut.at_end == (\dut.left == 0));
  end
  always @* if (running & ~busy) assert (\dut.left == 0);
`endif
endmodule
