// Top of a design on a Zynq-7000, with the processing system as the primitive PS7: the clock and the reset that it gives,
// registers at M_AXI_GP0, memory at S_AXI_HP0, interrupts at IRQF2P 0 to 2 (MM2S, S2MM, the device).
//
// The boot loader sets up PS7, its clocks and its pins: DDR and MIO are no pins of the programmable logic. Inputs of PS7
// that are not connected keep the values that a blank configuration gives them.
module zynq_top;
  wire [3:0] fclk, fclk_reset_n;
  wire clk;
  BUFG clock_buffer (.I(fclk[0]), .O(clk));

  // The processor's reset comes at any time, and ends with the clock.
  reg [1:0] in_reset = 2'b11;
  always @(posedge clk or negedge fclk_reset_n[0])
    if (!fclk_reset_n[0]) in_reset <= 2'b11;
    else in_reset <= {in_reset[0], 1'b0};
  reg rst = 1'b1;
  always @(posedge clk) rst <= in_reset[1];

  wire [11:0] awid, bid, arid, rid;
  wire [31:0] awaddr, wdata, araddr, rdata;
  wire [3:0] awlen, arlen, wstrb;
  wire [1:0] awburst, arburst, bresp, rresp;
  wire awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready, rlast;

  wire [31:0] read_addr, write_addr;
  wire [3:0] read_len, write_len, read_cache, write_cache;
  wire [2:0] read_prot, write_prot;
  wire [1:0] read_size, write_size, read_burst, write_burst, read_resp, write_resp;
  wire [63:0] read_data, write_data;
  wire [7:0] write_strb;
  wire read_asks, read_taken, read_valid, read_ready, read_last;
  wire write_asks, write_taken, write_valid, write_ready, write_last, write_done, write_seen;
  wire mm2s_introut, s2mm_introut, irq;

  bitloom_zynq bitloom (
      .clk(clk),
      .rst(rst),
      .s_axi3_awid(awid),
      .s_axi3_awaddr(awaddr),
      .s_axi3_awlen(awlen),
      .s_axi3_awburst(awburst),
      .s_axi3_awvalid(awvalid),
      .s_axi3_awready(awready),
      .s_axi3_wdata(wdata),
      .s_axi3_wstrb(wstrb),
      .s_axi3_wvalid(wvalid),
      .s_axi3_wready(wready),
      .s_axi3_bid(bid),
      .s_axi3_bresp(bresp),
      .s_axi3_bvalid(bvalid),
      .s_axi3_bready(bready),
      .s_axi3_arid(arid),
      .s_axi3_araddr(araddr),
      .s_axi3_arlen(arlen),
      .s_axi3_arburst(arburst),
      .s_axi3_arvalid(arvalid),
      .s_axi3_arready(arready),
      .s_axi3_rid(rid),
      .s_axi3_rdata(rdata),
      .s_axi3_rresp(rresp),
      .s_axi3_rlast(rlast),
      .s_axi3_rvalid(rvalid),
      .s_axi3_rready(rready),
      .m_axi_mm2s_araddr(read_addr),
      .m_axi_mm2s_arlen(read_len),
      .m_axi_mm2s_arsize(read_size),
      .m_axi_mm2s_arburst(read_burst),
      .m_axi_mm2s_arcache(read_cache),
      .m_axi_mm2s_arprot(read_prot),
      .m_axi_mm2s_arvalid(read_asks),
      .m_axi_mm2s_arready(read_taken),
      .m_axi_mm2s_rdata(read_data),
      .m_axi_mm2s_rresp(read_resp),
      .m_axi_mm2s_rlast(read_last),
      .m_axi_mm2s_rvalid(read_valid),
      .m_axi_mm2s_rready(read_ready),
      .m_axi_s2mm_awaddr(write_addr),
      .m_axi_s2mm_awlen(write_len),
      .m_axi_s2mm_awsize(write_size),
      .m_axi_s2mm_awburst(write_burst),
      .m_axi_s2mm_awcache(write_cache),
      .m_axi_s2mm_awprot(write_prot),
      .m_axi_s2mm_awvalid(write_asks),
      .m_axi_s2mm_awready(write_taken),
      .m_axi_s2mm_wdata(write_data),
      .m_axi_s2mm_wstrb(write_strb),
      .m_axi_s2mm_wlast(write_last),
      .m_axi_s2mm_wvalid(write_valid),
      .m_axi_s2mm_wready(write_ready),
      .m_axi_s2mm_bresp(write_resp),
      .m_axi_s2mm_bvalid(write_done),
      .m_axi_s2mm_bready(write_seen),
      .mm2s_introut(mm2s_introut),
      .s2mm_introut(s2mm_introut),
      .irq(irq)
  );

  (* keep *)
  PS7 ps7 (
      .FCLKCLK(fclk),
      .FCLKRESETN(fclk_reset_n),
      .FCLKCLKTRIGN(4'd0),
      .FPGAIDLEN(1'b1),
      .DDRARB(4'd0),
      .IRQF2P({17'd0, irq, s2mm_introut, mm2s_introut}),
      .MAXIGP0ACLK(clk),
      .MAXIGP0AWID(awid),
      .MAXIGP0AWADDR(awaddr),
      .MAXIGP0AWLEN(awlen),
      .MAXIGP0AWBURST(awburst),
      .MAXIGP0AWVALID(awvalid),
      .MAXIGP0AWREADY(awready),
      .MAXIGP0WDATA(wdata),
      .MAXIGP0WSTRB(wstrb),
      .MAXIGP0WVALID(wvalid),
      .MAXIGP0WREADY(wready),
      .MAXIGP0BID(bid),
      .MAXIGP0BRESP(bresp),
      .MAXIGP0BVALID(bvalid),
      .MAXIGP0BREADY(bready),
      .MAXIGP0ARID(arid),
      .MAXIGP0ARADDR(araddr),
      .MAXIGP0ARLEN(arlen),
      .MAXIGP0ARBURST(arburst),
      .MAXIGP0ARVALID(arvalid),
      .MAXIGP0ARREADY(arready),
      .MAXIGP0RID(rid),
      .MAXIGP0RDATA(rdata),
      .MAXIGP0RRESP(rresp),
      .MAXIGP0RLAST(rlast),
      .MAXIGP0RVALID(rvalid),
      .MAXIGP0RREADY(rready),
      .SAXIHP0ACLK(clk),
      .SAXIHP0RDISSUECAP1EN(1'b0),
      .SAXIHP0WRISSUECAP1EN(1'b0),
      .SAXIHP0ARID(6'd0),
      .SAXIHP0ARADDR(read_addr),
      .SAXIHP0ARLEN(read_len),
      .SAXIHP0ARSIZE(read_size),
      .SAXIHP0ARBURST(read_burst),
      .SAXIHP0ARLOCK(2'd0),
      .SAXIHP0ARCACHE(read_cache),
      .SAXIHP0ARPROT(read_prot),
      .SAXIHP0ARQOS(4'd0),
      .SAXIHP0ARVALID(read_asks),
      .SAXIHP0ARREADY(read_taken),
      .SAXIHP0RDATA(read_data),
      .SAXIHP0RRESP(read_resp),
      .SAXIHP0RLAST(read_last),
      .SAXIHP0RVALID(read_valid),
      .SAXIHP0RREADY(read_ready),
      .SAXIHP0AWID(6'd0),
      .SAXIHP0AWADDR(write_addr),
      .SAXIHP0AWLEN(write_len),
      .SAXIHP0AWSIZE(write_size),
      .SAXIHP0AWBURST(write_burst),
      .SAXIHP0AWLOCK(2'd0),
      .SAXIHP0AWCACHE(write_cache),
      .SAXIHP0AWPROT(write_prot),
      .SAXIHP0AWQOS(4'd0),
      .SAXIHP0AWVALID(write_asks),
      .SAXIHP0AWREADY(write_taken),
      .SAXIHP0WID(6'd0),
      .SAXIHP0WDATA(write_data),
      .SAXIHP0WSTRB(write_strb),
      .SAXIHP0WLAST(write_last),
      .SAXIHP0WVALID(write_valid),
      .SAXIHP0WREADY(write_ready),
      .SAXIHP0BRESP(write_resp),
      .SAXIHP0BVALID(write_done),
      .SAXIHP0BREADY(write_seen)
  );
endmodule
