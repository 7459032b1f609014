"""The language server: requests of the protocol, handed to the session and answered from it."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from gluonize import __version__
from gluonize.product.editor import source_places
from gluonize.product.editor.made import Made
from gluonize.product.editor.session import Session, refusal_of
from gluonize.product.editor.settings import Settings
from gluonize.product.editor.shown.actions import CORRECT, OPEN, TRANSLATE, actions, command_line, guesses_file
from gluonize.product.editor.shown.findings import by_file
from gluonize.product.editor.shown.hints import hints
from gluonize.product.editor.shown.hover import hover
from gluonize.product.editor.shown.lenses import lenses
from gluonize.product.editor.work import Work
from gluonize.product.project.cache.results import ContentCache
from gluonize.rules.targets import TARGETS

WATCHED = ("**/*.py", "**/*.json", "**/gluonize.toml", "**/pyproject.toml")


class Server(LanguageServer):
    """One editor. Its session starts with the protocol's `initialize`."""

    def __init__(self, settings: Settings):
        super().__init__("gluonize", __version__)
        self.settings = settings
        self.session: Session | None = None
        self.published: set[str] = set()
        self.progresses = 0
        self.uris: dict[str, str] = {}  # path -> what the editor calls it

    def start(self, params: types.InitializeParams) -> None:
        """`initializationOptions`: target, of which layouts are shown; validate: whether files are run on the CPU when saved."""
        folder = _folder(params)
        os.chdir(folder)  # where configurations, git and the cache look from, as on the command line
        settings = _with_options(self.settings, params.initialization_options)
        work = Work(ContentCache.of_user(settings.cache), settings.jobs, settings.timeout)
        can = params.capabilities.window
        quiet = bool(can and can.work_done_progress)
        self.session = Session(work, folder, settings, self.refresh, self.publish, self.busy, quiet)

    def refresh(self) -> None:
        """Ask the editor to ask again, if it can be asked."""
        can = self.client_capabilities.workspace
        if can and can.inlay_hint and can.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if can and can.code_lens and can.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def busy(self, begins: bool) -> None:
        """One progress for all that is computed, where the editor can show it."""
        if self.session is None or not self.session.quiet:
            return
        if begins:
            self.progresses += 1
            token = self.progress_token()
            begin = types.WorkDoneProgressBegin(title="gluonize", message="translating and checking")
            self.work_done_progress.create(token, lambda _: self.work_done_progress.begin(token, begin))
        else:
            self.work_done_progress.end(self.progress_token(), types.WorkDoneProgressEnd())

    def progress_token(self) -> str:
        return f"gluonize-{self.progresses}"

    def publish(self) -> None:
        """What checks say of every file, nothing of those of which they say nothing any more."""
        assert self.session is not None
        found = by_file(self.session.made.values(), self.session.broken)
        for path in sorted(self.published | found.keys()):
            said = types.PublishDiagnosticsParams(self.uri_of(path), found.get(path, []))
            self.text_document_publish_diagnostics(said)
        self.published = set(found)

    def end(self) -> None:
        if self.session is not None:
            self.session.work.close()
            self.session = None

    def at(self, uri: str) -> tuple[Session, str] | None:
        """The session and the path of a document; None for one that is no file."""
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
        if self.session is None or not path:
            return None
        path = os.path.realpath(path)
        self.uris[path] = uri
        return self.session, path

    def uri_of(self, path: str) -> str:
        return self.uris.get(path) or uris.from_fs_path(path) or ""

    def location(self, path: str, line: int) -> types.Location:
        return types.Location(self.uri_of(path), _row(line))

    def place(self, params: Any) -> tuple[Session, str, int, int] | None:
        """(session, path, line from 1, column in characters) of a request about a position."""
        found = self.at(params.text_document.uri)
        if found is None:
            return None
        document = self.workspace.get_text_document(params.text_document.uri)
        position = document.position_from_client_units(params.position)
        return (*found, position.line + 1, position.character)


def _with_options(settings: Settings, given: Any) -> Settings:
    """The settings, with what an editor says beside them; an unknown target is none."""
    if not isinstance(given, dict):
        return settings
    target = given.get("target") if given.get("target") in TARGETS else settings.target
    return replace(settings, target=target, validate=given.get("validate", settings.validate) is not False)


def _folder(params: types.InitializeParams) -> str:
    folders = [folder.uri for folder in params.workspace_folders or ()]
    for uri in (*folders, params.root_uri or ""):
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
        if path and os.path.isdir(path):
            return path
    return os.getcwd()


def make_server(settings: Settings) -> Server:
    """A server with all its features."""
    server = Server(settings)
    _follow_documents(server)
    _answer_places(server)
    _answer_files(server)
    _offer_actions(server)
    return server


