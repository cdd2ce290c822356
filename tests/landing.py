"""A small place to run nights in: a lake, a policy with one source, and sample bills that land."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path

from weighbridge.cli import run, to_json
from weighbridge.policies import RULE_COLUMNS

PERIOD = "2026-11"
ROWS = 300


class Landing:
    """A folder with `lake`, `policy` and the landing place of the source aws-main."""

    def __init__(self, home: Path) -> None:
        """Copies the example policy, and names one source and one business line in it."""
        self.home = home
        self.told = ""  # what `sample-bill` said of the last delivery, as JSON
        self.bills = home / "bills" / "aws-main"
        self.bills.mkdir(parents=True)
        policy = home / "policy"
        shutil.copytree(str(files("weighbridge") / "policy"), policy)
        (policy / "sources.yaml").write_text(
            "sources:\n"
            "  - name: aws-main\n"
            "    provider: AWS\n"
            '    payer_account: "100000000001"\n'
            "    format: cur-2.0\n"
            f"    landing: {self.bills}\n"
        )
        rule = dict.fromkeys(RULE_COLUMNS, "")
        rule |= {"rule_id": "ads-tag", "kind": "tag", "match": "ads", "business_line": "Advertising"}
        (policy / "business_lines.csv").write_text(
            ",".join(RULE_COLUMNS) + "\n" + ",".join(rule[column] for column in RULE_COLUMNS) + "\n"
        )

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to work here."""
        return {
            "WEIGHBRIDGE_LAKE": str(self.home / "lake"),
            "WEIGHBRIDGE_POLICY": str(self.home / "policy"),
        }

    def deliver(self, *, again: bool = False) -> Path:
        """A sample bill lands, the second delivery with `again`; its first part."""
        answer = run("sample-bill", format="cur2", rows=ROWS, period=PERIOD, out=self.bills, again=again)
        self.told = to_json(answer.data)
        return Path(answer.data["files"][0]["path"])
