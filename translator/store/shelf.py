"""A store with checksums and a limit to its size, which never fails the work that it is to save."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from gluonize.store.entries import Store, seal, unseal

LIMIT_BYTES = 5 * 10**9
_KEPT = 0.8  # of the limit is left by an eviction, so that not every write makes the next one necessary
_BETWEEN = 0.1  # of the limit is written by one process before it looks again
_FAULTS = 3  # one after another, and a store is left alone for a while: each may take long to be noticed
_REST_SECONDS = 60.0
log = logging.getLogger("gluonize")


class Shelf:
    """Payloads by name. Faults of the store are misses, told once each kind; damaged entries are removed and told.

    A store that fails again and again is not asked the same (to read, to write) for a while.

    limit: bytes of all entries; what was not used for longest is evicted above it.
    """

    def __init__(self, store: Store, limit: int = LIMIT_BYTES):
        self.store = store
        self.limit = limit
        self._lock = threading.Lock()
        self._unseen = limit  # bytes written since the size was last looked at: the first write looks
        self._faults: dict[str, int] = {}  # of each kind, since it last worked
        self._rests: dict[str, float] = {}  # until when the store is left alone
        self._told: set[str] = set()

    def get(self, name: str) -> bytes | None:
        """The payload of an entry, None when there is none that is whole."""
        if self._rests_from("read"):
            return None
        try:
            data = self.store.read(name)
            self._faults.pop("read", None)
            if data is None:
                return None
            payload = unseal(data)
            if payload is None:
                log.warning("cache entry %s in %s is damaged: it is made anew", name, self.store.url)
                self.store.delete(name)
                return None
            self.store.touch(name)
            return payload
        except OSError as error:
            self._tell("read", error)
            return None

    def put(self, name: str, payload: bytes) -> None:
        """Keep a payload, and evict what is too much."""
        if self._rests_from("written"):
            return
        try:
            self.store.write(name, seal(payload))
            self._faults.pop("written", None)
        except OSError as error:
            self._tell("written", error)
            return
        with self._lock:
            self._unseen += len(payload)
            due = self._unseen > _BETWEEN * self.limit
            self._unseen = 0 if due else self._unseen
        if due:
            self.prune()

    def prune(self, limit: int | None = None, told: Callable[[], None] = lambda: None) -> int:
        """Evict the entries that were not used for longest when all are above the limit, or above `limit` bytes.

        told: is called for each that went. Returns how many did.
        """
        gone = 0
        try:
            found = sorted(self.store.entries(), key=lambda entry: (entry.used, entry.name))
            total = sum(entry.size for entry in found)
            kept = _KEPT * self.limit if limit is None else limit
            if total <= (self.limit if limit is None else limit):
                return 0
            for entry in found:
                if total <= kept:
                    break
                self.store.delete(entry.name)
                total -= entry.size
                gone += 1
                told()
        except OSError as error:
            self._tell("pruned", error)
        return gone

    def _rests_from(self, what: str) -> bool:
        return time.monotonic() < self._rests.get(what, 0.0)

    def _tell(self, what: str, error: OSError) -> None:
        with self._lock:
            told, _ = what in self._told, self._told.add(what)
            self._faults[what] = self._faults.get(what, 0) + 1
            if self._faults[what] >= _FAULTS:
                self._rests[what] = time.monotonic() + _REST_SECONDS
        if not told:
            log.warning("the cache %s cannot be %s: %s", self.store.url, what, error)
