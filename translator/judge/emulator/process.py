"""The emulator's process: reads requests from standard input until it closes, answers on standard output.

`-c START CHECKOUT PLACES PATH...` starts it (`session.py`). Frames are those of `gluonize.judge.lower.children.frames`.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal

from gluonize.judge.emulator.machine import Machine, Refusal, load
from gluonize.judge.emulator.registers import Unprepared
from gluonize.judge.emulator.request import PLACE_BYTES, Stopped
from gluonize.judge.lower.children.frames import read_frame, write_frame

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(places: str) -> None:
    """Serve runs. places: the file in which the parent reads what runs now."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the emulator prints is no answer
    with open(places, "r+b") as file:
        place = mmap.mmap(file.fileno(), PLACE_BYTES)
    try:
        machine = Machine(load(), place)
    except Refusal as refusal:
        write_frame(answers, refusal.stopped)
        return
    write_frame(answers, None)
    while True:
        try:
            run = read_frame(requests)
        except EOFError:
            return
        try:
            answer = machine.run(run)
        except Unprepared as why:
            answer = Stopped("registers", str(why))
        write_frame(answers, answer)
