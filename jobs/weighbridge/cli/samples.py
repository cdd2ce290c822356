"""Sample bills: a delivery to try the night on."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from weighbridge.cli import Answer, command, say
from weighbridge.errors import Refused


@command(
    "sample-bill",
    example="weighbridge sample-bill --format cur2 --rows 100000 --period 2026-11 --out bills/aws-main",
)
@click.option("--format", required=True, help="cur2 (AWS CUR 2.0) or focus (FOCUS 1.2).")
@click.option("--rows", type=int, required=True, help="How many lines the bill has.")
@click.option("--period", required=True, help="Billing period, a month like 2026-11.")
@click.option("--seed", type=int, default=1, show_default=True, help="Another number gives another bill.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Landing place, a folder.")
@click.option("--parts", type=int, help="How many files; 3 unless the bill has fewer rows.")
@click.option(
    "--again", is_flag=True, help="The period's second delivery: late, corrected and re-tagged rows."
)
@click.option(
    "--files", default="parquet", show_default=True, help="parquet or csv; FOCUS as csv is an Azure export."
)
@click.option(
    "--delivered-at", help="When it is delivered, like 2026-12-03T04:30:00Z; follows from the period."
)
@click.option("--net", is_flag=True, help="CUR 2.0 with net cost columns, which bear the discounts.")
def sample_bill(
    format: str,
    rows: int,
    period: str,
    out: Path | str,
    seed: int = 1,
    parts: int | None = None,
    again: bool = False,
    files: str = "parquet",
    delivered_at: str | None = None,
    net: bool = False,
) -> Answer:
    """Write a realistic bill that is the same each time: a delivery with its files and manifest."""
    from weighbridge.billing.samples.delivery import write
    from weighbridge.billing.samples.order import Order

    order = Order(
        format=format,
        rows=rows,
        period=period,
        seed=seed,
        out=Path(out),
        parts=min(3, max(rows, 1)) if parts is None else parts,
        again=again,
        files=files,
        delivered_at=None if delivered_at is None else _moment(delivered_at),
        net=net,
    )
    say(f"writing a {format} bill of {rows:,} lines for {period} under {out}")
    made = write(order)
    data: dict[str, Any] = {
        "format": order.format,
        "period": order.period,
        "delivered_at": order.delivered,
        "manifest": str(made.manifest),
        "files": [{"path": str(p.path), "rows": p.rows, "bytes": p.bytes} for p in made.parts],
        "rows": made.rows,
        "untagged_rows": made.untagged_rows,
        "totals": {made.currency: {"billed": made.billed}},
    }
    return Answer(data, _told(data, made.billed, made.currency, made.shares))


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"--delivered-at is '{text}'; it is a time like 2026-12-03T04:30:00Z") from None


def _told(data: dict[str, Any], billed: Any, currency: str, shares: dict[str, float]) -> str:
    lines = [
        f"{data['rows']:,} lines in {len(data['files'])} files, "
        f"delivered {data['delivered_at']:%Y-%m-%d %H:%M} UTC"
    ]
    lines += [f"  {file['path']}  {file['rows']:,} lines, {file['bytes']:,} bytes" for file in data["files"]]
    lines.append(f"manifest: {data['manifest']}")
    if billed is not None:
        lines.append(f"billed: {billed:f} {currency}, exactly")
    share = 100 * data["untagged_rows"] / data["rows"]
    lines.append(f"{data['untagged_rows']:,} lines ({share:.1f} %) have no tag at all")
    named = ", ".join(f"{line} {part:.0%}" for line, part in shares.items() if line)
    lines.append(
        f"where the money is, of usage at list price: {named}; no known line {shares.get('', 0):.0%}"
    )
    lines.append("discounts, tax, support, credits and purchases of commitments carry no tag")
    return "\n".join(lines)
