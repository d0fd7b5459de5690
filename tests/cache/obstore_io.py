"""Files of Iceberg tables, written to a bucket with one request each.

PyArrow uploads in parts, which versitygw refuses at times; so tests write by this, and what is tested reads by PyArrow.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from obstore.store import S3Store
from pyiceberg.io import FileIO, InputFile, OutputFile

if TYPE_CHECKING:
    from pyiceberg.typedef import Properties


class ObstoreIO(FileIO):
    """Reads and writes `s3://BUCKET/KEY`."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        config = {
            "endpoint": properties["s3.endpoint"],
            "access_key_id": properties["s3.access-key-id"],
            "secret_access_key": properties["s3.secret-access-key"],
            "region": properties["s3.region"],
        }
        self._store = S3Store("bucket", config=config, client_options={"allow_http": True})  # type: ignore[arg-type] # its keys are literals

    def new_input(self, location: str) -> InputFile:
        """Return a file for reading."""
        return _Input(location, self._store)

    def new_output(self, location: str) -> OutputFile:
        """Return a file for writing."""
        return _Output(location, self._store)

    def delete(self, location: Any) -> None:
        """Leave it: nothing is deleted here."""


def _key(location: str) -> str:
    return location.removeprefix("s3://bucket/")


class _Input(InputFile):
    def __init__(self, location: str, store: S3Store) -> None:
        super().__init__(location)
        self._store = store

    def __len__(self) -> int:
        return int(self._store.head(_key(self.location))["size"])

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:
        del seekable
        return BytesIO(bytes(self._store.get(_key(self.location)).bytes()))


class _Output(OutputFile):
    def __init__(self, location: str, store: S3Store) -> None:
        super().__init__(location)
        self._store = store

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._store)

    def create(self, overwrite: bool = False) -> Any:
        del overwrite
        return _Upload(self._store, _key(self.location))


class _Upload(BytesIO):
    """What is written, put when it is closed."""

    def __init__(self, store: S3Store, key: str) -> None:
        super().__init__()
        self._store, self._name = store, key

    def close(self) -> None:
        if not self.closed:
            self._store.put(self._name, self.getvalue())
        super().close()
