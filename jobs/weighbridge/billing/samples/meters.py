"""The fleet behind a sample bill: one meter per product of a resource, with its account, region and tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weighbridge.billing.samples.catalogue import (
    ENVIRONMENTS,
    LINES,
    UNKNOWN_VALUES,
    Cloud,
    Product,
    resource_id,
)
from weighbridge.billing.samples.order import Order

Tags = tuple[tuple[str, str], ...]
Ints = NDArray[np.int32]

UNTAGGED_SHARE = 0.05
SERVING = ("instance", "endpoint", "profile", "virtualmachine", "openai", "mlendpoint")


@dataclass(frozen=True)
class Meter:
    """What one row of usage is about. `tags` keys are as people write them; each format adds its prefix."""

    product: Product
    account: int
    region: int  # -1: none
    resource: str | None
    tags: Tags
    weight: float = 0.0


class Draw:
    """Draws members of a group of meters by their popularity."""

    def __init__(self, members: Sequence[int], meters: Sequence[Meter]) -> None:
        self.members = np.asarray(members, dtype=np.int32)
        weights = np.asarray([meters[m].weight for m in members])
        self.cumulative = np.cumsum(weights) / max(weights.sum(), 1e-300)

    def __call__(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` meter numbers."""
        found = np.searchsorted(self.cumulative, rng.random(count), side="right")
        drawn: Ints = self.members[np.minimum(found, len(self.members) - 1)]
        return drawn


def fleet(order: Order, overhead_share: float) -> list[Meter]:
    """The meters of a bill, popular ones rare (Pareto). `overhead_share` of its rows is untaggable anyway.

    A second delivery has the same meters; some that had no tags have them now, and a few changed their line.
    """
    rng = np.random.default_rng(order.entropy(1))
    wanted = int(np.clip(order.rows // 200, 90, 60_000))
    cloud = order.cloud
    products = cloud.products
    chances = np.asarray([p.weight for p in products])
    # Every product is there, so that small bills have commitments too.
    chosen = np.concatenate(
        [
            np.arange(len(products)),
            rng.choice(len(products), wanted - len(products), p=chances / chances.sum()),
        ]
    )
    meters = [_meter(rng, cloud, products[int(p)]) for p in chosen]
    untagged = max(0.005, UNTAGGED_SHARE - overhead_share) / max(1e-9, 1 - overhead_share)
    for pool in _pools(meters):
        for m in _about(rng, pool, meters, untagged):
            meters[m] = _with_tags(meters[m], ())
    return _tagged_later(order, meters) if order.again else meters


def _pools(meters: Sequence[Meter]) -> list[list[int]]:
    """Meters that rows are drawn from together: on savings plans, on reservations, others."""
    pools: list[list[int]] = [[], [], []]
    for m, meter in enumerate(meters):
        pools[0 if meter.product.plan else 1 if meter.product.reserved else 2].append(m)
    return pools


def _about(rng: np.random.Generator, pool: Sequence[int], meters: Sequence[Meter], share: float) -> list[int]:
    """Members of a pool that together have about this share of its weight, never more."""
    room = share * sum(meters[m].weight for m in pool)
    taken = []
    for m in rng.permutation(np.asarray(pool)).tolist():
        if meters[m].weight <= room:
            room -= meters[m].weight
            taken.append(m)
    return taken


def _with_tags(meter: Meter, tags: Tags) -> Meter:
    return Meter(meter.product, meter.account, meter.region, meter.resource, tags, meter.weight)


def _meter(rng: np.random.Generator, cloud: Cloud, product: Product) -> Meter:
    line = int(rng.choice(len(LINES), p=[one.share for one in LINES]))
    model = str(rng.choice(LINES[line].models))
    account = line if rng.random() < 0.85 else int(rng.integers(len(LINES), len(cloud.accounts)))
    region = int(rng.choice(len(cloud.regions), p=[0.35, 0.2, 0.2, 0.1, 0.08, 0.07]))
    resource = resource_id(
        cloud,
        product.shape,
        cloud.regions[region][0],
        cloud.accounts[account][0],
        LINES[line].slug,
        model,
        rng.bytes(8).hex(),
    )
    popularity = min(float(rng.pareto(1.2)) + 0.2, 12.0)
    return Meter(product, account, region, resource, _tags(rng, line, model, product), popularity)


def _tags(rng: np.random.Generator, line: int, model: str, product: Product) -> Tags:
    """What people wrote on a resource: mostly well, sometimes misspelled, unknown, or beside the point."""
    luck, one = rng.random(), LINES[line]
    environment = ("environment", str(rng.choice(ENVIRONMENTS)))
    if luck < 0.03:  # tags, but none that says who pays
        return (
            environment,
            ("name", f"{model}-{rng.bytes(2).hex()}"),
            ("aws:created_by", "AssumedRole:deployer"),
        )
    tags = []
    if luck < 0.05:
        tags.append(("business_unit", str(rng.choice(UNKNOWN_VALUES))))
    elif luck < 0.11:
        tags.append(("team", one.team))
    else:
        spelled = 0 if rng.random() < 0.75 else int(rng.integers(1, len(one.spellings)))
        tags.append(("business_unit", one.spellings[spelled]))
        if rng.random() < 0.6:
            tags.append(("team", one.team))
    if product.shape in SERVING or rng.random() < 0.5:
        tags.append(("model_version", model))
    if rng.random() < 0.9:
        tags.append(environment)
    if rng.random() < 0.6:
        tags.append(("tenant", str(rng.choice(one.tenants))))
    return tuple(tags)


def _tagged_later(order: Order, meters: Sequence[Meter]) -> list[Meter]:
    """The fleet with the tags that a second delivery brings."""
    rng = np.random.default_rng(order.entropy(2))
    changed = list(meters)
    bare = [m for m, meter in enumerate(meters) if not meter.tags]
    told = [m for m, meter in enumerate(meters) if ("business_unit", LINES[0].spellings[0]) in meter.tags]
    for m in rng.permutation(np.asarray(bare, dtype=int))[: max(1, len(bare) // 10)].tolist():
        line = min(meters[m].account, len(LINES) - 1)
        tags = (("business_unit", LINES[line].spellings[0]), ("model_version", LINES[line].models[0]))
        changed[m] = _with_tags(meters[m], tags)
    for m in rng.permutation(np.asarray(told, dtype=int))[: max(1, len(told) // 50)].tolist():
        moved = tuple((k, LINES[1].spellings[0] if k == "business_unit" else v) for k, v in meters[m].tags)
        changed[m] = _with_tags(meters[m], moved)
    return changed


def cut(total: int, pieces: int) -> list[tuple[int, int]]:
    """Begin and end of `pieces` nearly equal runs of `total` things."""
    bounds = [total * n // pieces for n in range(pieces + 1)]
    return list(pairwise(bounds))
