"""The charges of a sample bill, block by block, so that a large bill needs little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from weighbridge.billing.samples.charges import (
    Charges,
    Flags,
    Floats,
    Ints,
    Kind,
    charges,
    joined,
    money,
    nano,
)
from weighbridge.billing.samples.meters import Draw, cut, fleet
from weighbridge.billing.samples.one_offs import (
    RESERVED_ACCOUNT,
    SHARED_ACCOUNT,
    OneOff,
    chosen,
    plan_product,
    reserved_product,
    unmetered,
)
from weighbridge.billing.samples.order import HOUR_MS, Order

BLOCK_ROWS = 240_000
COVERED_SHARE, RESERVED_SHARE = 10, 50  # one row in so many
PLAN_PRICE, RESERVATION_PRICE = 0.62, 0.6  # of the list price
PLAN_SHARES = (0.95, 0.05)
PLAN_RECURRING = (1.0, 0.5)  # what of a plan is paid monthly; the rest was paid up front
DISCOUNT_PERCENT = 6
LATE_SHARE, CORRECTED_SHARE, REMOVED_SHARE = 0.015, 0.005, 0.0005


class Stream:
    """One bill: its meters, and its charges in blocks of about a quarter of a million rows.

    Identities that hold to the last digit: per plan and span, used by covered rows + unused = committed; per
    reservation over the month likewise; per account and span, the enterprise discount is the sum of its rows.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.rows_cur = order.format == "cur2"
        self.one_offs: list[OneOff] = chosen(order)
        cloud, slots = order.cloud, order.slots
        plans, accounts = len(cloud.plans), len(cloud.accounts)
        per_slot = (plans + accounts if self.rows_cur else 2 * plans) if order.committed else 0
        # At the end: what was bought up front (a plan, a reservation) and the month's reservation fee.
        at_end = (3 if self.rows_cur else 4) if order.committed else 0
        overhead = slots * per_slot + len(self.one_offs) + at_end
        self.counts = np.asarray([end - begin for begin, end in cut(order.rows - overhead, slots)])
        self.meters = fleet(order, overhead / order.rows)
        everything = range(len(self.meters))
        self.any_meter = Draw(everything, self.meters)
        self.planned = Draw([m for m in everything if self.meters[m].product.plan], self.meters)
        self.reserved = Draw([m for m in everything if self.meters[m].product.reserved], self.meters)
        self.first_discount = len(self.meters)
        self.meters += [
            unmetered(replace(cloud.products[0], usage="", instance=""), a) for a in range(accounts)
        ]
        self.plan_meter = len(self.meters)
        self.meters.append(unmetered(plan_product(cloud), SHARED_ACCOUNT))
        self.reservation_meter = len(self.meters)
        self.meters.append(unmetered(reserved_product(cloud), RESERVED_ACCOUNT))
        self.first_one_off = len(self.meters)
        self.meters += [one.meter for one in self.one_offs]
        self.rate_nano = nano(np.asarray([m.product.rate for m in self.meters]))
        self.rate = np.asarray([m.product.rate for m in self.meters])
        self.fine = np.asarray([m.product.fine for m in self.meters])
        self.hourly = np.asarray([m.product.unit in ("Hrs", "Hours") for m in self.meters])
        self.account = np.asarray([m.account for m in self.meters])
        self.start_ms = int(order.start.timestamp()) * 1000
        covered = float(np.mean(self.counts // COVERED_SHARE)) * 3.0 * PLAN_PRICE
        self.committed = nano(np.asarray([round(max(covered * share, 0.001), 3) for share in PLAN_SHARES]))
        self.reserved_fee = int(
            nano(max(0.001, round(float(np.mean(self.counts // RESERVED_SHARE)) * 0.2, 3)))
        )
        self.reserved_used = self.reserved_used_upfront = 0

    def blocks(self) -> Iterator[Charges]:
        """All charges, a few slots at a time and mixed within them; the month's own charges come last."""
        slots = self.order.slots
        width = max(1, int(BLOCK_ROWS // (self.order.rows / slots)))
        for number, first in enumerate(range(0, slots, width)):
            last = min(first + width, slots)
            rng = np.random.default_rng(self.order.entropy(3, number))
            parts = self._slots(rng, number, first, last)
            if last == slots:
                parts += self._month(rng)
            block = joined(parts)
            yield block.take(np.random.default_rng(self.order.entropy(5, number)).permutation(len(block)))

    def _slots(self, rng: np.random.Generator, number: int, first: int, last: int) -> list[Charges]:
        counts = self.counts[first:last]
        every = np.arange(first, last)
        if not self.order.committed:
            return [self._edited(self._usage(rng, np.repeat(every, counts)), number, first, last)]
        covered, fees = self._covered(rng, np.repeat(every, counts // COVERED_SHARE), first, last)
        reserved = self._reserved(rng, np.repeat(every, counts // RESERVED_SHARE), first, last)
        taken = counts // COVERED_SHARE * len(covered) + counts // RESERVED_SHARE
        # Ids of the discounts are drawn before a second delivery's edits, to stay the same.
        discounts = self._discounts(rng, first, last)
        usage = self._edited(self._usage(rng, np.repeat(every, counts - taken)), number, first, last)
        if self.rows_cur:
            fees.append(self._filled(discounts, usage, first))
        return [*covered, *fees, reserved, usage]

    def _hours_of(self, rng: np.random.Generator, slots: Ints) -> dict[str, Ints]:
        hours = slots * self.order.slot_hours + rng.integers(0, self.order.slot_hours, len(slots))
        start = self.start_ms + hours * HOUR_MS
        return {"start_ms": start, "end_ms": start + HOUR_MS}

    def _spans(self, slots: Ints) -> dict[str, Ints]:
        span = self.order.slot_hours * HOUR_MS
        return {"start_ms": self.start_ms + slots * span, "end_ms": self.start_ms + (slots + 1) * span}

    def _usage(self, rng: np.random.Generator, slots: Ints) -> Charges:
        count = len(slots)
        meter = self.any_meter(rng, count)
        part = rng.integers(1, 1000, count)
        hours = np.where(rng.random(count) < 0.7, 1000, part) / 1000
        bulk = np.rint(np.exp(rng.normal(2.0, 1.2, count)) * 1000) / 1000
        fine = np.rint(np.exp(rng.normal(7.5, 1.5, count))) + 1
        quantity = np.where(self.fine[meter], fine, np.where(self.hourly[meter], hours, bulk))
        drawn = charges(
            rng, count, kind=Kind.USAGE, meter=meter, quantity=quantity, **self._hours_of(rng, slots)
        )
        return self._priced(drawn)

    def _priced(self, usage: Charges) -> Charges:
        """Usage with the cost of its quantity, and what the enterprise agreement takes off coarse units."""
        fine = self.fine[usage.meter]
        milli = np.where(fine, 0, np.rint(usage.quantity * 1000)).astype(np.int64)
        nanos = self.rate_nano[usage.meter] * milli // 1000
        cost = np.where(fine, self.rate[usage.meter] * usage.quantity, money(nanos))
        off = money(nanos * DISCOUNT_PERCENT // 100) if self.order.committed else np.zeros(len(usage))
        return replace(usage, cost=cost, list_cost=cost, discount=off)

    def _used(self, weights: Floats, group: Ints, allowed: Ints) -> Ints:
        """Nano-units per row: each group's allowance shared by weight, rounded down, so never exceeded."""
        sums = np.bincount(group, weights, len(allowed))
        shares: Ints = np.floor(weights / sums[group] * allowed[group]).astype(np.int64)
        return shares

    def _covered(
        self, rng: np.random.Generator, slots: Ints, first: int, last: int
    ) -> tuple[list[Charges], list[Charges]]:
        plans, count = len(PLAN_SHARES), len(slots)
        allowed = np.tile(self.committed, last - first) * rng.uniform(0.82, 0.995, (last - first) * plans)
        plan = (rng.random(count) < PLAN_SHARES[1]).astype(np.int64)
        group = (slots - first) * plans + plan
        meter = self.planned(rng, count)
        weights = self.rate[meter] * rng.lognormal(0, 0.3, count)
        used = self._used(weights, group, allowed.astype(np.int64))
        listed = nano(used / 1e9 / PLAN_PRICE)
        common = dict(
            meter=meter, plan=plan, quantity=money(listed) / self.rate[meter], **self._hours_of(rng, slots)
        )
        rows = charges(
            rng,
            count,
            kind=Kind.COVERED,
            cost=money(listed),
            list_cost=money(listed),
            amortised=money(used),
            **common,
        )
        negation = charges(rng, count, kind=Kind.NEGATION, cost=money(-listed), list_cost=0.0, **common)
        total = np.bincount(group, used, (last - first) * plans).astype(np.int64)
        every = np.repeat(np.arange(first, last), plans)
        fee = dict(meter=self.plan_meter, plan=np.tile(np.arange(plans), last - first), **self._spans(every))
        committed = np.tile(self.committed, last - first)
        recurring = nano(committed / 1e9 * np.tile(PLAN_RECURRING, last - first))
        fees = charges(
            rng, len(every), kind=Kind.PLAN_FEE, cost=money(recurring), list_cost=0.0,
            quantity=self.order.slot_hours, committed=money(committed), used=money(total),
            amortised=money(committed - total), **fee,
        )  # fmt: skip
        if self.rows_cur:
            return [rows, negation], [fees]
        left = money(committed - total)
        unused = charges(
            rng, len(every), kind=Kind.PLAN_UNUSED, cost=0.0, list_cost=left, amortised=left, **fee
        )
        return [rows], [fees, unused]

    def _reserved(self, rng: np.random.Generator, slots: Ints, first: int, last: int) -> Charges:
        allowed = (self.reserved_fee * rng.uniform(0.8, 0.97, last - first)).astype(np.int64)
        meter = self.reserved(rng, len(slots))
        used = self._used(rng.lognormal(0, 0.3, len(slots)), slots - first, allowed)
        upfront = used - used // 2
        self.reserved_used += int(used.sum())
        self.reserved_used_upfront += int(upfront.sum())
        listed = money(nano(used / 1e9 / RESERVATION_PRICE))
        return charges(
            rng, len(slots), kind=Kind.RESERVED, meter=meter, cost=0.0, list_cost=listed,
            amortised=money(used), upfront=money(upfront), quantity=listed / self.rate[meter],
            **self._hours_of(rng, slots),
        )  # fmt: skip

    def _discounts(self, rng: np.random.Generator, first: int, last: int) -> Charges:
        accounts = len(self.order.cloud.accounts)
        every = np.repeat(np.arange(first, last), accounts)
        meter = self.first_discount + np.tile(np.arange(accounts), last - first)
        return charges(rng, len(every), kind=Kind.ENTERPRISE_DISCOUNT, meter=meter, **self._spans(every))

    def _filled(self, discounts: Charges, usage: Charges, first: int) -> Charges:
        """The discount rows with what they take off the usage of their account and span."""
        accounts = len(self.order.cloud.accounts)
        slot = (usage.start_ms - self.start_ms) // (HOUR_MS * self.order.slot_hours)
        group = (slot - first) * accounts + self.account[usage.meter]
        total = np.bincount(group, nano(usage.discount), len(discounts)).astype(np.int64)
        return replace(discounts, cost=money(-total))

    def _edited(self, usage: Charges, number: int, first: int, last: int) -> Charges:
        """What a second delivery makes of usage: late in the month some corrected, few gone, more rows."""
        if not self.order.again:
            return usage
        rng = np.random.default_rng(self.order.entropy(4, number))
        slots, rows = self.order.slots, self.order.rows
        window = slots - max(1, slots // 10)
        removed = max(1 if rows >= 20 else 0, round(rows * REMOVED_SHARE))
        late = max(removed + 1, round(rows * LATE_SHARE))
        corrected = max(1, round(rows * CORRECTED_SHARE))

        def here(total: int) -> int:
            passed = [min(max(slot - window, 0), slots - window) for slot in (first, last)]
            begin, end = (total * slot // (slots - window) for slot in passed)
            return end - begin

        slot = (usage.start_ms - self.start_ms) // (HOUR_MS * self.order.slot_hours)
        open_rows = rng.permutation(np.flatnonzero(slot >= window))
        touched = open_rows[: here(corrected)]
        quantity = usage.quantity.copy()
        quantity[touched] += np.where(self.fine[usage.meter[touched]], 1000, 0.25)
        kept = np.ones(len(usage), dtype=bool)
        kept[open_rows[len(touched) : len(touched) + here(removed)]] = False
        kept_usage = self._priced(replace(usage, quantity=quantity)).take(kept)
        lates = (
            rng.integers(max(first, window), last, here(late)) if last > window else np.zeros(0, dtype=int)
        )
        return joined([kept_usage, self._usage(rng, lates)])

    def _month(self, rng: np.random.Generator) -> list[Charges]:
        """What is charged once a month, and the reservation's fee, now that its use is known."""
        month = dict(start_ms=self.start_ms, end_ms=self.start_ms + self.order.hours * HOUR_MS)
        made = []
        for n, one in enumerate(self.one_offs):
            days = one.days or (0, self.order.hours // 24)
            start, end = (self.start_ms + day * 24 * HOUR_MS for day in days)
            listed = one.cost if one.kind in (Kind.USAGE, Kind.FEE) else float("nan")
            made.append(
                charges(
                    rng, 1, kind=one.kind, meter=self.first_one_off + n, start_ms=start, end_ms=end,
                    quantity=1.0, cost=one.cost, list_cost=listed, discount=one.discount, plan=one.plan,
                )
            )  # fmt: skip
        return made + (self._commitments(rng, month) if self.order.committed else [])

    def _commitments(self, rng: np.random.Generator, month: dict[str, int]) -> list[Charges]:
        total = self.reserved_fee * self.order.slots
        recurring, upfront = total // 2, total - total // 2
        left = total - self.reserved_used
        left_upfront = upfront - self.reserved_used_upfront
        year = 12 * self.order.slots
        bought = dict(
            start_ms=month["start_ms"], end_ms=month["start_ms"] + HOUR_MS, quantity=1.0, list_cost=0.0
        )

        def row(kind: Kind, meter: int, nanos: int, **columns: object) -> Charges:
            return charges(rng, 1, kind=kind, meter=meter, cost=nanos / 1e9, **columns)

        plan_upfront = int(self.committed[1]) - round(int(self.committed[1]) * PLAN_RECURRING[1])
        fee = dict(
            amortised=left / 1e9, upfront=left_upfront / 1e9, committed=total / 1e9, quantity=self.order.hours
        )
        rows = [
            row(Kind.PLAN_UPFRONT, self.plan_meter, plan_upfront * year, plan=1, **bought),
            row(Kind.RESERVATION_UPFRONT, self.reservation_meter, upfront * 12, **bought),
            row(Kind.RESERVATION_FEE, self.reservation_meter, recurring, list_cost=0.0, **fee, **month),
        ]
        if not self.rows_cur:
            unused = dict(fee, list_cost=left / 1e9)
            rows.append(row(Kind.RESERVATION_UNUSED, self.reservation_meter, 0, **unused, **month))
        return rows


def in_window(order: Order, start_ms: NDArray[np.int64]) -> Flags:
    """Which charges start in the last days, where a second delivery differs in money."""
    window = order.slots - max(1, order.slots // 10)
    slot = (start_ms - int(order.start.timestamp()) * 1000) // (HOUR_MS * order.slot_hours)
    return np.asarray(slot >= window)
