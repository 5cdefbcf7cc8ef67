"""Copies of blobs in files of this machine, for readers that know nothing else."""

import weakref
from pathlib import Path

from graticule.storage.protocol import BlobInfo
from graticule.storage.temporary_folders import new_folder, remove_folder


class LocalCopies:
    """Keeps the copies of one dataset, the last that was asked for: the parts of a Shapefile lie beside each other."""

    def __init__(self) -> None:
        self._folder = new_folder()
        self._dataset = ""
        self._kept: dict[str, str] = {}
        weakref.finalize(self, remove_folder, self._folder)

    def place(self, blob: BlobInfo) -> Path:
        """Tell where the copy of a blob is to be, or is."""
        folder, _, name = blob.path.rpartition("/")
        dataset = f"{folder}/{name.partition('.')[0]}"
        if dataset != self._dataset:
            self._forget()
            self._dataset = dataset
        return self._folder / name

    def has(self, blob: BlobInfo) -> bool:
        """Tell whether the copy is whole, and of the blob as it is now."""
        return self._kept.get(blob.path) == blob.etag

    def keep(self, blob: BlobInfo) -> None:
        """Note that the copy is whole."""
        self._kept[blob.path] = blob.etag

    def _forget(self) -> None:
        for file in self._folder.iterdir():
            file.unlink()
        self._kept = {}
