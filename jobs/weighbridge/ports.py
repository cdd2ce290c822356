"""What the core asks of the outside, in our words; adapters answer, fakes remember."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class StoredFile:
    """A file in a landing place or archive, as its store describes it. `key` is relative to the store's root."""

    key: str
    bytes: int
    etag: str
    modified: datetime


class FileStore(Protocol):
    """A folder or an `s3://` prefix, read and written by relative key with `/` between names."""

    root: str

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Files under a prefix, ordered by key; none where nothing is there."""

    def stat(self, key: str) -> StoredFile | None:
        """The file as it is now, or None."""

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of one file, or a range of them. Raises Unavailable where the store does not answer."""

    def write(self, key: str, content: bytes) -> None:
        """One whole file, visible only when complete."""

    def copy_from(self, other: FileStore, key: str, to: str) -> None:
        """A file of another store, unchanged, under a key of this one."""

    def delete(self, key: str) -> None:
        """Removes one file; none there is fine."""

    def clear_unfinished(self, prefix: str) -> None:
        """Removes what a writer that died left half-written below a prefix; only where nobody else writes."""

    def spark_path(self, key: str) -> str:
        """Where Spark reads this file: a plain path or `s3a://`."""

    def download(self, key: str, to: Path) -> None:
        """One whole file into a local path."""


class Progress(Protocol):
    """Told what a run does as it goes; a phase is a named point at which it may be interrupted."""

    def say(self, text: str) -> None:
        """One line for the person who watches, on stderr."""

    def phase(self, name: str, of: Sequence[str] = ()) -> None:
        """The run enters a named phase, for (source, period) where there is one."""
