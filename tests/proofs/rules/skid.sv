// Skid register: hls_gen/rtl/primitives/skid.py
module proof (
    input clk, input rst, input in_valid, input [`IN-1:0] in_data, input in_last, input [`SIDE-1:0] in_side,
    input out_ready
);
  wire in_ready, in_ready_next, out_valid, out_last, running;
  wire [`IN-1:0] out_data;
  wire [`SIDE-1:0] out_side;
  `DUT dut (.*);

  localparam WIDTH = `IN + 1 + $bits(in_side);
  wire [WIDTH-1:0] in_word = {in_side, in_last, in_data}, out_word = {out_side, out_last, out_data};
  given_reset given_reset (.*);
  given_source #(.WIDTH(WIDTH)) source (.valid(in_valid), .ready(in_ready), .word(in_word), .*);
  keeps_word #(.WIDTH(WIDTH)) sink (.valid(out_valid), .ready(out_ready), .word(out_word), .*);

  // A word that was taken and has not left.
  reg waits = 0, ready_said = 1;
  reg [WIDTH-1:0] waiting;
  wire take = in_valid & in_ready, give = out_valid & out_ready;
  always @(posedge clk) begin
    if (take & ~give) waiting <= in_word;
    waits <= ~rst & (waits | take) & ~give;
    ready_said <= rst | in_ready_next;
  end
  always @* if (running) begin
    each_word_once: assert (out_valid == (waits | in_valid));
    if (out_valid) same_word: assert (out_word == (waits ? waiting : in_word));
    ready_is_a_register: assert (in_ready == ~waits);
    ready_is_said_ahead: assert (in_ready == ready_said);
    goes_through: cover (take & give);
    waits_aside: cover (waits & in_valid);
    leaves: cover (waits & give);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.full ;
  always @* if (running) assert (\dut.full == waits);
`endif
endmodule
