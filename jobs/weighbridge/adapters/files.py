"""Files by relative key: a folder on this machine or a prefix in an S3 bucket, with the same promises."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Protocol

from weighbridge.errors import Refused, Unavailable
from weighbridge.ports import FileStore, StoredFile

S3_PLACE = re.compile(r"^s3a?://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?$")

# A file on its way carries this name; listings leave it out.
UNFINISHED = ".weighbridge-unfinished-"


class S3Settings(Protocol):
    """What a store needs to know of the environment; credentials come from boto3's own chain."""

    @property
    def s3_endpoint(self) -> str:
        """Address of an S3 server other than AWS, or empty."""

    @property
    def s3_region(self) -> str:
        """Region of the buckets."""


def open_store(place: str, settings: S3Settings) -> FileStore:
    """The store at a folder or `s3://bucket/prefix`. Another place is refused; nothing is created."""
    if not place:
        raise Refused("no place is named: give a folder or s3://bucket/prefix")
    if "://" not in place:
        return FolderStore(place)
    found = S3_PLACE.match(place)
    if found is None:
        raise Refused(f"'{place}' is neither a folder nor s3://bucket/prefix")
    prefix = (found[2] or "").strip("/")
    if prefix:
        checked_key(prefix)
    from weighbridge.adapters.s3 import S3Store  # boto3 is slow to import; a folder needs none

    return S3Store(found[1], prefix, settings)


def checked_key(key: str) -> str:
    """The key, when it stays under its root: relative, no `..`, no empty names, no control characters."""
    names = key.split("/")
    if key.startswith("/") or any(name in ("", ".", "..") for name in names):
        raise Refused(f"'{key}' does not stay under its root: a key is relative, without '.', '..' or '//'")
    if any(ord(char) < 32 or ord(char) == 127 for char in key):
        raise Refused(f"{key!r} has a control character")
    return key


def checked_prefix(prefix: str) -> str:
    """The prefix, when it is empty or stays under its root as a key does."""
    if prefix:
        checked_key(prefix.removesuffix("/"))
    return prefix


class FolderStore:
    """A folder of this machine. A link that leads out of it is refused."""

    def __init__(self, root: str) -> None:
        """A store at this folder, which need not exist yet."""
        self.root = str(Path(root).resolve())

    def list(self, prefix: str = "") -> Iterator[StoredFile]:
        """Files whose key begins with the prefix, ordered by key; none where nothing is there."""
        folder = checked_prefix(prefix).rpartition("/")[0]
        start = self._path(folder) if folder else Path(self.root)
        with self._errors(folder):
            found = sorted(key for key in self._walk(start) if key.startswith(prefix))
        for key in found:
            file = self.stat(key)
            if file is not None:
                yield file

    def _walk(self, folder: Path) -> Iterator[str]:
        if not folder.is_dir():
            return

        def fail(error: OSError) -> None:
            raise error

        # A folder that cannot be read must not look like an empty one.
        for at, _, names in os.walk(folder, onerror=fail):
            for name in names:
                path = Path(at, name)
                if name.startswith(UNFINISHED) or not self._is_inside(path.resolve()):
                    continue
                yield path.relative_to(self.root).as_posix()

    def stat(self, key: str) -> StoredFile | None:
        """The file as it is now, or None. The ETag changes whenever the file is written or replaced."""
        path = self._path(key)
        with self._errors(key):
            if not path.is_file():
                return None
            state = path.stat()
        return StoredFile(
            key=key,
            bytes=state.st_size,
            etag=f"{state.st_mtime_ns:x}-{state.st_size:x}-{state.st_ino:x}",
            modified=datetime.fromtimestamp(state.st_mtime, tz=UTC),
        )

    def read(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of one file, or a range of them. A missing file is refused."""
        with self._errors(key), self._path(key).open("rb") as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def write(self, key: str, content: bytes) -> None:
        """One whole file, on the disk and visible only when complete."""
        self._put(key, lambda file: file.write(content))

    def copy_from(self, other: FileStore, key: str, to: str) -> None:
        """A file of another store, unchanged, under a key of this one."""
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(local_copy(other, key))
            self._put(to, lambda file: shutil.copyfileobj(stack.enter_context(source.open("rb")), file))

    def delete(self, key: str) -> None:
        """Removes one file; none there is fine."""
        with self._errors(key):
            self._path(key).unlink(missing_ok=True)

    def clear_unfinished(self, prefix: str) -> None:
        """Removes what a writer that died left half-written below a prefix; only where nobody else writes."""
        folder = self._path(prefix.removesuffix("/"))
        with self._errors(prefix):
            for path in folder.rglob(f"{UNFINISHED}*"):
                path.unlink(missing_ok=True)

    def spark_path(self, key: str) -> str:
        """Where Spark reads this file: its absolute path."""
        return str(self._path(key))

    def download(self, key: str, to: Path) -> None:
        """One whole file into a local path."""
        with self._errors(key):
            shutil.copyfile(self._path(key), to)

    def _put(self, key: str, fill: Callable[[IO[bytes]], object]) -> None:
        path = self._path(key)
        unfinished = path.with_name(f"{UNFINISHED}{secrets.token_hex(8)}")
        with self._errors(key):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with unfinished.open("xb") as file:
                    fill(file)
                    file.flush()
                    os.fsync(file.fileno())
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
            sync_folder(path.parent)

    def _path(self, key: str) -> Path:
        path = Path(self.root, checked_key(key))
        if not self._is_inside(path.resolve()):
            raise Refused(f"{path} is a link that leads out of {self.root}; put the file itself there")
        return path

    def _is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.root)

    @contextlib.contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise Refused(f"{self.root}/{key} is not there") from error
        except PermissionError as error:
            raise Refused(
                f"{error.filename or f'{self.root}/{key}'} may not be read or written here"
            ) from error
        except OSError as error:
            raise Unavailable(f"{self.root}/{key}: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Makes a rename in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def local_copy(store: FileStore, key: str) -> Iterator[Path]:
    """A local path with this file's bytes while the context lasts: the file itself where it is local."""
    if isinstance(store, FolderStore):
        if store.stat(key) is None:
            raise Refused(f"{store.root}/{key} is not there")
        yield Path(store.spark_path(key))
        return
    with tempfile.TemporaryDirectory(prefix="weighbridge-") as folder:
        path = Path(folder, "file")
        store.download(key, path)
        yield path
