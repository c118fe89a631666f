"""Loops of a kernel's PTX: basic blocks, and which of them can come again."""

import re

LABEL = re.compile(r"(\$L\w+):")
BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(\$L\w+);")


def in_loops(text: str) -> list[str]:
    """Instructions of the only kernel of a PTX text that are in a loop."""
    blocks, follows = _blocks(text)
    return [line for name in blocks if name in _reached(follows, name) for line in blocks[name]]


def count(pattern: str, lines: list[str]) -> int:
    return sum(bool(re.search(pattern, line)) for line in lines)


def _blocks(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Instructions of each basic block, and the blocks that may follow it."""
    (body,) = re.findall(r"\.entry.*?\{(.*)\}", text, re.DOTALL)
    name = ""
    blocks, follows = {"": []}, {"": []}
    for line in map(str.strip, body.splitlines()):
        label = LABEL.match(line)
        branch = BRANCH.search(line)
        if label:
            begin = label[1]
            falls = True
        else:
            blocks[name].append(line)
            if branch:
                follows[name].append(branch[1])
            if not branch and not line.startswith("ret;"):
                continue
            begin = f"after {len(blocks)}"
            falls = line.startswith("@")
        if falls:
            follows[name].append(begin)
        name = begin
        blocks[begin], follows[begin] = [], []
    return blocks, follows


def _reached(follows: dict[str, list[str]], name: str) -> set[str]:
    """Blocks that may come after a block, itself among them if it is in a loop."""
    reached: set[str] = set()
    todo = [*follows[name]]
    while todo:
        block = todo.pop()
        if block not in reached:
            reached.add(block)
            todo += follows[block]
    return reached


def innermost(text: str, pattern: str) -> list[str]:
    """Instructions of the innermost loop that has an instruction with ``pattern``.

    Each edge back to a loop's head has the blocks from which it is reached and not through the head; other edges would
    have the kernel's first block among theirs.
    """
    blocks, follows = _blocks(text)
    wanted = {name for name in blocks if count(pattern, blocks[name])}
    before = {name: [other for other in blocks if name in follows[other]] for name in blocks}
    loops = []
    for last in blocks:
        for head in follows[last]:
            without = {name: [] if name == head else before[name] for name in blocks}
            loop = {head, last, *_reached(without, last)}
            if "" not in loop and wanted & loop:
                loops.append(loop)
    smallest = min(loops, key=len)
    return [line for name in smallest for line in blocks[name]]
