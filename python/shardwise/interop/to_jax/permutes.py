# SPDX-License-Identifier: Apache-2.0
"""Boxes as permutes: in each one, a device sends at most one box and receives at most one."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, product
from typing import Any

from .boxes import Box

__all__ = ["Round", "best_rounds", "cost"]

_MOST_PERMUTES = 16
_WASTES = (math.inf, 2.0, 1.5, 1.0)  # elements of a round's shape for each one of its smallest box
_CLOSE = 1.1  # fewer permutes are worth this many times the elements where boxes are cut
_MOST_PARTS = 4  # of a box, along a dim


@dataclass(frozen=True)
class Round:
    """Boxes that travel together: in each step a device sends the box that it has to at most one other."""

    boxes: list[Box]
    steps: list[list[tuple[int, int]]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that all boxes are padded to."""
        return tuple(map(max, zip(*[box.shape for box in self.boxes])))


def _balanced(sent: Sequence[Box], positions: Sequence[int]) -> list[Box]:
    """The boxes from those devices that hold them and have sent least: each step is then one permutation."""
    holders: dict[int, list[int]] = defaultdict(list)
    for device, position in enumerate(positions):
        holders[position].append(device)
    load = [0] * len(positions)
    found = []
    for box in sent:
        sender = min(holders[positions[box.sender]], key=load.__getitem__)
        load[sender] += 1
        found.append(replace(box, sender=sender))
    return found


def best_rounds(
    boxes: Sequence[Box], positions: Sequence[int], steps: Sequence[tuple[int, int]], has_steps: bool
) -> list[Round]:
    """The rounds that send least, in at most 16 permutes; [] if there are none.

    Args:
        boxes: each one from a device to another.
        positions: the shard that each device has. Devices with the same one can send for each other.
        steps: the distances of a box's rows in the result and in the operand, by dim.
        has_steps: whether the steps of the boxes are permutations.
    """
    if max(Counter(box.receiver for box in boxes).values()) > _MOST_PERMUTES:
        return []
    found = [_by(boxes, lambda box: box.step)] if has_steps else []
    has_replicas = len(set(positions)) < len(positions)
    for sent in [boxes, _balanced(boxes, positions)] if has_replicas else [boxes]:
        found.append(_by(sent, lambda box: (box.sender - box.receiver) % len(positions)))
        found += [_first_fit(sent, waste) for waste in _WASTES]
        found.append(_first_fit(sorted(sent, key=lambda box: -math.prod(box.shape)), math.inf))
        found += [[*chain.from_iterable(map(_colored, _by_size(sent, waste)))] for waste in _WASTES]
    best = _cheapest(found)
    needed = max(_received(boxes).values())
    if best and cost(best)[0] <= needed * _CLOSE:
        return best
    parts = [*_cut_smaller(boxes, steps)]
    parts += [_balanced(each, positions) for each in parts] if has_replicas else []
    found = [rounds for rounds in [best, *map(_colored, parts)] if rounds and cost(rounds)[1] <= _MOST_PERMUTES]
    least = min([cost(rounds)[0] for rounds in found], default=0)
    return min([x for x in found if cost(x)[0] <= least * _CLOSE], key=lambda x: cost(x)[::-1], default=[])


def _cheapest(found: Sequence[list[Round]]) -> list[Round]:
    return min([rounds for rounds in found if rounds and cost(rounds)[1] <= _MOST_PERMUTES], key=cost, default=[])


def _received(boxes: Sequence[Box]) -> dict[int, int]:
    """The elements that each device receives."""
    received: dict[int, int] = defaultdict(int)
    for box in boxes:
        received[box.receiver] += math.prod(box.shape)
    return received


