"""An editor for the tests: pygls's own client, speaking with `gluonize lsp` over pipes, one call after the other."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

BEING_COMPUTED = "being computed"
LIMIT_S = 60.0  # for an answer that has to be computed first
QUICK_S = 1.0  # for an answer that is there; generous, other tests run beside


class Editor:
    """A started server and what it sent. seconds: how long each request took, the newest last; first: what its process runs first.
    progress: whether it can show that; told: kinds of progress, in order; documents: files that it was asked to show, with lines;
    messages: what the user was told."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        options: dict | None = None,
        first: str = "import sys",
        progress: bool = False,
    ):
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.findings: dict[str, list[types.Diagnostic]] = {}
        self.refreshed = 0
        self.versions: dict[str, int] = {}
        self.seconds: list[float] = []
        self.client = LanguageClient("tests", "1")
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._published(params))
        for name in (types.WORKSPACE_INLAY_HINT_REFRESH, types.WORKSPACE_CODE_LENS_REFRESH):
            self.client.feature(name)(lambda *_: self._refreshed())
        self.told: list[str] = []
        self.documents: list[tuple[str, int]] = []
        self.messages: list[str] = []
        self.client.feature(types.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda *_: None)
        self.client.feature(types.PROGRESS)(lambda params: self.told.append(_kind(params.value)))
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))

        @self.client.feature(types.WINDOW_SHOW_DOCUMENT)
        def shown(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            self.documents.append((params.uri.rpartition("/")[2], params.selection.start.line + 1))
            return types.ShowDocumentResult(True)

        start = f"{first}\nimport sys; from gluonize.product.cli import main; sys.exit(main())"
        self.call(self.client.start_io(sys.executable, "-X", "faulthandler", "-c", start, "lsp", *arguments))
        self.process: asyncio.subprocess.Process = self.client._server
        # Read meanwhile: a server whose pipe is full waits.
        self.printed = asyncio.run_coroutine_threadsafe(self.process.stderr.read(), self.loop)
        refresh = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(
                inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
                code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True),
            ),
            window=types.WindowClientCapabilities(work_done_progress=progress),
        )
        given = types.InitializeParams(refresh, root_uri=folder.as_uri(), initialization_options=options)
        self.server = self.call(self.client.initialize_async(given))
        self.client.initialized(types.InitializedParams())

    def call(self, coroutine: Coroutine) -> Any:
        started = time.monotonic()
        answer = asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(LIMIT_S)
        self.seconds.append(time.monotonic() - started)
        return answer

    def close(self) -> int:
        """End the server, as an editor does; its exit status. What it printed and where it stood is printed if it does not end."""
        try:
            self.call(self.client.shutdown_async(None))
            self.loop.call_soon_threadsafe(self.client.exit, None)
            self.call(self.client.stop())
        except TimeoutError:
            os.kill(self.process.pid, signal.SIGABRT)
            print(self.printed.result(LIMIT_S).decode())
            raise
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
        return self.process.returncode

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        self.findings[params.uri] = list(params.diagnostics)

    def _refreshed(self) -> None:
        self.refreshed += 1

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def notify(self, send: Callable[[Any], None], params: Any) -> None:
        async def now() -> None:
            send(params)

        self.call(now())

    def open(self, name: str, text: str | None = None) -> str:
        text = (self.folder / name).read_text() if text is None else text
        self.versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), "python", 1, text)
        self.notify(self.client.text_document_did_open, types.DidOpenTextDocumentParams(item))
        return text

    def change(self, name: str, text: str) -> None:
        self.versions[name] += 1
        document = types.VersionedTextDocumentIdentifier(uri=self.uri(name), version=self.versions[name])
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.notify(self.client.text_document_did_change, types.DidChangeTextDocumentParams(document, [whole]))

    def save(self, name: str, text: str) -> None:
        """What an editor does: the text is changed, written, and said to be saved."""
        self.change(name, text)
        (self.folder / name).write_text(text)
        document = types.TextDocumentIdentifier(self.uri(name))
        self.notify(self.client.text_document_did_save, types.DidSaveTextDocumentParams(document))

    def create(self, name: str, text: str) -> None:
        """A file that someone else writes, which the editor watches."""
        (self.folder / name).write_text(text)
        event = types.FileEvent(self.uri(name), types.FileChangeType.Created)
        self.notify(self.client.workspace_did_change_watched_files, types.DidChangeWatchedFilesParams(changes=[event]))

    def shut(self, name: str) -> None:
        document = types.TextDocumentIdentifier(self.uri(name))
        self.notify(self.client.text_document_did_close, types.DidCloseTextDocumentParams(document))

    def shut_all(self) -> None:
        """Close what is open, so that another test can open it."""
        for name in self.versions:
            self.shut(name)
        self.versions.clear()

    def _at(self, name: str, line: int, column: int) -> dict:
        document = types.TextDocumentIdentifier(self.uri(name))
        return {"text_document": document, "position": types.Position(line - 1, column)}

    def hover(self, name: str, line: int, column: int) -> str:
        """The Markdown over a place, lines from 1; "" for none."""
        found = self.call(self.client.text_document_hover_async(types.HoverParams(**self._at(name, line, column))))
        return found.contents.value if found else ""

    def hover_over(self, name: str, text: str, word: str, within: str) -> str:
        """What is shown over `word` in the first line that has `within`, when it is computed."""
        number, row = next((n, r) for n, r in enumerate(text.splitlines(), 1) if within in r)
        column = row.index(within) + within.index(word)
        return until(lambda: self.hover(name, number, column), lambda said: BEING_COMPUTED not in said)

    def definition(self, name: str, line: int) -> list[tuple[str, int]]:
        params = types.DefinitionParams(**self._at(name, line, 4))
        return self._places(self.call(self.client.text_document_definition_async(params)))

    def implementation(self, name: str, line: int) -> list[tuple[str, int]]:
        params = types.ImplementationParams(**self._at(name, line, 4))
        return self._places(self.call(self.client.text_document_implementation_async(params)))

    def _places(self, found: list[types.Location]) -> list[tuple[str, int]]:
        prefix = f"{self.folder.as_uri()}/"
        return [(place.uri.removeprefix(prefix), place.range.start.line + 1) for place in found]

    def hints(self, name: str) -> dict[tuple[int, int], str]:
        """(line from 1, column) -> label."""
        everything = types.Range(types.Position(0, 0), types.Position(10000, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(self.uri(name)), everything)
        found = self.call(self.client.text_document_inlay_hint_async(params))
        return {(hint.position.line + 1, hint.position.character): hint.label for hint in found}

    def actions(self, name: str, line: int) -> dict[str, dict]:
        """Title -> command, on a line from 1 with all findings of the file."""
        at = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 0))
        context = types.CodeActionContext(self.findings.get(self.uri(name), []))
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.uri(name)), at, context)
        found = self.call(self.client.text_document_code_action_async(params))
        # lsprotocol takes an action for a command, whose name is then the text of the action's.
        return {x.title: ast.literal_eval(x.command) if isinstance(x.command, str) else vars(x.command) for x in found}

    def do(self, command: dict) -> None:
        params = types.ExecuteCommandParams(command["command"], command["arguments"])
        self.call(self.client.workspace_execute_command_async(params))

    def lenses(self, name: str) -> list[tuple[int, str]]:
        """(line from 1, text)."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(self.uri(name)))
        found = self.call(self.client.text_document_code_lens_async(params))
        return [(lens.range.start.line + 1, lens.command.title) for lens in found]


def _kind(value: Any) -> str:
    return value["kind"] if isinstance(value, dict) else value.kind


def until(ask: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """The first answer that is enough."""
    end = time.monotonic() + LIMIT_S
    while not enough(answer := ask()):
        assert time.monotonic() < end, f"no answer within {LIMIT_S} s; the last one: {answer}"
        time.sleep(0.1)
    return answer