def _follow_documents(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.start(params)

    @server.feature(types.INITIALIZED)
    def initialized(_: types.InitializedParams) -> None:
        can = server.client_capabilities.workspace
        if can and can.did_change_watched_files and can.did_change_watched_files.dynamic_registration:
            watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(g) for g in WATCHED])
            asked = types.Registration("watched", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched)
            server.client_register_capability(types.RegistrationParams([asked]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        if server.session is not None:
            server.session.disk_changed()

    @server.feature(types.SHUTDOWN)
    def shutdown(_: Any) -> None:
        server.end()

    @server.feature(types.EXIT)
    def leave(*_: Any) -> None:
        """At once: whoever still waits in a thread has nobody left to tell."""
        shut_down = server.session is None
        server.end()
        os._exit(0 if shut_down else 1)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        if found := server.at(params.text_document.uri):
            found[0].opened(found[1], params.text_document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        if found := server.at(params.text_document.uri):
            found[0].changed(found[1], server.workspace.get_text_document(params.text_document.uri).source)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        if found := server.at(params.text_document.uri):
            found[0].saved(found[1])

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        if found := server.at(params.text_document.uri):
            found[0].closed(found[1])


def _answer_places(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def over(params: types.HoverParams) -> types.Hover | None:
        if (place := server.place(params)) is None:
            return None
        text = await hover(*place)
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    async def source(params: Any) -> list[types.Location]:
        place = server.place(params)
        return [server.location(*target) for target in await source_places.to_source(*place[:3])] if place else []

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        return await source(params)

    @server.feature(types.TEXT_DOCUMENT_DECLARATION)
    async def declaration(params: types.DeclarationParams) -> list[types.Location]:
        return await source(params)

    @server.feature(types.TEXT_DOCUMENT_IMPLEMENTATION)
    async def implementation(params: types.ImplementationParams) -> list[types.Location]:
        place = server.place(params)
        return [server.location(*target) for target in await source_places.to_translations(*place[:3])] if place else []


def _answer_files(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        if (found := server.at(params.text_document.uri)) is None:
            return []
        document = server.workspace.get_text_document(params.text_document.uri)
        first, last = params.range.start.line, params.range.end.line
        out = []
        for hint in hints(*found):
            if first <= hint.line - 1 <= last:
                at = document.position_to_client_units(types.Position(hint.line - 1, hint.column))
                tooltip = types.MarkupContent(types.MarkupKind.Markdown, hint.tooltip)
                out.append(types.InlayHint(at, hint.label, kind=types.InlayHintKind.Type, tooltip=tooltip))
        return out

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def code_lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        if (found := server.at(params.text_document.uri)) is None:
            return []
        # A command without a name is text that nothing happens on.
        return [types.CodeLens(_row(line), types.Command(text, "")) for line, text in lenses(*found)]


def _offer_actions(server: Server) -> None:
    kinds = types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.Source])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        if (found := server.at(params.text_document.uri)) is None:
            return []
        ours = [d for d in params.context.diagnostics if d.source == "gluonize"]
        out = []
        for action in actions(*found, params.range.start.line + 1):
            mends = action.mends and bool(ours)
            kind = types.CodeActionKind.QuickFix if mends else types.CodeActionKind.Source
            command = types.Command(action.title, action.command, arguments=list(action.arguments))
            out.append(
                types.CodeAction(
                    action.title,
                    kind=kind,
                    diagnostics=ours if mends else None,
                    is_preferred=mends or None,
                    command=command,
                )
            )
        return out

    def started(command: str, output: str, then: Callable[[Made], None]) -> None:
        session = server.session
        if session is None or (made := session.made.get(output)) is None:
            return
        folder = tempfile.mkdtemp(prefix="gluonize-")

        def done(answer: Any) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            status, said = (1, refusal_of(answer)) if isinstance(answer, Exception) else answer
            kind = types.MessageType.Error if status else types.MessageType.Info
            server.window_show_message(types.ShowMessageParams(kind, f"gluonize: {said or os.path.basename(output)}"))
            if not status:
                then(made)

        session.run(made, command_line(made, command, os.path.join(folder, "scratch.py")), done)

    def show(path: str, line: int) -> None:
        place = types.ShowDocumentParams(server.uri_of(path), take_focus=True, selection=_row(line))
        server.window_show_document(place)

    @server.command(TRANSLATE)
    def translate(output: str) -> None:
        started(TRANSLATE, output, lambda made: None)

    @server.command(CORRECT)
    def correct(output: str) -> None:
        started(CORRECT, output, lambda made: show(guesses_file(made), 1))

    @server.command(OPEN)
    def open_file(path: str, line: int) -> None:
        show(path, line)


def _row(line: int) -> types.Range:
    return types.Range(types.Position(line - 1, 0), types.Position(line - 1, 0))


def serve(settings: Settings) -> None:
    """Speak the protocol on standard input and output until the editor ends it; what anything prints goes to standard error."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    sys.stdout.flush()
    os.dup2(2, 1)
    server = make_server(settings)
    gc.freeze()  # what was imported stays: a collection that walks through all of it is felt while typing
    try:
        server.start_io(stdin, stdout)
    finally:
        server.end()
