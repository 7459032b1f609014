"""Children of worker pools that are forked from one process, which has imported the compiler: a test that needs one starts at once.

Starting Python, importing Triton and reading its files takes a second and more, for each of several hundred pools. A forked child has
the folder, the environment and the import path of the test, as one that is started anew. Tests of the children themselves start them
anew (`cold_children`).
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, BinaryIO, NoReturn

from gluonize.judge.lower.children.apart import fixed_addresses
from gluonize.judge.lower.children.worker import start_child as COLD

_SUBREAPER = 36  # of prctl(2): what a child of ours leaves behind becomes ours, so that it can be waited for


class Forked:
    """A child as `subprocess.Popen` has it, as far as pools ask."""

    def __init__(self, pid: int, stdin: BinaryIO, stdout: BinaryIO):
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self.returncode: int | None = None
        self._waiting = threading.Lock()  # a child can be waited for once, and several threads may ask

    def wait(self) -> int:
        with self._waiting:
            if self.returncode is None:
                _, status = os.waitpid(self.pid, 0)
                self.returncode = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(ChildProcessError):  # what it had forked has been left to this process
                    while os.waitpid(-self.pid, os.WNOHANG)[0]:
                        pass
        return self.returncode


class WarmChildren:
    """The process that children are forked from; it starts when the first is wanted."""

    def __init__(self):
        self._talk: socket.socket | None = None
        self._lock = threading.Lock()  # pools start children from several threads

    def _started(self) -> socket.socket:
        if self._talk is None:
            assert ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0
            self._talk, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with fixed_addresses():
                command = [sys.executable, __file__, str(theirs.fileno()), *sys.path]
                subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
            theirs.close()
        return self._talk

    def start_child(
        self, log_path: str, log_handle: int, memory: int, environment: dict[str, str]
    ) -> Forked | subprocess.Popen:
        """As `gluonize.judge.lower.children.worker.start_child`; anew where Triton is to be imported as an interpreter."""
        if environment.get("TRITON_INTERPRET") == "1":
            return COLD(log_path, log_handle, memory, environment)
        (for_child, requests), (answers, from_child) = os.pipe(), os.pipe()
        asked = {
            "folder": os.getcwd(),
            "environment": dict(environment),
            "path": sys.path,
            "log": log_path,
            "memory": memory,
        }
        text = json.dumps(asked).encode()
        handles = array.array("i", [for_child, from_child, log_handle])
        with self._lock:
            talk = self._started()
            talk.send(len(text).to_bytes(8, "little"))
            talk.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)])
            pid = int(talk.recv(64))
        os.close(for_child)
        os.close(from_child)
        return Forked(pid, os.fdopen(requests, "wb", buffering=0), os.fdopen(answers, "rb", buffering=0))

    def close(self) -> None:
        if self._talk is not None:
            self._talk.close()


def _serve(talk: socket.socket) -> None:
    """Fork a child for each request. In between stands a process that ends at once, so that the child is the test's to wait for."""
    while head := talk.recv(8):
        text, rights, _, _ = talk.recvmsg(int.from_bytes(head, "little"), socket.CMSG_SPACE(3 * 4))
        handles = array.array("i", rights[0][2])
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)
            _be_child(talk, json.loads(text), list(handles))
        os.waitpid(between, 0)
        for handle in handles:
            os.close(handle)


def _be_child(talk: socket.socket, asked: dict[str, Any], handles: list[int]) -> NoReturn:
    from gluonize.judge.lower.children.worker_process import main

    status = 1
    try:
        os.setsid()
        talk.send(str(os.getpid()).encode())
        talk.close()
        for number, handle in enumerate(handles):
            os.dup2(handle, number)
            os.close(handle)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.path[:] = asked["path"]
        main(asked["log"], asked["memory"])
        status = 0
    finally:
        os._exit(status)


def _warm() -> None:
    """Import what children need first; nothing in it depends on folder or environment."""
    from gluonize.judge.lower.children import apart
    from gluonize.judge.lower.compiler_digest import prepare

    apart.load()
    for name in (
        "gluonize.judge.lower.children.worker_process",
        "gluonize.translation",
        "gluonize.judge.verdict.run",
        "gluonize.judge.verdict.proof",
        "gluonize.judge.cycles.job",
        "numpy.random",
    ):
        importlib.import_module(name)
    prepare()


if __name__ == "__main__":
    sys.path[:] = sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _warm()
    _serve(socket.socket(fileno=int(sys.argv[1])))
