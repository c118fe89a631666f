// Frames of a raw stream: hls_gen/rtl/packetizer/raw_frames.py
//
// Values have 3 bits and are beats; a frame has 3 of them, a group 2, which become 2 words: the values beside each other
// and a 1, the first value low and then the second one. The second group of a frame has one value and one word.
module proof (
`include "inputs.svh"
    input clk, input rst
);
`include "outputs.svh"
  localparam PACKET = 7;  // words: 4 of the header, 3 of the payload
  wire running;
  `DUT dut (.*);
  given_reset given_reset (.*);
  given_source #(.WIDTH(33)) host (.valid(s_axis_tvalid), .ready(s_axis_tready), .word({s_axis_tlast, s_axis_tdata}), .*);
  given_source #(.WIDTH(9)) raw (.valid(raw_valid), .ready(raw_ready), .word({begins, raw_data}), .*);
  keeps_word #(.WIDTH(33)) sink (.valid(m_axis_tvalid), .ready(m_axis_tready), .word({m_axis_tlast, m_axis_tdata}), .*);

  wire given = m_axis_tvalid & m_axis_tready, taken = raw_valid & raw_ready;
  reg was_busy = 0;
  reg [40:0] header_before;
  wire [40:0] header_now = {signature, number, last};
  always @(posedge clk) begin
    was_busy <= busy & ~rst;
    header_before <= header_now;
  end
  always @* if (was_busy & ~rst) assume (header_now == header_before);

  // The packet at hand: words that have left, beats that it has, and their values.
  reg in_transfer = 0, aligned = 0, filling = 0;
  reg [2:0] place = 0;
  reg [1:0] beats = 0;
  reg [2:0] value_0, value_1, value_2;
  wire fills;
  wire beat = busy & place >= 4 & (filling ? fills : taken);
  wire [2:0] value = filling ? 0 : raw_data[2:0];
  always @(posedge clk) begin
    if (~busy & given) in_transfer <= ~m_axis_tlast;
    if (busy & given) place <= place + 1;
    if (short) filling <= 1;
    if (long) aligned <= 0;
    if (beat) begin
      beats <= beats + 1;
      if (beats == 0) value_0 <= value;
      if (beats == 1) value_1 <= value;
      if (beats == 2) value_2 <= value;
    end
    if (ended) {place, beats, filling, aligned} <= 1;
    if (rst) {in_transfer, place, beats, filling, aligned} <= 0;
  end

  wire [31:0] word_0 = {8'hb1, 19'd0, last, 4'd2}, word_2 = {number, 24'd5};
  wire [31:0] header = place == 0 ? word_0 : place == 1 ? signature : place == 2 ? word_2
      : ~(word_0 ^ signature ^ word_2);
  wire [31:0] payload = place == 4 ? {1'b1, value_1, value_0} : place == 5 ? {1'b1, value_0, value_1}
      : {1'b1, 3'd0, value_2};
  soon #(.WITHIN(5)) goes_on (.waits(busy & m_axis_tready & raw_valid & ~m_axis_tvalid), .*);
  always @* if (running) begin
    if (busy) begin
      host_waits: assert (~s_axis_tready);
      if (place < 4) header_offered: assert (m_axis_tvalid & m_axis_tdata == header);
      if (place >= 4 & m_axis_tvalid) payload_of_its_beats: assert (m_axis_tdata == payload);
      if (m_axis_tvalid) beats_are_there: assert (beats >= (place < 4 ? 0 : place < 6 ? 2 : 3));
      if (m_axis_tvalid) last_of_a_packet: assert (m_axis_tlast == (place == PACKET - 1));
    end else begin
      words_of_a_host: assert (m_axis_tvalid == s_axis_tvalid & s_axis_tready == m_axis_tready);
      words_as_they_are: assert ({m_axis_tlast, m_axis_tdata} == {s_axis_tlast, s_axis_tdata});
    end
    whole_packets: assert (ended == (busy & given & place == PACKET - 1));
    if (busy & ~was_busy) not_in_a_transfer: assert (~in_transfer);
    if (was_busy & ~busy) ends_with_its_packet: assert (place == 0);
    if (taken) begin
      first_begins: assert (~busy | (begins == (beats == 0)));
      beats_of_a_frame: assert (busy ? place >= 4 & beats < 3 & ~filling : run & ~begins & ~aligned);
    end
    too_short: assert (short == (busy & place >= 4 & raw_valid & begins & beats != 0 & beats != 3 & ~filling));
    too_long: assert (long == (~busy & run & raw_valid & ~begins & aligned & ~in_transfer & ~s_axis_tvalid));
    whole_frame: cover (ended & ~filling & value_0 == 1 & value_2 == 5);
    filled_up: cover (ended & filling);
    second_frame: cover (aligned & busy);
    told_of_a_long_one: cover (long);
    dropped: cover (taken & ~busy);
    transfer_between: cover (aligned & in_transfer);
  end

  (* hierconn *) wire \dut.filling , \dut.beat_ready ;
  assign fills = beats != 3 & \dut.beat_ready ;
`ifdef INVARIANTS
  (* hierconn *) wire \dut.in_header , \dut.in_payload , \dut.in_transfer , \dut.aligned ;
  (* hierconn *) wire [1:0] \dut.header_place , \dut.beats_taken ;
  (* hierconn *) wire \dut.group_valid , \dut.group_ready , \dut.group_last , \dut.group.place ;
  (* hierconn *) wire [2:0] \dut.group.word_0 , \dut.group.word_1 ;
  (* hierconn *) wire \dut.payload_valid , \dut.payload.left , \dut.payload.is_last ;
  (* hierconn *) wire [63:0] \dut.payload.rest ;
  reg [1:0] loaded = 0;  // groups that have reached the divider
  always @(posedge clk) loaded <= rst | ended ? 0 : loaded + (\dut.group_valid & \dut.group_ready );
  wire complete = \dut.group_valid ;
  wire [2:0] behind = place - 4;
  wire [63:0] words = {25'd0, 1'b1, value_0, value_1, 25'd0, 1'b1, value_1, value_0};
  always @* if (running) begin
    assert (\dut.filling == filling & \dut.beats_taken == beats & \dut.aligned == aligned);
    assert (\dut.in_transfer == in_transfer & ~( \dut.in_header & \dut.in_payload ));
    assert (busy == ( \dut.in_header | \dut.in_payload ));
    assert (\dut.in_payload == (place >= 4) & place < PACKET);
    assert (\dut.in_header ? \dut.header_place == place : \dut.header_place == 0);
    if (~busy) assert (place == 0);
    if (busy & beats == 0) assert (raw_valid & begins & ~filling);
    if (place < 4) assert (beats == 0 & loaded == 0 & ~filling);
    assert (~complete | ~\dut.group.place );
    assert (loaded <= 2);
    assert (beats == (loaded == 2 ? 3 : 2 * loaded + (complete ? 2 - loaded : \dut.group.place )));
    if (loaded == 2) assert (~complete & ~\dut.group.place );
    if (loaded == 1) assert (~ \dut.group.place );
    if (\dut.group.place ) assert (\dut.group.word_0 == value_0 & \dut.group.word_1 == 0);
    if (complete & loaded == 0) assert (\dut.group.word_0 == value_0 & \dut.group.word_1 == value_1 & ~\dut.group_last );
    if (complete & loaded == 1) assert (\dut.group.word_0 == value_2 & \dut.group.word_1 == 0 & \dut.group_last );
    if (\dut.payload_valid ) begin
      assert (loaded == 1 ? behind < 2 & \dut.payload.left == 1 - behind & ~\dut.payload.is_last
          : loaded == 2 & behind == 2 & \dut.payload.left == 0 & \dut.payload.is_last );
      if (loaded == 1) assert (\dut.payload.rest == words >> (behind[0] ? 32 : 0));
      if (loaded == 2) assert (\dut.payload.rest [31:0] == {25'd0, 1'b1, 3'd0, value_2});
    end else begin
      assert (\dut.payload.left == 0);
      assert (loaded == 0 & place <= 4 | loaded == 1 & behind == 2);
    end
  end
`endif
endmodule
