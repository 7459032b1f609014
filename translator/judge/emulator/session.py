"""The emulator's process as its parent sees it: started when first needed, asked for one run after another, replaced when it dies."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

from gluonize.judge.emulator.request import PLACE, PLACE_BYTES, Done, Run, Stopped
from gluonize.judge.lower.cache_folder import use_cache_folder
from gluonize.judge.lower.children.frames import wait_for_frame, write_frame
from gluonize.judge.lower.stderr_log import read_log

START_SECONDS = 60.0
GRACE = 15.0  # seconds beyond its own limit that the process gets to answer
LINES = 6  # of what it printed, in a message
# The checkout comes first: its folder `test` has the name of a package of Python's own.
_START = """
import sys
sys.path[:] = [sys.argv[1], *sys.argv[3:]]
from gluonize.judge.emulator.process import main
main(sys.argv[2])
"""


class Session:
    """Runs code objects in the emulator of `checkout`. A context manager."""

    def __init__(self, checkout: str):
        self.checkout = checkout
        self.process: subprocess.Popen | None = None
        self.folder: tempfile.TemporaryDirectory | None = None
        self.broken: Stopped | None = None  # why it cannot be used at all

    def run(self, run: Run) -> Done | Stopped:
        """One run, or why it did not come to its end."""
        if self.broken is not None:
            return self.broken
        if self.process is None and (problem := self._start()) is not None:
            if problem.kind in ("interface", "start"):
                self.broken = problem
            return problem
        try:
            write_frame(self.process.stdin, run)
            answer = wait_for_frame(self.process.stdout, time.monotonic() + run.seconds + GRACE)
        except (BrokenPipeError, EOFError):
            return self._died()
        if answer is None:
            place = self._place()
            self.close()
            return Stopped("out-of-time", "the emulator did not answer in time", place)
        return answer

    def _start(self) -> Stopped | None:
        """Start the process; -> what is wrong with it."""
        self.folder = tempfile.TemporaryDirectory(prefix="gluonize-emulator-")
        places, log = self._path("places"), self._path("log")
        with open(places, "wb") as file:
            file.write(bytes(PLACE_BYTES))
        with open(log, "wb") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START, self.checkout, places, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=printed,
                bufsize=0,
                cwd=self.folder.name,
                start_new_session=True,
                env={"CACHEDB": os.path.join(use_cache_folder(), "emulator.db"), "DEV": "CPU"} | os.environ,
            )
        try:
            problem = wait_for_frame(self.process.stdout, time.monotonic() + START_SECONDS)
        except EOFError:
            died = self._died()
            return Stopped("start", died.why)
        if problem is not None:
            self.close()
        return problem

    def _died(self) -> Stopped:
        """What is known of a process that ended by itself."""
        status, place = self.process.wait(), self._place()
        printed = "\n".join(read_log(self._path("log")).splitlines()[-LINES:])
        self.close()
        if status >= 0:
            return Stopped("crash", f"the emulator left with status {status}: {printed}", place)
        name = signal.Signals(-status).name
        if name in ("SIGSEGV", "SIGBUS"):
            return Stopped("fault", f"{name}: an access outside of every tensor", place)
        return Stopped("crash", f"the emulator was ended by {name}", place)

    def _place(self) -> str:
        """The instruction that ran last."""
        with open(self._path("places"), "rb") as file:
            with mmap.mmap(file.fileno(), PLACE_BYTES, prot=mmap.PROT_READ) as data:
                at, program, name = struct.unpack_from(PLACE, data)
        name = name.rstrip(b"\0").decode()
        return f"{name} at offset {at:#x} in program {program}" if name else ""

    def _path(self, name: str) -> str:
        return os.path.join(self.folder.name, name)

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()
            self.process = None
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
