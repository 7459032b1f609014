"""Guarded global memory: every address belongs to one buffer or to the gap between two.

Pointers are 64-bit integers, so pointer arithmetic, casts and tables of pointers work. Buffer `k` occupies the middle of the
64 GiB window `k + 1`; an address that leaves its buffer in either direction stays in the window and is reported by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from gluonize.judge.machine.dtypes import NARROW, decode, encode, rounded, stored
from gluonize.judge.machine.hazards import Hazard, NotRunnable
from gluonize.judge.machine.memory.cluster import PeerAccesses
from gluonize.judge.machine.memory.handed_over import HandedOver
from gluonize.judge.machine.memory.sparse import PAGE, Pages

WINDOW = 36  # log2 of the bytes between two buffers
MIDDLE = 1 << (WINDOW - 1)
BUFFER_LIMIT = 2**31 - 1  # bytes that a buffer resource of the AMD backend covers


@dataclass
class Buffer:
    """One allocation. `element` is the type of its items, `data` its bytes, `base` the address of the first; `unheld` bytes
    behind them belong to it too, but are not there.

    `writer` holds for each granule (bytes of the narrowest store so far) 1 + the number of the program that last stored
    there plainly, 0 where none did; `changed` marks granules that any op wrote, atomics included; `racing` those to which two
    programs stored different values, `torn` those to which lanes of one store did. `seen` marks the items (not granules) that were read. `limit` is where the storage ends
    for this run, in bytes, if before the end of `data`. Of a storage with `pages`, `data` and the records have what is held of it, and
    `blank` is an item that fills pages nobody has touched, where not what they hold.
    """

    name: str
    element: str
    data: np.ndarray
    base: int
    granule: int = 0
    writer: np.ndarray | None = None
    changed: np.ndarray | None = None
    racing: np.ndarray | None = None
    torn: np.ndarray | None = None
    seen: np.ndarray | None = None
    limit: int | None = None
    unheld: int = 0
    pages: Pages | None = None
    blank: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Bytes of the storage, as far as it can be used."""
        return len(self.data) if self.pages is None else self.pages.extent

    @property
    def end(self) -> int:
        """Bytes that may be touched."""
        return self.size if self.limit is None else self.limit

    def used(self) -> int:
        """Bytes up to the end of the last item that was read or written; 0 for none. Only where reads are recorded."""
        read = self._last(np.flatnonzero(self.seen), stored(self.element).itemsize)
        written = self._last(np.flatnonzero(self.changed), self.granule) if self.changed is not None else 0
        return min(max(read, written), self.size)

    def _last(self, marked: np.ndarray, size: int) -> int:
        """The end of the last of the marked items of `size` bytes."""
        if not marked.size:
            return 0
        return size + int(marked[-1] * size if self.pages is None else self.pages.offsets(marked * size).max())

    def place(self, offset: np.ndarray) -> np.ndarray:
        """Where bytes at these offsets of the storage are in `data`."""
        if self.pages is None:
            return offset
        found = self.pages.places(offset)
        self.catch_up()
        return found

    def element_at(self, index: int) -> int:
        """The number in the storage of the item that `data` has at `index`."""
        size = stored(self.element).itemsize
        return index if self.pages is None else int(self.pages.offsets(np.array([index * size]))[0]) // size

    def catch_up(self) -> None:
        """Hold the pages that other memories of the same inputs have come to hold."""
        if self.pages is None or (have := len(self.data) // PAGE) == len(self.pages):
            return
        item = stored(self.element).itemsize
        more = self.pages.contents(have)
        if self.blank is not None:
            more = np.resize(self.blank.view(np.uint8), more.size)
        self.data = np.concatenate([self.data, more])
        if self.seen is not None:
            self.seen = np.concatenate([self.seen, np.zeros(more.size // item, bool)])
        if self.writer is not None:
            count = more.size // self.granule
            self.writer = np.concatenate([self.writer, np.zeros(count, np.int32)])
            self.changed, self.racing, self.torn = (
                np.concatenate([record, np.zeros(count, bool)]) for record in (self.changed, self.racing, self.torn)
            )

    def see(self, offset: np.ndarray, size: int) -> None:
        """Mark what accesses of `size` bytes at byte offsets read."""
        item = stored(self.element).itemsize
        for step in range(0, size, item):
            self.seen[(offset + step) // item] = True

    def track(self, size: int) -> None:
        """Make the records as fine as stores of `size` bytes need."""
        if self.writer is None:
            self.granule = size
            count = -(-len(self.data) // size)
            self.writer = np.zeros(count, np.int32)
            self.changed = np.zeros(count, bool)
            self.racing = np.zeros(count, bool)
            self.torn = np.zeros(count, bool)
        elif size < self.granule:
            times = self.granule // size
            self.writer, self.changed, self.racing, self.torn = (
                np.repeat(x, times) for x in (self.writer, self.changed, self.racing, self.torn)
            )
            self.granule = size

    def granules(self, offsets: np.ndarray, size: int) -> np.ndarray:
        """The granules that accesses of `size` bytes at byte `offsets` touch."""
        if size == self.granule:
            return offsets // size
        first = offsets // self.granule
        return (first[..., None] + np.arange(size // self.granule)).reshape(-1)

    def touched(self, record: np.ndarray | None) -> np.ndarray:
        """`record` per byte of the buffer."""
        if record is None:
            return np.zeros(len(self.data), bool)
        return np.repeat(record, self.granule)[: len(self.data)]

    def per_element(self, record: np.ndarray | None) -> np.ndarray:
        """`record` per item of the buffer: whether it holds for one of its bytes."""
        size = stored(self.element).itemsize
        count = len(self.data) // size
        if record is None:
            return np.zeros(count, bool)
        if self.granule >= size:
            return np.repeat(record, self.granule // size)[:count] if self.granule > size else record[:count].copy()
        per = size // self.granule
        return record[: count * per].reshape(count, per).any(axis=1)


def _spread(value, shape) -> np.ndarray:
    """`value` broadcast to `shape`, flat."""
    if np.shape(value) != shape:
        value = np.broadcast_to(value, shape)
    return np.asarray(value).reshape(-1)


class Observer(Protocol):
    """Who is told of plain accesses of `size` bytes at byte offsets."""

    def load(self, buffer: Buffer, offset: np.ndarray, size: int) -> None: ...

    def store(self, buffer: Buffer, offset: np.ndarray, size: int, changed: np.ndarray, torn: np.ndarray) -> None:
        """changed, torn: of which accesses the bits are others than before, and others than another thread has stored."""


@dataclass
class Memory:
    """All buffers of one run. `program` is the number of the program that runs now; `traffic` counts elements accessed; `crossing` names a
    buffer from which a program read what another one stored, `reread`: a program read what it had stored itself; `changes` counts stores and atomic operations that changed something; with
    `recording`, every buffer remembers what was read. `hit` turns true when the byte that `watch` names (buffer, offset) is written. `peers`: of
    a program that is a cluster, or of programs that leave each other sums. `observer` is told of loads and stores.
    """

    buffers: list[Buffer] = field(default_factory=list)
    program: int = 0
    crossing: list[str] = field(default_factory=list)
    reread: bool = False
    changes: int = 0
    traffic: int = 0
    recording: bool = False
    watch: tuple[str, int] | None = None
    hit: bool = False
    peers: PeerAccesses | HandedOver | None = None
    observer: Observer | None = None

    def add(self, name: str, element: str, data: np.ndarray, unheld: int = 0, pages: Pages | None = None) -> Buffer:
        """A buffer with the bytes of `data`, and `unheld` items behind them that cannot be used; or with `pages`, whose bytes they are."""
        base = ((len(self.buffers) + 1) << WINDOW) + MIDDLE
        buffer = Buffer(name, element, np.ascontiguousarray(data).view(np.uint8).reshape(-1).copy(), base)
        if self.recording:
            buffer.seen = np.zeros(-(-len(buffer.data) // stored(element).itemsize), bool)
        buffer.unheld, buffer.pages = unheld * stored(element).itemsize, pages
        self.buffers.append(buffer)
        return buffer

    def pages(self) -> int:
        """Pages that are held of large storage."""
        return sum(len(buffer.pages) for buffer in self.buffers if buffer.pages is not None)

    def find(self, address: int) -> Buffer:
        window = (int(address) >> WINDOW) - 1
        if not 0 <= window < len(self.buffers):
            what = "a null pointer" if abs(int(address)) < 1 << 20 else f"an address in no buffer ({int(address):#x})"
            raise Hazard("wild-pointer", f"access through {what}")
        return self.buffers[window]

    def resolve(self, address: np.ndarray, size: int) -> tuple[Buffer, np.ndarray]:
        """The buffer that all of `address` (int64, flat, not empty) lie in, and where in its bytes. Raises: Hazard.

        Accesses that reach several buffers are split by the caller (`by_buffer`). Raises NotRunnable where an access is to
        storage that is not held.
        """
        low, high = int(address.min()), int(address.max())
        buffer = self.find(low)
        offset = address - buffer.base
        if low < buffer.base or high + size > buffer.base + buffer.end:
            bad = (offset < 0) | (offset + size > buffer.end)
            at = int(offset[bad][0])
            items = stored(buffer.element).itemsize
            if (
                buffer.limit is None
                and 0 <= int(offset.min())
                and int(offset.max()) + size <= buffer.end + buffer.unheld
            ):
                raise NotRunnable(
                    "memory",
                    f"{buffer.name} is accessed at element {at // items}, so far behind what its shape reaches that the "
                    "reference machine does not hold it; give the tensor the shape that the kernel uses",
                )
            behind = (
                "" if buffer.limit is None else f"; the source touches nothing from element {buffer.limit // items} on"
            )
            raise Hazard(
                "out-of-bounds",
                f"{int(bad.sum())} of {address.size} enabled accesses leave {buffer.name} "
                f"({(buffer.size + buffer.unheld) // items} x {buffer.element}); the first at element {at // items}{behind}",
            )
        if size > 1 and int(np.bitwise_or.reduce(offset)) & (size - 1):
            raise Hazard("misaligned", f"an access to {buffer.name} is not aligned to its {size} bytes")
        return buffer, buffer.place(offset)

    def by_buffer(self, address: np.ndarray):
        """Selections of `address` that lie in one buffer each: slices or index arrays."""
        window = address >> WINDOW
        first = window[0]
        if (window == first).all():
            yield slice(None)
            return
        for value in np.unique(window):
            yield np.flatnonzero(window == value)

    def load(self, address, mask, other, element: str, shape) -> np.ndarray:
        """Values at `address`; masked-off lanes give `other`, or 0 as the AMD backend does. -> held, of `shape`."""
        dtype = stored(element)
        size = dtype.itemsize
        flat = np.asarray(address).reshape(-1)
        lanes = None
        if mask is not None:
            on = _spread(mask, np.shape(address))
            if not on.all():
                lanes = np.flatnonzero(on)
                flat = flat[lanes]
        self.traffic += flat.size
        out = np.zeros(flat.size, dtype)
        if flat.size:
            for part in self.by_buffer(flat):
                buffer, offset = self.resolve(flat[part], size)
                out[part] = buffer.data[: len(buffer.data) // size * size].view(dtype)[offset // size]
                if self.recording:
                    buffer.see(offset, size)
                if self.peers is not None:
                    self.peers.load(buffer, offset, size, lanes, part)
                if buffer.writer is not None and not (self.crossing and self.reread):
                    self._check_order(buffer, offset, size)
                if self.observer is not None:
                    self.observer.load(buffer, offset, size)
        values = decode(out, element)
        if lanes is not None:
            if other is None:
                full = np.zeros(on.size, values.dtype)
            else:
                full = _spread(other, np.shape(address)).astype(values.dtype, copy=True)
            full[lanes] = values
            values = full
        return values.reshape(shape)[()]

    def _check_order(self, buffer: Buffer, offset: np.ndarray, size: int) -> None:
        if size < buffer.granule:
            return
        writer = buffer.writer[buffer.granules(offset, size)]
        own = writer == self.program + 1
        self.reread = self.reread or bool(own.any())
        if not self.crossing and ((writer != 0) & ~own).any():
            self.crossing.append(buffer.name)

    def store(self, address, value, mask, element: str) -> None:
        """Plain stores. Two lanes or programs that store different values to one address are recorded and reported."""
        dtype = stored(element)
        size = dtype.itemsize
        flat = np.asarray(address).reshape(-1)
        bits = np.asarray(encode(_spread(value, np.shape(address)), element)).astype(dtype, copy=False)
        lanes = None
        if mask is not None:
            on = _spread(mask, np.shape(address))
            if not on.all():
                lanes = np.flatnonzero(on)
                flat, bits = flat[on], bits[on]
        if not flat.size:
            return
        self.traffic += flat.size
        for part in self.by_buffer(flat):
            buffer, offset = self.resolve(flat[part], size)
            if self.peers is not None:
                self.peers.store(buffer, offset, lanes, part, bits[part])
            self._store(buffer, offset, bits[part], dtype)

    def _look(self, buffer: Buffer, offset: np.ndarray, size: int) -> None:
        name, byte = self.watch
        self.hit = self.hit or (buffer.name == name and bool(((offset <= byte) & (byte < offset + size)).any()))

    def _store(self, buffer: Buffer, offset: np.ndarray, bits: np.ndarray, dtype: np.dtype) -> None:
        size = dtype.itemsize
        self.changes += 1
        if self.watch:
            self._look(buffer, offset, size)
        buffer.track(size)
        view = buffer.data[: len(buffer.data) // size * size].view(dtype)
        index = offset // size
        kind = f"u{size}"
        raw = bits.view(kind)
        before = view[index].view(kind)
        if size == buffer.granule:
            writer = buffer.writer[index]
            other = (writer != 0) & (writer != self.program + 1) & (before != raw)
        else:
            other = (buffer.writer[buffer.granules(offset, size)] != 0).reshape(index.size, -1)
            other = (
                other & (buffer.writer[buffer.granules(offset, size)] != self.program + 1).reshape(index.size, -1)
            ).any(1)
            other &= before != raw
        view[index] = bits
        lanes = view[index].view(kind) != raw
        touched = buffer.granules(offset, size)
        if self.program + 1 > np.iinfo(buffer.writer.dtype).max:  # a grid may have more programs than an axis has
            buffer.writer = buffer.writer.astype(np.int64)
        buffer.writer[touched] = self.program + 1
        buffer.changed[touched] = True
        if other.any():
            buffer.racing[buffer.granules(offset[other], size)] = True
        if lanes.any():
            buffer.torn[buffer.granules(offset[lanes], size)] = True
        if self.observer is not None:
            self.observer.store(buffer, offset, size, before != raw, lanes)

    def racing(self) -> list[str]:
        """Names of buffers to which different values were stored at one address without atomics."""
        return [b.name for b in self.buffers if b.racing is not None and (b.racing.any() or b.torn.any())]

    def atomic(self, address, value, mask, element: str, combine, want_old: bool, unsigned: bool = False, held_as=None):
        """Read-modify-write, lane after lane. `combine(old, value)` works on arrays. -> old values (held) or None.

        Lanes with equal addresses are applied in lane order. `held_as` is the type of the old values where `value` is of
        another one. A numpy ufunc as `combine` applies them at once when nobody
        looks at the old values.
        """
        dtype = stored(element)
        size = dtype.itemsize
        shape = np.shape(address)
        flat = np.asarray(address).reshape(-1)
        values = np.broadcast_to(value, shape).reshape(-1)
        lanes = np.arange(flat.size)
        if mask is not None:
            lanes = np.flatnonzero(np.broadcast_to(mask, shape).reshape(-1))
        if isinstance(combine, np.ufunc) and not want_old and element not in NARROW:
            self._accumulate(flat[lanes], values[lanes], dtype, combine, unsigned)
            return None
        old = np.zeros(flat.size, held_as or values.dtype)
        remaining = lanes
        while remaining.size:
            _, first = np.unique(flat[remaining], return_index=True)
            first.sort()
            now = remaining[first]
            for part in self.by_buffer(flat[now]):
                chosen = now[part]
                buffer, offset = self.resolve(flat[chosen], size)
                view = buffer.data[: len(buffer.data) // size * size].view(dtype)
                if self.recording:
                    buffer.see(offset, size)
                before = decode(view[offset // size], element)
                old[chosen] = before
                after = combine(*(x.view(f"u{size}") if unsigned else x for x in (before, values[chosen])))
                after = np.asarray(encode(rounded(after, element) if element in NARROW else after, element))
                after = after.astype(dtype, copy=False)
                self.changes += bool((view[offset // size] != after).any())
                view[offset // size] = after
                if self.watch:
                    self._look(buffer, offset, size)
                buffer.track(size)
                buffer.changed[buffer.granules(offset, size)] = True
            remaining = np.delete(remaining, first)
        return old.reshape(shape)[()] if want_old else None

    def _accumulate(self, flat: np.ndarray, values: np.ndarray, dtype: np.dtype, combine, unsigned: bool) -> None:
        if not flat.size:
            return
        size = dtype.itemsize
        self.changes += 1
        kind = np.dtype(f"u{size}") if unsigned else dtype
        for part in self.by_buffer(flat):
            buffer, offset = self.resolve(flat[part], size)
            view = buffer.data[: len(buffer.data) // size * size].view(kind)
            if self.recording:
                buffer.see(offset, size)
            combine.at(view, offset // size, values[part].view(kind))
            if self.watch:
                self._look(buffer, offset, size)
            buffer.track(size)
            buffer.changed[buffer.granules(offset, size)] = True
