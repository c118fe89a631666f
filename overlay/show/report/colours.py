"""Colours by meaning, for a light and a dark page.

Pictures are drawn in the light ones. In the page they are CSS variables, so that the reader's choice counts.
"""

LIGHT = {
    "ink": "#1c2329",
    "muted": "#66717b",
    "line": "#ccd3d9",
    "panel": "#f3f5f7",
    "page": "#fdfdfe",
    "beats": "#2c6cae",
    "idle": "#a8c5e2",
    "wait_input": "#dd9f2e",
    "wait_room": "#bf5349",
    "wait_table": "#7d62a6",
    "wait_weights": "#3a948a",
    "wait_memory": "#8a8f3c",
    "right": "#2e7d4f",
}
DARK = {
    "ink": "#dde3e8",
    "muted": "#94a0aa",
    "line": "#3a444d",
    "panel": "#1d242a",
    "page": "#14191e",
    "beats": "#5b9bdb",
    "idle": "#37536e",
    "wait_input": "#d9a441",
    "wait_room": "#d6736a",
    "wait_table": "#a48bcb",
    "wait_weights": "#57b3a8",
    "wait_memory": "#b3b65a",
    "right": "#63b985",
}
SPENT = {
    "beats": "beats",
    "wait_input": "waits for input",
    "wait_room": "waits for room",
    "wait_table": "waits for tables",
    "wait_weights": "waits for weights",
    "wait_memory": "reads features",
}
"""Activities of an NPU in a cycle, by counter; the colour has the counter's name."""
