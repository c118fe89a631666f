// Ping-pong pair: hls_gen/rtl/ports/ping_pong.py
//
// Memory `chunks` is loaded in reset, as the loader does it, and then stays; what it holds may be anything.
module proof (
    input clk, input rst, input load_to_chunks, input [`MAP-1:0] load_row,
    input [`PLACE-1:0] load_data, input in_valid, input [`WIDTH-1:0] in_data, input in_last, input out_ready,
    input watch
);
  localparam WORDS = 1 << `PLACE;  // of a buffer
  (* anyconst *) reg [7:0] last_chunk;
  wire in_ready, out_valid, running;
  wire [`WIDTH-1:0] out_data;
  `DUT dut (.*);

  given_reset given_reset (.*);
  given_source #(.WIDTH(`WIDTH + 1)) source (
      .valid(in_valid), .ready(in_ready), .word({in_last, in_data}), .*);
  keeps_word #(.WIDTH(`WIDTH)) sink (.valid(out_valid), .ready(out_ready), .word(out_data), .*);
  always @* if (~rst) assume (~load_to_chunks);

  wire [`PLACE+2:0] inside, ahead;
  wire watching;
  wire [`WIDTH-1:0] word;
  wire take = in_valid & in_ready, give = out_valid & out_ready;
  in_order #(.WIDTH(`WIDTH), .MOST(2 * WORDS + 1), .BITS(`PLACE + 3)) order (
      .in_taken(take), .in_word(in_data), .out_taken(give), .out_word(out_data), .*);

  // Chunks: a word leaves only when its chunk is whole. `chunk_words` is what the map's row says.
  reg [`PLACE+2:0] open_words = 0;  // words of the chunk that has begun; the newest of those inside
  wire [`PLACE+2:0] whole_words = inside - open_words;
  (* hierconn *) wire [`PLACE-1:0] \dut.chunk_last_word ;
  wire ends = take & (in_last | open_words == \dut.chunk_last_word );
  always @(posedge clk) open_words <= rst | ends ? 0 : open_words + take;

  // No deadlock: a whole chunk is offered within a cycle; there is room within two while one buffer is not in use.
  soon #(.WITHIN(1)) offers (.waits(whole_words != 0 & ~out_valid), .*);
  soon #(.WITHIN(2)) takes (.waits(whole_words <= out_valid & ~in_ready), .*);
  always @* if (running) begin
    whole_chunks_only: assert (~out_valid | whole_words != 0);
    chunk_fits: assert (open_words < WORDS);
    both_in_use: cover (whole_words > 1 + out_valid & ~in_ready);
    map_ends_early: cover (take & in_last & open_words < \dut.chunk_last_word );
    chunk_after_chunk: cover (give & take & ends);
  end

`ifdef INVARIANTS
  (* hierconn *) wire \dut.full_0 , \dut.full_1 , \dut.writes_buffer , \dut.reads_buffer , \dut.loaded ;
  (* hierconn *) wire [`PLACE-1:0] \dut.before_last_0 , \dut.before_last_1 , \dut.write_word , \dut.read_word ;
  wire [`PLACE-1:0] last_word_0 = \dut.before_last_0 + 1, last_word_1 = \dut.before_last_1 + 1;
  (* hierconn *) wire \dut.single_0 , \dut.single_1 , \dut.read_first , \dut.read_later_last ;
  wire writes = \dut.writes_buffer , reads = \dut.reads_buffer ;
  wire reads_full = reads ? \dut.full_1 : \dut.full_0 , other_full = reads ? \dut.full_0 : \dut.full_1 ;
  wire [`PLACE-1:0] reads_last = reads ? last_word_1 : last_word_0;
  wire [`PLACE-1:0] other_last = reads ? last_word_0 : last_word_1;
  wire [`PLACE+2:0] here = reads_full ? reads_last - \dut.read_word + 1 : 0;  // words that are read from this buffer
  wire [`PLACE+2:0] there = other_full ? other_last + 1 : 0;
  wire [`PLACE+2:0] place = ahead - out_valid;  // of the word that is watched, in the memory
  wire [`PLACE-1:0] in_this = \dut.read_word + place, in_other = place - here;
  (* keep *) wire in_memory = running & watching & ahead >= out_valid;
  (* keep *) wire [`PLACE:0] memory_row =
      place < here | ~reads_full & writes == reads ? {reads, in_this} : {~reads, in_other};
  always @* if (running) begin
    assert (\dut.write_word == open_words);
    assert (in_ready == (\dut.loaded & ~(writes ? \dut.full_1 : \dut.full_0 )));
    assert (~other_full | reads_full);
    assert (writes == (reads ^ (reads_full & ~other_full)));
    assert (~(reads_full & other_full) | open_words == 0);
    assert (\dut.read_word <= (reads_full ? reads_last : 0));
    if (\dut.full_0 ) assert (\dut.single_0 == (last_word_0 == 0));
    if (\dut.full_1 ) assert (\dut.single_1 == (last_word_1 == 0));
    assert (\dut.read_first == (\dut.read_word == 0));
    if (~\dut.read_first ) assert (\dut.read_later_last == (\dut.read_word == reads_last));
    assert (whole_words == here + there + out_valid);
    assert (inside >= open_words);
    assert (open_words <= ( \dut.loaded ? \dut.chunk_last_word : 0));
  end
`endif
endmodule
