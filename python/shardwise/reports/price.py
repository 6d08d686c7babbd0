# SPDX-License-Identifier: Apache-2.0
"""What the partitioner's decisions cost on one device: :meth:`Program.choice_price`."""

from __future__ import annotations

from dataclasses import dataclass

from .tables import format_bytes

__all__ = ["Price", "duration"]

SATURATED = 2**62  # where the core's quantities stop


@dataclass(frozen=True, order=True)
class Price:
    """Time, bytes, messages and work of one device, as integers. Prices compare time first, as the partitioner does.

    A difference of two prices may be negative. Quantities stop at 2**62, and are then printed with ``>=``.

    Attributes:
        ps: picoseconds of operations, memory and transfers, one after the other and without launches.
        bytes: received by the device.
        rounds: messages that wait for each other.
        flops: operations on numbers.

    >>> gathered = Price(5_750_000_000, 587202560, 1, 4398046511104)
    >>> reduced = Price(2_644_000_000, 939524096, 2, 549755813888)
    >>> print(reduced)
    2.64 ms, 896 MiB, 2 rounds, 550 Gflop
    >>> print(reduced - gathered)
    -3.11 ms, +336 MiB, +1 round, -3.85 Tflop
    >>> reduced < gathered
    True
    """

    ps: int = 0
    bytes: int = 0
    rounds: int = 0
    flops: int = 0

    @property
    def seconds(self) -> float:
        """The time in seconds."""
        return self.ps / 1e12

    def __add__(self, other: Price) -> Price:
        if not isinstance(other, Price):
            return NotImplemented
        fields = zip(self._fields(), other._fields())
        return Price(*(min(a + b, SATURATED) for a, b in fields))

    def __sub__(self, other: Price) -> Difference:
        if not isinstance(other, Price):
            return NotImplemented
        return Difference(*(a - b for a, b in zip(self._fields(), other._fields())))

    def _fields(self) -> tuple[int, int, int, int]:
        return self.ps, self.bytes, self.rounds, self.flops

    def __str__(self) -> str:
        parts = [f"{'>= ' if value >= SATURATED else ''}{text}" for value, text in self._parts() if value]
        return ", ".join(parts) or "0 s"

    def _parts(self) -> tuple[tuple[int, str], ...]:
        """Each quantity, and its amount as text."""
        ps, received, rounds, flops = (abs(value) for value in self._fields())
        return (
            (self.ps, duration(ps / 1e12)),
            (self.bytes, format_bytes(received)),
            (self.rounds, f"{rounds} round{'' if rounds == 1 else 's'}"),
            (self.flops, scaled(flops, "flop")),
        )


class Difference(Price):
    """A difference of two prices: ``a - b``. Each part has its sign."""

    def __str__(self) -> str:
        parts = [f"{'-' if value < 0 else '+'}{text}" for value, text in self._parts() if value]
        return ", ".join(parts) or "no difference"


def scaled(value: float, unit: str, prefixes: tuple[str, ...] = ("", "k", "M", "G", "T", "P", "E")) -> str:
    """``value`` with three digits, in the largest of the prefixes that leaves at least 1.

    >>> scaled(549755813888, "flop"), scaled(12, "flop")
    ('550 Gflop', '12 flop')
    """
    at = 0
    while at + 1 < len(prefixes) and value >= 999.5:
        value, at = value / 1000, at + 1
    return f"{value:.0f} {prefixes[at]}{unit}" if value >= 99.95 else f"{value:.3g} {prefixes[at]}{unit}"


def duration(seconds: float) -> str:
    """Seconds as text, with three digits.

    >>> duration(2.644e-3), duration(0)
    ('2.64 ms', '0 ps')
    """
    return scaled(seconds * 1e12, "s", ("p", "n", "u", "m", ""))