def _cut_smaller(boxes: Sequence[Box], steps: Sequence[tuple[int, int]]) -> Iterator[list[Box]]:
    """The boxes in parts of one largest shape: with smaller parts, less of a permute is padding."""
    most = tuple(map(max, zip(*[box.shape for box in boxes])))
    for counts in product(range(1, _MOST_PARTS + 1), repeat=len(most)):
        if math.prod(counts) <= _MOST_PERMUTES and all(k <= n for k, n in zip(counts, most)):
            limits = [-(-n // k) for k, n in zip(counts, most)]
            yield [part for box in boxes for part in box.cut(limits, steps)]


def cost(rounds: Sequence[Round]) -> tuple[int, int]:
    """The elements that one device receives if it takes part in all permutes, and the number of permutes."""
    elements = sum(math.prod(each.shape) * len(each.steps) for each in rounds)
    return elements, sum(len(each.steps) for each in rounds)


def _by(boxes: Sequence[Box], key: Callable[[Box], int]) -> list[Round]:
    """A round for each key, whose boxes are between different devices; more if a pair of devices has several boxes."""
    rounds: dict[tuple[int, int], list[Box]] = defaultdict(list)
    pairs: dict[tuple[int, int, int], int] = defaultdict(int)
    for box in boxes:
        pair = box.sender, box.receiver, key(box)
        rounds[key(box), pairs[pair]].append(box)
        pairs[pair] += 1
    return [_round_of(each) for each in rounds.values()]


def _round_of(boxes: list[Box]) -> Round:
    return Round(boxes, [[(box.sender, box.receiver) for box in boxes]])


def _by_size(boxes: Sequence[Box], waste: float) -> list[list[Box]]:
    """Lists in which no box is padded by more than ``waste``, the largest boxes first."""
    lists: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: -math.prod(box.shape)):
        if lists and _is_filled([[each] for each in (lists[-1][0], box)], waste):
            lists[-1].append(box)
        else:
            lists.append([box])
    return lists


def _colored(boxes: Sequence[Box]) -> list[Round]:
    """As few permutes as one device has boxes to send or to receive, the most of all.

    That is an edge coloring of a bipartite graph: two ends of a new edge that lack different colors get a common one by
    a swap of these colors along a path. Empty if there are too many.
    """
    ends = [(("sends", box.sender), ("receives", box.receiver)) for box in boxes]
    if max(Counter(chain.from_iterable(ends)).values()) > _MOST_PERMUTES:
        return [_round_of([box]) for box in boxes]
    used: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # the box at an end, by color
    for i, (sends, receives) in enumerate(ends):
        color, other = (next(c for c in count() if c not in used[end]) for end in (sends, receives))
        path, end, own = [], receives, color
        while own in used[end]:
            path.append((used[end][own], own))
            end = next(each for each in ends[used[end][own]] if each != end)
            own = color + other - own
        for j, old in path:
            for each in ends[j]:
                del used[each][old]
        for j, old in [*path, (i, other)]:
            for each in ends[j]:
                used[each][color + other - old] = j
    rounds: dict[int, set[int]] = defaultdict(set)
    for own_boxes in used.values():
        for each_color, j in own_boxes.items():
            rounds[each_color].add(j)
    return [_round_of([boxes[j] for j in sorted(each)]) for _, each in sorted(rounds.items())]


def _first_fit(boxes: Sequence[Box], waste: float) -> list[Round]:
    """Rounds in which no device has two boxes to send, or receives two, and no box is padded by more than ``waste``."""
    sent: dict[Any, list[Box]] = defaultdict(list)
    for box in boxes:
        sent[box.sender, tuple((piece.at, piece.count) for piece in box.pieces)].append(box)
    rounds: list[list[list[Box]]] = []
    busy: list[set[tuple[str, int]]] = []
    for group in sent.values():
        sender, receivers = group[0].sender, [box.receiver for box in group]
        ends = {("sends", sender), *[("receives", i) for i in receivers]}
        if len(group) > 1:  # all of them may send it on
            ends |= {("receives", sender), *[("sends", i) for i in receivers]}
        fits = (i for i, round in enumerate(rounds) if not ends & busy[i] and _is_filled([*round, group], waste))
        at = next(fits, len(rounds))
        if at == len(rounds):
            rounds.append([])
            busy.append(set())
        rounds[at].append(group)
        busy[at] |= ends
    return [Round(list(chain.from_iterable(groups)), _tree(groups)) for groups in rounds]


def _is_filled(groups: Sequence[Sequence[Box]], waste: float) -> bool:
    shapes = [group[0].shape for group in groups]
    return bool(math.prod(map(max, zip(*shapes))) <= waste * min(map(math.prod, shapes)))


def _tree(groups: Sequence[Sequence[Box]]) -> list[list[tuple[int, int]]]:
    """The pairs of each step; in a step, each device that has the box of its group sends it to one that has not."""
    steps: list[list[tuple[int, int]]] = []
    for group in groups:
        having, missing = [group[0].sender], [box.receiver for box in group]
        for step in count():
            if not missing:
                break
            pairs = list(zip(having, missing))
            if step == len(steps):
                steps.append([])
            steps[step] += pairs
            having += [receiver for _, receiver in pairs]
            missing = missing[len(pairs) :]
    return steps
