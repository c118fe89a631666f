// FIFO: hls_gen/rtl/primitives/fifo.py
module proof (
    input clk, input rst, input in_valid, input [`WIDTH-1:0] in_data, input out_ready, input watch
);
  localparam ROW = `DEPTH > 1 ? $clog2(`DEPTH) : 1, LEVEL = $clog2(`DEPTH + 1);
  wire in_ready, out_valid, room, running;
  wire [`WIDTH-1:0] out_data;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH)) source (.valid(in_valid), .ready(in_ready), .word(in_data), .*);
  keeps_word #(.WIDTH(`WIDTH)) sink (.valid(out_valid), .ready(out_ready), .word(out_data), .*);

  wire [$clog2(`DEPTH + 3)-1:0] inside, ahead;
  wire watching;
  wire [`WIDTH-1:0] word;
  in_order #(.WIDTH(`WIDTH), .MOST(`DEPTH + 1)) order (
      .in_taken(in_valid & in_ready), .in_word(in_data), .out_taken(out_valid & out_ready), .out_word(out_data), .*);

  // No deadlock: what is inside is offered, and whoever leaves a place free is taken from, both within two cycles.
  soon #(.WITHIN(1)) offers (.waits(inside != 0 & ~out_valid), .*);
  soon #(.WITHIN(2)) takes (.waits(inside < `DEPTH - `BLOCK_RAM & ~in_ready), .*);

  // `room`: the next MARGIN words are taken at once.
  reg [7:0] left = 0;
  wire [7:0] promised = room ? `MARGIN : left;
  always @(posedge clk) left <= rst ? 0 : promised - (in_valid & promised != 0);
  always @* if (running) begin
    room_is_kept: assert (promised == 0 | in_ready);
    if (`DEPTH < 17) begin  // in deeper ones this takes more cycles than a proof looks at
      no_room: cover (~room);
      promise_used_up: cover (~room & promised == 0 & inside > 1);
    end
  end

`ifdef INVARIANTS
  (* hierconn *) wire [LEVEL-1:0] \dut.level ;
  (* hierconn *) wire \dut.some ;
  (* hierconn *) wire [ROW-1:0] \dut.write_row , \dut.read_row ;
  wire [LEVEL-1:0] level = \dut.level ;
  wire [ROW-1:0] write_row = \dut.write_row , read_row = \dut.read_row ;
  wire [ROW:0] wrapped = read_row + level, watched = read_row + ahead - out_valid;
  (* keep *) wire in_memory = running & watching & ahead >= out_valid;
  (* keep *) wire [ROW-1:0] memory_row = watched >= `DEPTH ? watched - `DEPTH : watched;
  always @* if (running) begin
    assert (level <= `DEPTH);
    assert (\dut.some == (level != 0));
    assert (inside == level + out_valid);
    assert (read_row < `DEPTH);
    assert (write_row == (wrapped >= `DEPTH ? wrapped - `DEPTH : wrapped));
    if (`BLOCK_RAM == 0) assert (in_ready == (level != `DEPTH));
    assert (promised == 0 | promised + level <= `DEPTH - `BLOCK_RAM);
  end
`endif
endmodule
