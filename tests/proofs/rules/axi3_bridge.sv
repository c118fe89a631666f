// Bridge from AXI3 to AXI4-Lite: hls_gen/rtl/dma/axi3_bridge.py
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  localparam DMA = 20'h40400, DEVICE = 20'h43C00, OKAY = 0, SLVERR = 2, DECERR = 3;
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(50)) aw (.valid(s_axi3_awvalid), .ready(s_axi3_awready),
      .word({s_axi3_awid, s_axi3_awaddr, s_axi3_awlen, s_axi3_awburst}), .*);
  given_source #(.WIDTH(36)) w (.valid(s_axi3_wvalid), .ready(s_axi3_wready), .word({s_axi3_wdata, s_axi3_wstrb}), .*);
  given_source #(.WIDTH(50)) ar (.valid(s_axi3_arvalid), .ready(s_axi3_arready),
      .word({s_axi3_arid, s_axi3_araddr, s_axi3_arlen, s_axi3_arburst}), .*);
  keeps_word #(.WIDTH(14)) b (.valid(s_axi3_bvalid), .ready(s_axi3_bready), .word({s_axi3_bid, s_axi3_bresp}), .*);
  keeps_word #(.WIDTH(47)) r (.valid(s_axi3_rvalid), .ready(s_axi3_rready),
      .word({s_axi3_rid, s_axi3_rdata, s_axi3_rresp, s_axi3_rlast}), .*);

  // The burst that is written: words left, the word at hand, and what its core has of it.
  reg writing = 0, word = 0, has_address = 0, has_data = 0, up;
  reg [11:0] id;
  reg [31:0] place, data;
  reg [3:0] left, strobe;
  reg [1:0] worst;
  wire at_dma = up & place[31:12] == DMA, at_device = up & place[31:12] == DEVICE;
  wire nowhere = ~at_dma & ~at_device;
  wire aw_given = dma_awvalid & dma_awready | device_awvalid & device_awready;
  wire w_given = dma_wvalid & dma_wready | device_wvalid & device_wready;
  wire b_came = dma_bvalid & dma_bready | device_bvalid & device_bready;
  wire [1:0] answer = ~up ? SLVERR : nowhere ? DECERR : at_dma ? dma_bresp : device_bresp;
  wire answered = word & (nowhere | b_came);
  reg due = 0;  // an answer to the burst
  always @(posedge clk) begin
    if (s_axi3_awvalid & s_axi3_awready) begin
      {writing, id, place, left, up, worst} <= {1'b1, s_axi3_awid, s_axi3_awaddr, s_axi3_awlen, s_axi3_awburst == 2'd1, 2'd0};
    end
    if (s_axi3_wvalid & s_axi3_wready) {word, data, strobe, has_address, has_data} <= {1'b1, s_axi3_wdata, s_axi3_wstrb, 2'd0};
    if (aw_given) has_address <= 1;
    if (w_given) has_data <= 1;
    if (answered) begin
      word <= 0;
      worst <= worst | answer;
      left <= left - 1;
      place <= place + 4;
      if (left == 0) {writing, due} <= 2'b01;
    end
    if (due & s_axi3_bvalid & s_axi3_bready) due <= 0;
    if (rst) {writing, word, due} <= 0;
  end
  given_source #(.WIDTH(2)) dma_b (.valid(dma_bvalid), .ready(dma_bready), .word(dma_bresp), .*);
  given_source #(.WIDTH(2)) device_b (.valid(device_bvalid), .ready(device_bready), .word(device_bresp), .*);
  always @* begin  // a core answers what it has alone
    assume (~dma_bvalid | word & at_dma & has_address & has_data);
    assume (~device_bvalid | word & at_device & has_address & has_data);
  end

  // The burst that is read.
  reg reading = 0, asked = 0, read_up, value_there = 0;
  reg [11:0] read_id;
  reg [31:0] read_place, value;
  reg [3:0] read_left;
  reg [1:0] value_answer;
  wire from_dma = read_up & read_place[31:12] == DMA, from_device = read_up & read_place[31:12] == DEVICE;
  wire ar_given = dma_arvalid & dma_arready | device_arvalid & device_arready;
  wire r_came = dma_rvalid & dma_rready | device_rvalid & device_rready;
  wire given = s_axi3_rvalid & s_axi3_rready;
  always @(posedge clk) begin
    if (s_axi3_arvalid & s_axi3_arready) begin
      {reading, read_id, read_place, read_left, read_up} <= {1'b1, s_axi3_arid, s_axi3_araddr, s_axi3_arlen, s_axi3_arburst == 2'd1};
    end
    if (ar_given) asked <= 1;
    if (r_came) {asked, value_there, value, value_answer} <= {2'b01, from_dma ? {dma_rdata, dma_rresp} : {device_rdata, device_rresp}};
    if (given) begin
      value_there <= 0;
      read_left <= read_left - 1;
      read_place <= read_place + 4;
      if (read_left == 0) reading <= 0;
    end
    if (rst) {reading, asked, value_there} <= 0;
  end
  given_source #(.WIDTH(34)) dma_r (.valid(dma_rvalid), .ready(dma_rready), .word({dma_rdata, dma_rresp}), .*);
  given_source #(.WIDTH(34)) device_r (.valid(device_rvalid), .ready(device_rready), .word({device_rdata, device_rresp}), .*);
  always @* begin
    assume (~dma_rvalid | asked & from_dma);
    assume (~device_rvalid | asked & from_device);
  end

  soon #(.WITHIN(1)) refusal (.waits(reading & ~from_dma & ~from_device & ~s_axi3_rvalid), .*);
  always @* if (running) begin
    to_its_core: assert ((dma_awvalid | dma_wvalid) <= (word & at_dma) & (device_awvalid | device_wvalid) <= (word & at_device));
    once_each: assert ((dma_awvalid | device_awvalid) == (word & ~nowhere & ~has_address)
        & (dma_wvalid | device_wvalid) == (word & ~nowhere & ~has_data));
    if (dma_awvalid) dma_place: assert (dma_awaddr == place[11:0]);
    if (device_awvalid) device_place: assert (device_awaddr == place[11:0]);
    if (dma_wvalid) dma_word: assert ({dma_wdata, dma_wstrb} == {data, strobe});
    if (device_wvalid) device_word: assert ({device_wdata, device_wstrb} == {data, strobe});
    words_of_a_burst: assert (s_axi3_wready == (writing & ~word));
    one_burst_written: assert (s_axi3_awready == (~writing & ~due));
    answered_at_its_end: assert (s_axi3_bvalid == due);
    if (due) worst_answer: assert ({s_axi3_bid, s_axi3_bresp} == {id, worst});
    asked_of_its_core: assert (dma_arvalid == (reading & from_dma & ~asked & ~value_there)
        & device_arvalid == (reading & from_device & ~asked & ~value_there));
    if (dma_arvalid) dma_read_place: assert (dma_araddr == read_place[11:0]);
    if (device_arvalid) device_read_place: assert (device_araddr == read_place[11:0]);
    one_burst_read: assert (s_axi3_arready == ~reading);
    if (s_axi3_rvalid) begin
      word_of_its_core: assert (reading & (from_dma | from_device) <= value_there);
      if (value_there) as_it_was_read: assert ({s_axi3_rdata, s_axi3_rresp} == {value, value_answer});
      else refused: assert (s_axi3_rresp == (read_up ? DECERR : SLVERR));
      of_its_burst: assert (s_axi3_rid == read_id & s_axi3_rlast == (read_left == 0));
    end
    if (value_there) goes_on: assert (s_axi3_rvalid);
    two_words_written: cover (due & worst == 0 & place[3:2] == 2);
    error_of_one: cover (due & worst == SLVERR & up);
    nobody_there: cover (due & worst == DECERR);
    two_words_read: cover (given & read_left == 0 & value_there & read_place[2]);
    wrapping_refused: cover (given & ~read_up);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.write_busy , \dut.word_there , \dut.address_sent , \dut.data_sent , \dut.write_counts ;
  (* hierconn *) wire \dut.read_busy , \dut.asked , \dut.read_counts ;
  (* hierconn *) wire [11:0] \dut.write_id , \dut.read_id ;
  (* hierconn *) wire [31:0] \dut.write_place , \dut.read_place ;
  (* hierconn *) wire [3:0] \dut.write_left , \dut.read_left ;
  always @* if (running) begin
    assert (\dut.write_busy == writing & \dut.word_there == word & word <= writing & ~(writing & due));
    if (word) assert (\dut.address_sent == has_address & \dut.data_sent == has_data);
    if (writing) begin
      assert ({ \dut.write_place , \dut.write_left , \dut.write_counts } == {place, left, up});
      assert (s_axi3_bresp == worst);
    end
    if (writing | due) assert (\dut.write_id == id);
    assert (\dut.read_busy == reading & \dut.asked == asked & asked <= (reading & ~s_axi3_rvalid));
    if (reading) assert ({ \dut.read_place , \dut.read_left , \dut.read_counts , \dut.read_id } == {read_place, read_left, read_up, read_id});
    assert ((s_axi3_rvalid | value_there) <= reading);
    if (asked) assert (from_dma | from_device);
    if (value_there) assert (from_dma | from_device);
  end
`endif
endmodule
