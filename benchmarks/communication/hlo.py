# SPDX-License-Identifier: Apache-2.0
"""The bytes that a device receives in a program that XLA compiled, counted in its HLO text."""

from __future__ import annotations

import math
import re

__all__ = ["received"]

COLLECTIVE = re.compile(
    r"= (?P<type>\(?[a-z0-9]+\[[^=]*?) (?P<kind>all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)"
    r"(?:-start)?\(.*"
)
COMMENT = re.compile(r"/\*.*?\*/")  # a tuple's type has one after every fifth item
ITEM_SIZES = {
    "pred": 1,
    "s8": 1,
    "u8": 1,
    "bf16": 2,
    "f16": 2,
    "s32": 4,
    "u32": 4,
    "f32": 4,
    "s64": 8,
    "f64": 8,
    "c64": 8,
}


def received(hlo: str, devices: int) -> float:
    """Bytes of all collectives, of the device that receives most. An all-reduce is a reduce-scatter and an all-gather.

    A collective in a loop counts once.
    """
    by_device = [0.0] * devices
    for line in COMMENT.sub("", hlo).splitlines():
        found = COLLECTIVE.search(line)
        if not found:
            continue
        result = _type_bytes(found["type"])
        if found["kind"] == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}", line)
            for source, target in re.findall(r"\{(\d+),(\d+)", pairs[1] if pairs else ""):
                by_device[int(target)] += result if source != target else 0
            continue
        group = _group_size(line, devices)
        share = {"all-reduce": 2 * (group - 1) / group, "reduce-scatter": group - 1}
        each = result * share.get(found["kind"], (group - 1) / group)
        by_device = [bytes_before + each for bytes_before in by_device]
    return max(by_device)


def _type_bytes(text: str) -> int:
    found = re.findall(r"([a-z0-9]+)\[([0-9,]*)\]", text)
    return sum(ITEM_SIZES[dtype] * math.prod(int(n) for n in dims.split(",") if n) for dtype, dims in found)


def _group_size(line: str, devices: int) -> int:
    if iota := re.search(r"replica_groups=\[\d+,(\d+)\]", line):
        return int(iota[1])
    listed = re.search(r"replica_groups=\{\{([0-9,]*)\}", line)
    return len(listed[1].split(",")) if listed else devices
