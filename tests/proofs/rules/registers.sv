// Register block: hls_gen/rtl/shell/registers.py
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  localparam OKAY = 0, SLVERR = 2;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(12)) aw (.valid(s_axi_awvalid), .ready(s_axi_awready), .word(s_axi_awaddr), .*);
  given_source #(.WIDTH(36)) w (.valid(s_axi_wvalid), .ready(s_axi_wready), .word({s_axi_wstrb, s_axi_wdata}), .*);
  given_source #(.WIDTH(12)) ar (.valid(s_axi_arvalid), .ready(s_axi_arready), .word(s_axi_araddr), .*);
  keeps_word #(.WIDTH(2)) b (.valid(s_axi_bvalid), .ready(s_axi_bready), .word(s_axi_bresp), .*);
  keeps_word #(.WIDTH(34)) r (.valid(s_axi_rvalid), .ready(s_axi_rready), .word({s_axi_rresp, s_axi_rdata}), .*);

  // Reads: one at a time, of any address, in any state.
  reg reads = 0;
  reg [11:0] address;
  wire ar_taken = s_axi_arvalid & s_axi_arready, r_taken = s_axi_rvalid & s_axi_rready;
  wire unaligned = address[1:0] != 0;
  always @(posedge clk) begin
    reads <= ~rst & (ar_taken | reads & ~r_taken);
    if (ar_taken) address <= s_axi_araddr;
  end
  soon #(.WITHIN(`ROWS + 2)) read_answer (.waits(reads & ~s_axi_rvalid), .*);
  always @* if (running) begin
    one_answer_a_read: assert (~s_axi_rvalid | reads);
    one_read_at_a_time: assert (reads != s_axi_arready);
    if (s_axi_rvalid) unaligned_read_refused: assert (s_axi_rresp == (unaligned ? SLVERR : OKAY));
    if (s_axi_rvalid & (unaligned | address >= `END)) nothing_there: assert (s_axi_rdata == 0);
    if (s_axi_rvalid & address == 0) ident: assert (s_axi_rdata == `IDENT);
    counter_is_read: cover (r_taken & address == `LAST_COUNTER & s_axi_rdata == 2);
    unaligned_read: cover (r_taken & address == `LAST_COUNTER + 1);
    two_reads: cover (r_taken & address == 12'hffc & s_axi_arvalid);
  end

  // Writes: address and data in any order, at most two under way.
  reg [1:0] addresses = 0, datas = 0;
  reg [11:0] address_0, address_1;
  reg [3:0] strobe_0, strobe_1;
  reg [31:0] data_0, data_1;
  wire aw_taken = s_axi_awvalid & s_axi_awready, w_taken = s_axi_wvalid & s_axi_wready;
  wire b_taken = s_axi_bvalid & s_axi_bready;
  always @(posedge clk) begin
    addresses <= rst ? 0 : addresses + aw_taken - b_taken;
    datas <= rst ? 0 : datas + w_taken - b_taken;
    if (b_taken) {address_0, strobe_0, data_0} <= {address_1, strobe_1, data_1};
    if (aw_taken & addresses == b_taken) address_0 <= s_axi_awaddr;
    if (aw_taken & addresses != b_taken) address_1 <= s_axi_awaddr;
    if (w_taken & datas == b_taken) {strobe_0, data_0} <= {s_axi_wstrb, s_axi_wdata};
    if (w_taken & datas != b_taken) {strobe_1, data_1} <= {s_axi_wstrb, s_axi_wdata};
  end
  reg start_before = 0, answers = 0;
  reg [11:0] last_address;  // of the write that was answered a cycle ago
  reg [31:0] last_data;
  reg last_refused;
  always @(posedge clk) begin
    start_before <= start & ~rst;
    answers <= s_axi_bvalid & ~rst;
    {last_address, last_data, last_refused} <= {address_0, data_0, refused};
  end
  wire refused = strobe_0 != 4'b1111 | address_0[1:0] != 0;
  soon #(.WITHIN(1)) write_answer (.waits(addresses != 0 & datas != 0 & ~s_axi_bvalid), .*);
  soon #(.WITHIN(1)) takes_address (.waits(addresses == 0 & ~s_axi_awready), .*);
  soon #(.WITHIN(1)) takes_data (.waits(datas == 0 & ~s_axi_wready), .*);
  always @* if (running) begin
    one_answer_a_write: assert (~s_axi_bvalid | addresses != 0 & datas != 0);
    two_at_most: assert (addresses <= 2 & datas <= 2);
    if (s_axi_bvalid) write_refused: assert (s_axi_bresp == (refused ? SLVERR : OKAY));
    if (start != start_before | soft_reset) control_alone: assert (  // a write acts as its answer is there
        answers & ~last_refused & last_address == `CONTROL & last_data[1:0] == {soft_reset, start});
    two_writes: cover (b_taken & addresses == 2 & datas == 2);
    data_first: cover (addresses == 0 & datas == 1);
    unaligned_write: cover (b_taken & address_0 == `CONTROL + 2 & strobe_0 == 4'b1111 & data_0[0]);
    soft_resets: cover (soft_reset & start);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.have_address , \dut.have_data , \dut.decoding , \dut.reading , \dut.waited ;
  (* hierconn *) wire \dut.reads_counter , \dut.reads_ident ;
  (* hierconn *) wire [11:0] \dut.read_address , \dut.write_address ;
  (* hierconn *) wire \dut.is_read ;
  (* hierconn *) wire [3:0] \dut.write_strobe ;
  (* hierconn *) wire [31:0] \dut.write_data ;
  (* hierconn *) wire [$clog2(`ROWS)-1:0] \dut.turn , \dut.count_row ;
  // Number of the counter at an address, as the counters' turns have it: those of the design, then those of each NPU.
  wire [5:0] npu = address[11:6] - 6'd4;
  wire of_npus = npu < `NPUS, of_npu = of_npus & address[5:4] == 1;
  wire is_counter = ~unaligned & (address[11:4] == 5 | of_npu);
  wire [$clog2(`ROWS)-1:0] number = of_npus ? 4 + 4 * npu + address[3:2] : address[3:2];
  wire [$clog2(`ROWS)-1:0] turns_left = number - \dut.count_row ;
  (* hierconn *) wire [7:0] \read_answer.cycles ;
  wire [7:0] waited = \read_answer.cycles ;  // cycles that the read has waited
  reg first = 1;  // the cycle after reset
  always @(posedge clk) first <= rst;
  always @* if (running) begin
    assert (addresses == \dut.have_address + s_axi_bvalid);
    assert (datas == \dut.have_data + s_axi_bvalid);
    assert (reads == \dut.decoding + \dut.reading + s_axi_rvalid);
    if (reads) assert (\dut.read_address == address);
    if (\dut.have_address ) assert (\dut.write_address == (s_axi_bvalid ? address_1 : address_0));
    if (\dut.have_data ) assert ({ \dut.write_strobe , \dut.write_data } ==
                                 (s_axi_bvalid ? {strobe_1, data_1} : {strobe_0, data_0}));
    if (first) assert (~reads);
    if (~first) assert (\dut.count_row == \dut.turn - 1'b1);
    if (\dut.decoding ) assert (waited == 0);
    if (\dut.reading ) assert (waited != 0 & \dut.waited == (waited != 1) & \dut.reads_counter == is_counter);
    if (\dut.reading & ~is_counter) assert (waited == 1);
    if (\dut.reading & is_counter & turns_left == 0) assert (\dut.is_read );
    if (\dut.reading & is_counter & waited > 1) assert (waited + turns_left <= `ROWS + 1);
  end
`endif
endmodule
