"""The outermost edge: every way a command can end becomes one message and one exit status."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from gluonize.diagnostics import ClusterLost, Diagnostic, InternalError, TranslationError
from gluonize.product.cli import exit_status
from gluonize.product.cli.app import app_for
from gluonize.product.cli.console import print_diagnostics
from gluonize.product.project.output.file import STANDARD_OUTPUT

# What the option parser cannot say: global flags anywhere on the line, and options whose value may be left out.

GLOBAL_FLAGS = ("-v", "--verbose", "-q", "--quiet")
GLOBAL_OPTIONS = ("--color", "--memory-limit", "--for-triton", "--triton-python")


def normalize(argv: Sequence[str]) -> list[str]:
    """The argument list with global flags first and every `--json` with a value.

    `--json FILE.json`, `--json -` and `--json=FILE` name a file; any other `--json` means standard output, so that
    `gluonize translate --json kernel.py` reads kernel.py instead of overwriting it.
    """
    front: list[str] = []
    rest: list[str] = []
    arguments = list(argv)
    index = 0
    while index < len(arguments):
        word = arguments[index]
        following = arguments[index + 1] if index + 1 < len(arguments) else None
        if word == "--":
            rest += arguments[index:]
            break
        if word in GLOBAL_FLAGS or word.startswith(tuple(f"{option}=" for option in GLOBAL_OPTIONS)):
            front.append(word)
        elif word in GLOBAL_OPTIONS and following is not None:
            front += [word, following]
            index += 1
        elif word == "--json":
            named = following is not None and (following == STANDARD_OUTPUT or following.endswith(".json"))
            rest.append(f"--json={following if named else STANDARD_OUTPUT}")
            index += named
        else:
            rest.append(word)
        index += 1
    return front + rest


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit status and never raises."""
    try:
        arguments = normalize(argv)
        status = app_for(arguments)(arguments, prog_name="gluonize", standalone_mode=False)
        sys.stdout.flush()
        if status == exit_status.INTERRUPTED:  # newer versions of typer turn Ctrl-C into this status by themselves
            raise KeyboardInterrupt
        return status if isinstance(status, int) else exit_status.DONE
    except TranslationError as error:
        print_diagnostics(error.diagnostics)
        return exit_status.REFUSED
    except ClusterLost as error:
        print_diagnostics([error.diagnostic])
        return exit_status.CHECK_FAILED
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        return exit_status.INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted; keep the interpreter from complaining while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_status.DONE
    except Exception as error:
        # Wrong usage is reported by the option parser's own exceptions, whose module differs between typer versions.
        if hasattr(error, "exit_code") and hasattr(error, "show"):
            lacks_value = "requires an argument" in str(error) and error.option_name in ("-t", "--target")
            is_target = getattr(getattr(error, "param", None), "name", "") == "target"
            if lacks_value or is_target and not hasattr(error, "option_name"):
                from gluonize.rules.targets import known_targets

                print_diagnostics([Diagnostic("unknown-target", "no target given", help=known_targets())])
                return exit_status.REFUSED
            error.show()
            if said := _what_is_lacking(error, argv):
                print(f"  do:  {said}", file=sys.stderr)
            return exit_status.REFUSED
        report_bug(error)
        return exit_status.BUG


def _what_is_lacking(error: Exception, argv: Sequence[str]) -> str:
    """What to give where the option parser misses something: an option or an argument with its placeholder and its help."""
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    kept = getattr(context, "info_name", "") in ("check", "update", "watch")
    if kept and str(getattr(error, "option_name", "")) in ("-t", "--target"):
        return "it goes by the targets of generated files, and by those of the configuration: targets = [...]"
    if param is None and context is not None and hasattr(error, "option_name") and not hasattr(error, "possibilities"):
        known = (p for p in context.command.params if error.option_name in (*p.opts, *p.secondary_opts))
        param = next(known, None)
    if param is None or "issing" not in type(error).__name__ + str(error) and "requires" not in str(error):
        return ""
    given = next((word for word in argv if word.endswith(".json")), "")
    if param.name == "launches" and given:
        return f"if {given} has the launches: -l {given}"
    option = param.opts[0] if param.opts[0].startswith("-") else param.name.upper()
    kind = f" {param.metavar}" if option.startswith("-") and param.metavar else ""
    return f"{option}{kind}: {getattr(param, 'help', '') or ''}".rstrip(": ")


def report_bug(error: Exception) -> None:
    """Say that this is our mistake and what a report needs."""
    from gluonize import __version__
    from gluonize.versions import triton_version

    text = str(error) if isinstance(error, InternalError) else "".join(traceback.format_exception(error))
    python = ".".join(map(str, sys.version_info[:3]))
    print(
        f"gluonize: internal error: this is a bug in gluonize, not in your kernel\n{text.rstrip()}\n\n"
        "Please report it with the text above, the kernel file, the launch spec and this line:\n"
        f"  gluonize {__version__}, Triton {triton_version()}, Python {python}, command: gluonize {' '.join(sys.argv[1:])}",
        file=sys.stderr,
    )
