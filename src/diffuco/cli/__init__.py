"""Commands: `diffuco solve | sample | train | evaluate | compare | reference | generate | check | serve | ...`.

Each command is one short file, imported only when the command runs. The files call the public functions of the package,
which load torch only when called. So every `--help` answers at once.
"""

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import typer

from diffuco.cli.console import one_line_notes, one_line_warnings, print_error
from diffuco.cli.options import examples
from diffuco.foundation.errors import InputError
from diffuco.foundation.version import __version__

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Newer versions of typer bring their own copy of click; this is the class of usage errors of the copy in use.
UsageError: Any = typer.BadParameter.__base__

COMMANDS = {
    "solve": "Find a good solution of each graph.",
    "sample": "Draw from a Boltzmann distribution.",
    "train": "Train a model by a recipe, or on your own graphs.",
    "evaluate": "Measure a model or another method.",
    "compare": "Compare methods at equal time.",
    "reference": "Find the optima of a dataset's test graphs.",
    "generate": "Write the graphs of a dataset to files.",
    "check": "Verify a solution independently of the solver.",
    "serve": "Watch and solve in the browser, or over HTTP.",
    "models": "List the models that ship with diffuco.",
    "methods": "List what --method can be.",
    "doctor": "Report versions, devices and what is missing.",
}
"""Every command and the first line of its help. The module of the same name has the rest."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 1 from `check`, 2 for bad input, 130 when interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    return run_app(program(given[0] if given else ""), given, name="diffuco")


def run_app(app: typer.Typer, arguments: list[str], *, name: str) -> int:
    """Run an app; every expected failure becomes one line and an exit code."""
    # Let torch's threads sleep while they wait, not spin. If another process uses one of the cores, spinning makes a
    # solve take twenty times as long. Torch reads this when it is imported, which no command has done yet.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it; not every terminal has Unicode
    try:
        if arguments == ["--version"]:
            # As an option of typer this would import pydantic before every command's help and double its time.
            print(__version__)
            code = 0
        else:
            with one_line_warnings(), one_line_notes():
                code = app(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        print_error(error)
        return EXIT_BAD_INPUT
    except UsageError as error:
        return _report_usage(error)
    except typer.Abort:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # nobody reads the output any more
        _drop_output()
        return 1
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        _drop_output()
        print_error(f"{error.filename or 'output'}: {error.strerror}; make room, then run the command again")
        return EXIT_BAD_INPUT
    if code == EXIT_INTERRUPTED:
        print_error("interrupted")
    return code if isinstance(code, int) else 0


def program(command: str) -> typer.Typer:
    """The program with one command loaded. Of the others it knows only the summary."""
    app = typer.Typer(
        name="diffuco",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help answers in half the time and copies cleanly
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=examples("diffuco solve mis graph.clq", "diffuco solve max-cut G1.txt --json", "diffuco models"),
    )
    app.callback()(diffuco)
    for name, summary in COMMANDS.items():
        if name == command:
            import_module(f"diffuco.cli.{name}").add_to(app)
        else:
            app.command(name, help=summary)(lambda: None)
    return app


def diffuco() -> None:
    """Solve graph problems with a diffusion model that learned without a single solved example.

    `diffuco COMMAND --help` explains a command, `diffuco --version` prints the version.
    """


def _drop_output() -> None:
    """Drop what is still buffered for standard output, which cannot take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_usage(error: Any) -> int:
    """Print one line for a mistyped command, or the help if nothing was typed at all."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)
        return EXIT_BAD_INPUT
    command = error.ctx.command_path if error.ctx else "diffuco"
    message = error.format_message().rstrip(".")
    print_error(f"{message}{' Else' if message.endswith('?') else ';'} try '{command} --help'")
    return EXIT_BAD_INPUT
