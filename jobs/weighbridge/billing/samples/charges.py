"""The charges of a sample bill as plain columns, before any format: kinds, money, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NANO = 1_000_000_000
ID_CHARACTERS = 13


class Kind(IntEnum):
    """What a charge is. CUR has no row for an unused commitment, FOCUS none for a negation or a discount."""

    USAGE = 0
    COVERED = 1
    NEGATION = 2
    PLAN_FEE = 3
    PLAN_UNUSED = 4
    RESERVED = 5
    RESERVATION_FEE = 6
    RESERVATION_UNUSED = 7
    ENTERPRISE_DISCOUNT = 8
    TAX = 9
    FEE = 10
    CREDIT = 11
    REFUND = 12
    PLAN_REFUND = 13
    BUNDLED_DISCOUNT = 14
    PRIVATE_DISCOUNT = 15
    PLAN_UPFRONT = 16
    RESERVATION_UPFRONT = 17


DISCOUNTS = (Kind.ENTERPRISE_DISCOUNT, Kind.BUNDLED_DISCOUNT, Kind.PRIVATE_DISCOUNT)


@dataclass(frozen=True)
class Charges:
    """Charges as equally long columns. Money in the bill's currency; nan where the bill says nothing.

    Amounts of money that take part in an identity are whole nano-units divided by 1e9, so that the shortest
    text of each double has at most nine decimals and the identity holds to the last digit.
    """

    kind: NDArray[np.int8]
    meter: NDArray[np.int32]
    start_ms: Ints
    end_ms: Ints
    quantity: Floats
    cost: Floats  # at list or on-demand price: unblended
    list_cost: Floats
    amortised: Floats  # what a covered row used of its commitment; of an unused row, what was left
    upfront: Floats  # the part of `amortised` that was paid up front (reservations)
    committed: Floats  # on a plan's fee: its whole commitment of that span
    used: Floats  # on a fee: what of the commitment was used
    discount: Floats  # what negotiated discounts take off this row; in a bill of discount rows they are rows
    plan: NDArray[np.int8]  # -1: none
    id: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, rows: Ints | Flags) -> Charges:
        """These rows, in this order."""
        return Charges(*(getattr(self, field.name)[rows] for field in fields(self)))


def joined(several: Sequence[Charges]) -> Charges:
    """All rows, one after another."""
    names = [field.name for field in fields(Charges)]
    return Charges(*(np.concatenate([getattr(one, name) for one in several]) for name in names))


def charges(rng: np.random.Generator, count: int, **columns: object) -> Charges:
    """`count` charges with these columns, scalars repeated; money that is not named is nan, a discount 0."""

    def column(name: str, otherwise: object, kind: type[np.generic]) -> Any:
        return np.broadcast_to(np.asarray(columns.pop(name, otherwise), dtype=kind), (count,))

    nan = float("nan")
    made = Charges(
        kind=column("kind", 0, np.int8),
        meter=column("meter", 0, np.int32),
        start_ms=column("start_ms", 0, np.int64),
        end_ms=column("end_ms", 0, np.int64),
        quantity=column("quantity", nan, np.float64),
        cost=column("cost", nan, np.float64),
        list_cost=column("list_cost", nan, np.float64),
        amortised=column("amortised", nan, np.float64),
        upfront=column("upfront", nan, np.float64),
        committed=column("committed", nan, np.float64),
        used=column("used", nan, np.float64),
        discount=column("discount", 0.0, np.float64),
        plan=column("plan", -1, np.int8),
        id=rng.integers(0, 32, (count, ID_CHARACTERS), dtype=np.uint8),
    )
    if columns:
        raise TypeError(f"no such column: {sorted(columns)}")
    return made


def nano(amount: Floats | float) -> Ints:
    """Money as whole nano-units."""
    whole: Ints = np.rint(np.asarray(amount) * NANO).astype(np.int64)
    return whole


def money(nanos: Ints) -> Floats:
    """Whole nano-units as the double whose shortest text is that amount; never -0.0."""
    return nanos / NANO + 0.0
