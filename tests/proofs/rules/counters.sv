// Counters, five of them in eight rows: hls_gen/rtl/primitives/counters.py
module proof (input clk, input rst, input [4:0] pulses, input clear, input reading);
  localparam ROWS = 8;
  (* anyconst *) reg [2:0] mine;  // the counter that the rules speak of
  wire [7:0] address = `FIRST_ADDRESS + 4 * mine;
  reg [7:0] read_address;
  wire done, running;
  wire [31:0] value;
  `DUT dut (.*);
  given_reset given_reset (.*);
  always @* assume (mine < 5);

  // Whoever reads holds the address, waits for `done` and reads nothing in the cycle after.
  reg reads = 0, was_done = 0;
  (* anyseq *) wire [2:0] other;
  always @(posedge clk) begin
    reads <= reading & ~done & ~rst;
    was_done <= done & ~rst;
    if (~(reading & ~done)) read_address <= `FIRST_ADDRESS + 4 * other;
  end
  always @* begin
    assume (~reads | reading | rst);
    assume (~was_done | ~reading);
    assume (read_address[1:0] == 0 & read_address >= `FIRST_ADDRESS & read_address < `FIRST_ADDRESS + 20);
  end

  // Pulses since `clear`, up to two cycles before, and up to the one before that.
  reg came = 0;
  reg [31:0] count = 0, count_before = 0;
  always @(posedge clk) begin
    came <= ~rst & ~clear & pulses[mine];
    count <= rst | clear ? 0 : count + came;
    count_before <= rst | clear ? 0 : count;
  end

  soon #(.WITHIN(ROWS)) answers (.waits(reading & ~done), .*);
  always @* if (running) begin
    if (done) asked_before: assert (reads & reading);
    if (done & read_address == address) every_pulse_once: assert (value == count_before);
    counts: cover (done & read_address == address & value == 3);
    counts_from_clear: cover (reads & done & read_address == address & value == 1 & count_before != count);
  end

`ifdef INVARIANTS
  (* hierconn *) wire [3:0] \dut.small_0 , \dut.small_1 , \dut.small_2 , \dut.small_3 , \dut.small_4 ;
  (* hierconn *) wire \dut.pulse_0 , \dut.pulse_1 , \dut.pulse_2 , \dut.pulse_3 , \dut.pulse_4 ;
  (* hierconn *) wire [3:0] \dut.picked , \dut.fresh_turns ;
  (* hierconn *) wire [2:0] \dut.turn , \dut.count_row ;
  (* hierconn *) wire \dut.is_read , \dut.is_fresh ;
  (* hierconn *) wire [31:0] \dut.count_old ;
  wire [3:0] small = mine == 0 ? \dut.small_0 : mine == 1 ? \dut.small_1 : mine == 2 ? \dut.small_2
                   : mine == 3 ? \dut.small_3 : \dut.small_4 ;
  wire [4:0] pulses_came = { \dut.pulse_4 , \dut.pulse_3 , \dut.pulse_2 , \dut.pulse_1 , \dut.pulse_0 };
  wire [2:0] turns_left = mine - \dut.count_row , since = \dut.turn - mine - 3'd1;
  wire stale = turns_left < \dut.fresh_turns ;  // what the memory holds is from before `clear`
  wire mine_now = \dut.count_row == mine;
  wire [31:0] on_the_way = small + (mine_now ? \dut.picked : 0);
  (* keep *) wire in_memory = running & ~stale;
  (* keep *) wire [2:0] memory_row = mine;
  (* keep *) wire [31:0] word = count - on_the_way;
  reg first = 1;  // the cycle after reset: nothing was picked yet
  reg [7:0] address_before;
  always @(posedge clk) {first, address_before} <= {rst, read_address};
  always @* if (running) begin
    assert (small <= since + 4'd1);
    assert (pulses_came[mine] == came);
    if (mine_now) assert (\dut.picked <= ROWS);
    assert (\dut.fresh_turns <= ROWS + 1);
    if (first) assert (\dut.turn == 0 & \dut.count_row == 0 & \dut.fresh_turns == ROWS + 1 & ~\dut.is_read );
    if (first) assert (count == 0 & count_before == 0 & small == 0 & \dut.picked == 0);
    if (~first) assert (\dut.count_row == \dut.turn - 3'd1 & \dut.fresh_turns <= ROWS);
    if (~first & address_before == address) assert (\dut.is_read == mine_now);
    if (stale) assert (count == on_the_way);
    assert (\dut.is_fresh == (\dut.fresh_turns != 0));
    if (mine_now & ~stale) assert (\dut.count_old == word);
    if (mine_now & ~first) assert (count_before == count - small);
  end
`endif
endmodule
