"""A landing place, a policy and a lake on one S3 server, and what is asked of them there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proof import nights
from proof.nights import Answered

if TYPE_CHECKING:
    from s3_server import S3Server


@dataclass(frozen=True)
class Bucket:
    """One prefix of the bucket with `landing`, `policy` and `lake`; `home` is where bills are written first."""

    server: S3Server
    prefix: str
    home: Path

    @property
    def lake(self) -> str:
        """The lake's place."""
        return f"s3://{self.server.bucket}/{self.prefix}/lake"

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs needs to read the lake."""
        return self.server.storage_options

    @property
    def env(self) -> dict[str, str]:
        """What a process needs to work here."""
        policy = f"s3://{self.server.bucket}/{self.prefix}/policy"
        return {**self.server.env, "WEIGHBRIDGE_LAKE": self.lake, "WEIGHBRIDGE_POLICY": policy}

    def set_up(self) -> None:
        """The policy, whose one source lands here, is uploaded."""
        landing = f"s3://{self.server.bucket}/{self.prefix}/landing"
        nights.write_policy(self.home / "policy", landing)
        self.server.upload(self.home / "policy", f"{self.prefix}/policy")

    def deliver(self, *, again: bool = False) -> dict[str, Any]:
        """A sample bill lands on S3; what the generator says of it."""
        arguments = ["--format", "cur2", "--rows", str(nights.ROWS), "--period", nights.PERIOD]
        arguments += ["--seed", str(nights.SEED), "--out", str(self.home / "bills"), "--json"]
        said = nights.weighbridge({}, "sample-bill", *arguments, *(["--again"] if again else []))
        assert said.code == 0, said.err
        self.server.upload(self.home / "bills", f"{self.prefix}/landing")
        return dict(said.data)

    def weighbridge(self, *arguments: str) -> Answered:
        """One command, as a process that knows of this place by its environment alone."""
        return nights.weighbridge(self.env, *arguments)
