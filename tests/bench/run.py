"""`make bench`: measures nights and roll-ups beside their floors and writes docs/bench.md.

Try it small: `.venv/bin/python tests/bench/run.py --rows 400000 --only night --page build/bench/try.md`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import machine
import nights
import page
import rollups

ROWS = [5_000_000, 20_000_000]


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="sizes of the bills")
    parser.add_argument("--only", choices=["night", "rollup"], help="one kind alone")
    parser.add_argument(
        "--page", type=Path, default=nights.CHECKOUT / "docs" / "bench.md", help="where it is written"
    )
    return parser.parse_args()


def main() -> None:
    """Measures, writes the page after each step, and ends with what to look at. Differing tables end it."""
    asked = arguments()
    described = machine.described()
    nights_found: list[nights.Nights] = []
    rollups_found: list[rollups.RollUps] = []
    for rows in asked.rows:
        if asked.only != "rollup":
            nights_found.append(nights.measure(rows))
        if asked.only != "night":
            rollups_found.append(rollups.measure(rows))
        asked.page.parent.mkdir(parents=True, exist_ok=True)
        asked.page.write_text(page.page(described, nights_found, rollups_found))
    print("bench: targets", file=sys.stderr)
    for target in page.targets(nights_found, rollups_found):
        print(f"bench:   {target}", file=sys.stderr)
    nights.say(f"to look at: {asked.page}; what each night said: {nights.BUILD}/night-*.log")


if __name__ == "__main__":
    main()
