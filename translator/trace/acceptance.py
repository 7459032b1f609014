"""Whether Triton's front end accepts a launch, asked many times of one child process that has the kernel loaded already.

A launch that was made up may make the compiler abort or never end; that costs the child, and the next question gets a new one.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from gluonize.diagnostics import TranslationError
from gluonize.read.kernels.load import LoadedKernel
from gluonize.read.launches.derive.proposal.verdict import Branch, Stored, Verdict
from gluonize.read.spec.compile_arguments import compile_arguments
from gluonize.read.spec.launch import LaunchSpec
from gluonize.trace.front import trace
from gluonize.trace.front.offline import FrontEnd, offline_target
from gluonize.trace.passes.triton_passes import run_ttir_passes
from gluonize.triton_api.front_end import ASTSource, CompilationError

# Of CPU time for one question: a kernel takes tens of milliseconds; one that is unrolled thousands of times never ends.
SECONDS = 5.0


class FrontEndJudge:
    """Asks Triton's front end about launches of one kernel on one target. Use it as a context manager."""

    def __init__(self, loaded: LoadedKernel, target: str):
        self.loaded, self.target = loaded, target
        self._child = 0
        self._connection: Connection | None = None

    def __enter__(self) -> FrontEndJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, spec: LaunchSpec) -> Verdict:
        """What the front end says of a launch."""
        if self._connection is None:
            self._start()
        assert self._connection is not None
        self._connection.send(spec)
        try:
            return self._connection.recv()
        except EOFError:
            status = self._end()
            died = f"the front end is ended by {signal.Signals(status).name}" if status else "the front end ends"
            return Verdict(False, died.replace("ended by SIGPROF", f"not done after {SECONDS:g} s"))

    def _start(self) -> None:
        self._connection, theirs = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._child = os.fork()
        if self._child:
            theirs.close()
            return
        self._connection.close()
        _serve(self.loaded, self.target, theirs)

    def _end(self) -> int:
        """End the child; -> the signal that ended it, if one did."""
        if self._connection is None:
            return 0
        self._connection.close()
        self._connection = None
        _, status = os.waitpid(self._child, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _serve(loaded: LoadedKernel, target: str, connection: Connection) -> None:
    """The child: answers until the other side closes, and never returns."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        while True:
            spec = connection.recv()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            verdict = judged(loaded, spec, target)
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send(verdict)
    finally:
        os._exit(0)


def judged(loaded: LoadedKernel, spec: LaunchSpec, target: str) -> Verdict:
    """The verdict on one launch, in this process."""
    try:
        arguments = compile_arguments(spec, loaded.fn, loaded.load_jit)
    except TranslationError as error:
        return Verdict(False, error.diagnostics[0].message)
    source = ASTSource(loaded.fn, arguments.signature, arguments.constexprs, arguments.attrs)
    with offline_target(target) as gpu, trace._tracing() as session:
        try:
            front_end = FrontEnd.of(gpu, spec.options)
            run_ttir_passes(front_end.module(source), front_end.options)
        except CompilationError as error:
            return _refused(loaded, error, session)
        except (
            RuntimeError,
            ValueError,
            TypeError,
            AttributeError,
            AssertionError,
            KeyError,
            NotImplementedError,
        ) as error:
            # What the front end itself stumbles over; the reason is in its message, if anywhere.
            return Verdict(False, f"{type(error).__name__}: {error}".strip(), progress=session._ident)
    frames = session.frames
    return Verdict(True, progress=session._ident, branches=_branches(frames), stored=_stored(frames))


def _refused(loaded: LoadedKernel, error: CompilationError, session: Any) -> Verdict:
    """The innermost place of the error that is in the kernel or a helper, with what is said there."""
    known = {loaded.fn.src, *(helper.value.src for helper in loaded.helpers)}
    place: tuple[str, trace.NodeKey] | None = None
    inner: BaseException = error
    while isinstance(inner, CompilationError):
        if inner.src in known and hasattr(inner.node, "lineno"):
            place = inner.src, trace.node_key(inner.node)
        message = (inner.error_message or "").strip() or str(inner).strip().splitlines()[-1]
        if inner.__cause__ is None:
            break
        inner = inner.__cause__
    else:
        message = f"{type(inner).__name__}: {inner}".strip()
    return Verdict(False, message, place, session._ident)


def _stored(frames: list[Any]) -> frozenset[Stored]:
    """The element types of the values that `tl.store` is given, before it converts them."""
    found = set()
    for frame in frames:
        for node in ast.walk(frame.fn.parse()):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "store":
                continue
            value = next(
                (k.value for k in node.keywords if k.arg == "value"), node.args[1] if len(node.args) > 1 else None
            )
            fact = frame.fact(value) if value is not None else None
            if isinstance(fact, trace.TensorFact) and not fact.is_pointer:
                found.add((frame.fn.src, trace.node_key(node), fact.dtype))
    return frozenset(found)


def _branches(frames: list[Any]) -> frozenset[Branch]:
    """The sides of every `if` that were gone into; both of one that is decided when the kernel runs. And the functions, which may be
    arguments."""
    found = set()
    for frame in frames:
        module = frame.fn.parse()
        found.add((frame.fn.src, trace.node_key(module.body[0]), True))
        for node in ast.walk(module):
            if not isinstance(node, (ast.If, ast.IfExp)) or trace.node_key(node.test) not in frame.visits:
                continue
            first = node.body[0] if isinstance(node, ast.If) else node.body
            other = (node.orelse[0] if node.orelse else None) if isinstance(node, ast.If) else node.orelse
            then = trace.node_key(first) in frame.visits
            dynamic = isinstance(frame.fact(node.test), trace.TensorFact)
            key = trace.node_key(node.test)
            if then:
                found.add((frame.fn.src, key, True))
            if dynamic or (trace.node_key(other) in frame.visits if other is not None else not then):
                found.add((frame.fn.src, key, False))
    return frozenset(found)
