// What the rules of all modules are made of. A module under proof is instantiated by a module `proof`, whose own inputs
// may do anything in any cycle; what is assumed of them stands in the modules below whose names begin with `given_`.

// The first cycle is one of reset; `rst` may come again at any time. Rules are looked at where `running` is 1.
module given_reset (input clk, input rst, output running);
  reg begun = 0;
  always @(posedge clk) begun <= 1;
  always @* assume (begun | rst);
  assign running = begun & ~rst;
endmodule

// A source: a word that is offered stays, and stays the same, until it is taken.
module given_source #(parameter WIDTH = 1) (
    input clk, input rst, input valid, input ready, input [WIDTH-1:0] word
);
  reg waits = 0;
  reg [WIDTH-1:0] before;
  always @(posedge clk) begin
    waits <= valid & ~ready & ~rst;
    before <= word;
  end
  always @* if (waits & ~rst) begin
    assume (valid);
    assume (word == before);
  end
endmodule

// The same of a stream that the module under proof gives.
module keeps_word #(parameter WIDTH = 1) (
    input clk, input rst, input running, input valid, input ready, input [WIDTH-1:0] word
);
  reg waits = 0;
  reg [WIDTH-1:0] before;
  always @(posedge clk) begin
    waits <= valid & ~ready & ~rst;
    before <= word;
  end
  always @* if (waits & running) begin
    valid_stays: assert (valid);
    word_stays: assert (word == before);
  end
  always @* if (running) begin
    waits_for_ready: cover (waits);
    is_taken: cover (valid & ready);
  end
endmodule

// Words leave as they came and in the order in which they came: none is lost, doubled, changed or made of nothing.
//
// `watch` may be 1 in any cycle: the word that is taken then is remembered, with the number of words that must leave
// before it. So one rule says it of every word.
module in_order #(parameter WIDTH = 1, parameter MOST = 1, parameter BITS = $clog2(MOST + 2)) (
    input clk, input rst, input running, input watch,
    input in_taken, input [WIDTH-1:0] in_word,
    input out_valid, input out_taken, input [WIDTH-1:0] out_word,
    output reg [BITS-1:0] inside,  // words that were taken and have not left
    output reg watching,           // one of them is remembered
    output reg [BITS-1:0] ahead,   // words that leave before it
    output reg [WIDTH-1:0] word    // what it is
);
  initial inside = 0;
  initial watching = 0;
  always @(posedge clk) begin
    inside <= inside + in_taken - out_taken;
    if (watching & out_taken) begin
      ahead <= ahead - 1;
      watching <= ahead != 0;
    end
    if (~watching & watch & in_taken) begin
      watching <= 1;
      ahead <= inside - out_taken;
      word <= in_word;
    end
    if (rst) begin
      inside <= 0;
      watching <= 0;
    end
  end
  always @* if (running) begin
    never_too_many: assert (inside <= MOST);
    nothing_from_nothing: assert (~out_valid | inside != 0);
    if (watching) not_lost: assert (ahead < inside);
    if (watching & ahead == 0 & out_valid) same_word: assert (out_word == word);
    fills: cover (inside == (MOST > 6 ? 6 : MOST));
    watched_word_leaves: cover (watching & ahead == 0 & out_taken);
    two_ahead: cover (watching & ahead == (MOST > 2 ? 2 : MOST - 1));
  end
endmodule

// `waits` is never 1 in more than WITHIN cycles in a row.
module soon #(parameter WITHIN = 1) (input clk, input rst, input running, input waits);
  reg [7:0] cycles = 0;
  always @(posedge clk) cycles <= rst | ~waits ? 0 : cycles + 1;
  always @* if (running) in_time: assert (cycles + waits <= WITHIN);
endmodule
