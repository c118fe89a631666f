// A device of docs/reference/device.md that adds ADDEND to every stream word: registers, streams, interrupt, nothing else.
//
//   s_axis --> queue of 2 (skid) --> register --> m_axis
//
// Register 0x104 FAULT turns on one deliberate mistake at a time, so that one build serves every test of the harness.
module bitloom_top (
    input wire clk,
    input wire rst,
    input wire [STREAM_BITS-1:0] s_axis_tdata,
    input wire s_axis_tvalid,
    output wire s_axis_tready,
    input wire s_axis_tlast,
    output wire [STREAM_BITS-1:0] m_axis_tdata,
    output wire m_axis_tvalid,
    input wire m_axis_tready,
    output wire m_axis_tlast,
    input wire [11:0] s_axi_awaddr,
    input wire s_axi_awvalid,
    output wire s_axi_awready,
    input wire [31:0] s_axi_wdata,
    input wire [3:0] s_axi_wstrb,
    input wire s_axi_wvalid,
    output wire s_axi_wready,
    output reg [1:0] s_axi_bresp,
    output reg s_axi_bvalid,
    input wire s_axi_bready,
    input wire [11:0] s_axi_araddr,
    input wire s_axi_arvalid,
    output wire s_axi_arready,
    output reg [31:0] s_axi_rdata,
    output wire [1:0] s_axi_rresp,
    output reg s_axi_rvalid,
    input wire s_axi_rready,
    output wire irq
);
    localparam DROPS_VALID = 1, CHANGES_DATA = 2, CHANGES_LAST = 3, DEPENDS_ON_READY = 4, HANGS = 5;
    localparam READ_DATA_CHANGES = 6, BVALID_FALLS = 7, NO_READ_ANSWER = 8, COMBINATIONAL_READY = 10;
    reg [7:0] fault;
    reg [31:0] addend, cycles, words_in, words_out;
    reg start, irq_enable, irq_result;
    wire take = s_axis_tvalid & s_axis_tready;
    wire give = m_axis_tvalid & m_axis_tready;

    // registers: address and data are taken together
    wire write = s_axi_awvalid & s_axi_wvalid & ~s_axi_bvalid;
    wire whole = s_axi_wstrb == 4'b1111;
    wire soft_reset = write & whole & s_axi_awaddr == 12'h020 & s_axi_wdata[1];
    assign s_axi_awready = write;
    assign s_axi_wready = write;
    assign s_axi_arready = ~s_axi_rvalid;
    assign s_axi_rresp = 2'b00;
    assign irq = irq_enable & irq_result;

    always @(posedge clk) begin
        cycles <= cycles + 1;
        if (take) words_in <= words_in + 1;
        if (give) words_out <= words_out + 1;
        if (give & m_axis_tlast) irq_result <= 1;
        if (s_axi_bvalid & s_axi_bready) s_axi_bvalid <= 0;
        if (write) begin
            s_axi_bvalid <= 1;
            s_axi_bresp <= whole ? 2'b00 : 2'b10;
            if (whole) case (s_axi_awaddr)
                12'h020: begin
                    start <= s_axi_wdata[0];
                    if (s_axi_wdata[2]) cycles <= 0;
                end
                12'h040: irq_enable <= s_axi_wdata[0];
                12'h044: if (s_axi_wdata[0]) irq_result <= 0;
                12'h100: addend <= s_axi_wdata;
                12'h104: fault <= s_axi_wdata[7:0];
                default: ;
            endcase
        end
        if (fault == READ_DATA_CHANGES & s_axi_rvalid) s_axi_rdata <= s_axi_rdata + 1;
        if (s_axi_rvalid & s_axi_rready) s_axi_rvalid <= 0;
        if (s_axi_arvalid & s_axi_arready) begin
            s_axi_rvalid <= fault != NO_READ_ANSWER;
            case (s_axi_araddr)
                12'h000: s_axi_rdata <= 32'h424C4D31;
                12'h004: s_axi_rdata <= 32'h00000100;
                12'h008: s_axi_rdata <= 32'h01234567;
                12'h020: s_axi_rdata <= {31'd0, start};
                12'h024: s_axi_rdata <= {31'd0, ~m_axis_tvalid};
                12'h040: s_axi_rdata <= {31'd0, irq_enable};
                12'h044: s_axi_rdata <= {31'd0, irq_result};
                12'h050: s_axi_rdata <= cycles;
                12'h058: s_axi_rdata <= words_in;
                12'h05C: s_axi_rdata <= words_out;
                12'h100: s_axi_rdata <= addend;
                default: s_axi_rdata <= 0;
            endcase
        end
        if (rst) begin
            s_axi_bvalid <= 0;
            s_axi_rvalid <= 0;
            start <= 0;
            irq_enable <= 0;
            addend <= 1;
            fault <= 0;
            cycles <= 0;
        end
        if (rst | soft_reset) begin
            irq_result <= 0;
            words_in <= 0;
            words_out <= 0;
        end
        if (fault == BVALID_FALLS & s_axi_bvalid) s_axi_bvalid <= 0;
    end

    // streams
    reg [STREAM_BITS-1:0] data, spare;
    reg last, spare_last, valid, spare_valid;
    // a correct but unusual device: tready waits for tvalid, and depends on the payload of the same cycle
    wire choosy = s_axis_tvalid & (~valid | m_axis_tready) & (s_axis_tdata[0] | cycles[0]);
    wire stuck = fault == HANGS & words_out >= 5;
    assign s_axis_tready = ~stuck & (fault == COMBINATIONAL_READY ? choosy : ~spare_valid);
    assign m_axis_tvalid = valid & ~stuck & (fault != DEPENDS_ON_READY | m_axis_tready);
    assign m_axis_tdata = data;
    assign m_axis_tlast = last;
    always @(posedge clk) begin
        if (m_axis_tready | ~valid) begin
            if (~stuck) begin
                valid <= spare_valid | take;
                data <= (spare_valid ? spare : s_axis_tdata) + {{STREAM_BITS-32{1'b0}}, addend};
                last <= spare_valid ? spare_last : s_axis_tlast;
                spare_valid <= 0;
            end
        end else if (take) begin
            spare <= s_axis_tdata;
            spare_last <= s_axis_tlast;
            spare_valid <= 1;
        end
        if (valid & ~m_axis_tready & words_out == 3) begin
            if (fault == DROPS_VALID) valid <= 0;
            if (fault == CHANGES_DATA) data <= data + 1;
            if (fault == CHANGES_LAST) last <= ~last;
        end
        if (rst | soft_reset) begin
            valid <= 0;
            spare_valid <= 0;
        end
    end
endmodule
