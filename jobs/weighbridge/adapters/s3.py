"""Files in an S3 bucket, by relative key under a prefix, and the conditional writes that a lease needs."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weighbridge.adapters.files import S3Settings, checked_key, checked_prefix, local_copy
from weighbridge.errors import Refused, Unavailable
from weighbridge.ports import FileStore, StoredFile


@dataclass(frozen=True)
class Record:
    """A small object with what a conditional write needs: its ETag and its age by the server's own clock."""

    content: bytes
    etag: str
    age_s: float


DENIED = {
    "403", "AccessDenied", "AllAccessDisabled", "ExpiredToken", "Forbidden", "InvalidAccessKeyId",
    "InvalidToken", "SignatureDoesNotMatch",
}  # fmt: skip
MISSING = {"404", "NoSuchKey", "NotFound"}
OVERTAKEN = {"409", "412", "ConditionalRequestConflict", "PreconditionFailed"}


class S3Store:
    """A prefix in an S3 bucket. Short retries are botocore's; what stays is Unavailable or Refused."""

    def __init__(self, bucket: str, prefix: str, settings: S3Settings) -> None:
        """A store at this prefix. Another server than AWS is addressed by path, as it has no DNS names."""
        import boto3
        from botocore.config import Config

        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self.root = f"s3://{bucket}/{prefix}".rstrip("/")
        self.endpoint = settings.s3_endpoint
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=settings.s3_endpoint or None,
            region_name=settings.s3_region,
            config=Config(
                connect_timeout=10,
                read_timeout=60,
                retries={"mode": "standard", "total_max_attempts": 4},
                s3={"addressing_style": "path" if settings.s3_endpoint else "auto"},
            ),
        )

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Files whose key begins with the prefix, ordered by key; none where nothing is there."""
        wanted = self.prefix + checked_prefix(prefix)
        found: builtins.list[StoredFile] = []
        with self._errors(prefix):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=wanted)
            for page in pages:
                found += [
                    self._stored(item["Key"], item["Size"], item["ETag"], item["LastModified"])
                    for item in page.get("Contents", [])
                    if not item["Key"].endswith("/")  # a folder made in a console is no file
                ]
        # AWS orders by key; not every S3 server does.
        yield from sorted(found, key=lambda file: file.key)

    def stat(self, key: str) -> StoredFile | None:
        """The file as it is now, or None."""
        name = self.prefix + checked_key(key)
        with self._errors(key):
            try:
                head = self._client.head_object(Bucket=self.bucket, Key=name)
            except Exception as error:
                if _code(error) in MISSING:
                    return None
                raise
        return self._stored(name, head["ContentLength"], head["ETag"], head["LastModified"])

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of one file, or a range of them. A missing file is refused."""
        name = self.prefix + checked_key(key)
        if length == 0:
            return b""
        wanted = {}
        if start or length is not None:
            wanted["Range"] = f"bytes={start}-{'' if length is None else start + length - 1}"
        with self._errors(key):
            try:
                body: bytes = self._client.get_object(Bucket=self.bucket, Key=name, **wanted)["Body"].read()
            except Exception as error:
                if _code(error) in ("InvalidRange", "416"):  # a range behind the end is empty, as in a file
                    return b""
                raise
        return body

    def write(self, key: str, content: bytes) -> None:
        """One whole file, visible only when complete."""
        name = self.prefix + checked_key(key)
        with self._errors(key):
            self._client.put_object(Bucket=self.bucket, Key=name, Body=content)

    def copy_from(self, other: FileStore, key: str, to: str) -> None:
        """A file of another store, unchanged, under a key of this one; within one server no bytes travel."""
        name = self.prefix + checked_key(to)
        if isinstance(other, S3Store) and other.endpoint == self.endpoint:
            source = {"Bucket": other.bucket, "Key": other.prefix + checked_key(key)}
            with other._errors(key):
                self._client.copy(source, self.bucket, name)
            return
        with local_copy(other, key) as path, self._errors(to):
            self._client.upload_file(str(path), self.bucket, name)

    def delete(self, key: str) -> None:
        """Removes one file; none there is fine."""
        name = self.prefix + checked_key(key)
        with self._errors(key):
            self._client.delete_object(Bucket=self.bucket, Key=name)

    def clear_unfinished(self, prefix: str) -> None:
        """Ends uploads in parts that a writer that died left open below a prefix: their parts are paid for."""
        wanted = self.prefix + checked_prefix(prefix)
        with self._errors(prefix):
            pages = self._client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self.bucket, Prefix=wanted):
                for upload in page.get("Uploads", []):
                    if upload["Key"].startswith(wanted):
                        self._client.abort_multipart_upload(
                            Bucket=self.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )

    def spark_path(self, key: str) -> str:
        """Where Spark reads this file: `s3a://bucket/key`."""
        return f"s3a://{self.bucket}/{self.prefix}{checked_key(key)}"

    def download(self, key: str, to: Path) -> None:
        """One whole file into a local path."""
        name = self.prefix + checked_key(key)
        with self._errors(key):
            self._client.download_file(self.bucket, name, str(to))

    def record(self, key: str) -> Record | None:
        """A small object with its ETag, and its age in seconds by the server's own clock; or None."""
        from email.utils import parsedate_to_datetime

        with self._errors(key):
            try:
                got = self._client.get_object(Bucket=self.bucket, Key=self.prefix + checked_key(key))
                content = got["Body"].read()
            except Exception as error:
                if _code(error) in MISSING:
                    return None
                raise
        now = parsedate_to_datetime(got["ResponseMetadata"]["HTTPHeaders"]["date"])
        return Record(content, got["ETag"], (now - got["LastModified"]).total_seconds())

    def put_if(self, key: str, content: bytes, match: str | None) -> str | None:
        """The new ETag, or None where another was faster: the object is not `match` (None: absent) now."""
        name = self.prefix + checked_key(key)
        condition = {"IfNoneMatch": "*"} if match is None else {"IfMatch": match}
        with self._errors(key):
            try:
                put = self._client.put_object(Bucket=self.bucket, Key=name, Body=content, **condition)
            except Exception as error:
                # If-Match on an object that is gone answers "no such key": overtaken as well.
                if _code(error) in OVERTAKEN | (MISSING if match else set()):
                    return None
                raise
        etag: str = put["ETag"]
        return etag

    def _stored(self, name: str, size: int, etag: str, modified: datetime) -> StoredFile:
        return StoredFile(name.removeprefix(self.prefix), size, etag.strip('"'), modified.astimezone(UTC))

    @contextlib.contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        """Says what went wrong at which place; of the server's words only its code is repeated."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            NoCredentialsError,
            PartialCredentialsError,
        )

        place = f"{self.root}/{key}".rstrip("/")
        try:
            yield
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise Refused(
                f"{place}: no S3 credentials in the environment and no role on this machine"
            ) from error
        except ClientError as error:
            code = _code(error)
            if code == "NoSuchBucket":
                raise Refused(f"{place}: there is no bucket '{self.bucket}'") from error
            if code in MISSING:
                raise Refused(f"{place} is not there") from error
            if code in DENIED:
                raise Refused(
                    f"{place}: the server denies it ({code}); check credentials and bucket policy"
                ) from error
            raise Unavailable(f"{place}: the S3 server answered {code}") from error
        except (BotoCoreError, Boto3Error) as error:
            raise Unavailable(f"{place}: the S3 server did not answer ({type(error).__name__})") from error


def _code(error: BaseException) -> str:
    """The S3 error code of a botocore error, or empty."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))
