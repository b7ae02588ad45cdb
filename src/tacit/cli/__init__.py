"""The `tacit` command: each wrong call is one line on stderr, and the exit status says which kind.

0: done (also where claims differ). 1: an exhibit could not run. 2: the call was wrong.
130: interrupted.
"""

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from tacit.cli.app import app
from tacit.cli.lines import complain
from tacit.errors import TacitError

INTERRUPTED = 130
# newer versions of typer carry click inside: its base class is reached the same way in all of them
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its status."""
    # figures go to files, whether or not there is a display
    os.environ.setdefault("MPLBACKEND", "agg")
    # threads that wait by spinning starve each other on a busy machine (seen: many times slower)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # many small operations: min2024.fig2 took 11 s a data set on two threads and 6 to 7 on one
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(_guarded(sys.argv[1:] if arguments is None else arguments))


def _guarded(arguments: Sequence[str]) -> int:
    """`status`, on whatever the shell made of stdout and stderr."""
    if sys.stderr is None:  # closed: what is said there is lost, as the caller wants it
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        complain("stdout is closed: send it to a file or to /dev/null")
        return 1
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # ✓ and ≥ on an ASCII terminal
            stream.reconfigure(errors="replace")
    try:
        answer = status(arguments)
        sys.stdout.flush()  # a full disk is known only now
    except OSError as error:  # a stream has no file name; runs tell of their own files
        if error.errno != errno.EPIPE:  # `| head` has seen enough, and needs no word on it
            complain(f"{error.filename or 'stdout'} cannot be written ({error.strerror or error})")
        # what is left in the buffer would fail once more on the way out
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return answer


def status(arguments: Sequence[str]) -> int:
    """Run the command line; the exit status."""
    command = typer.main.get_command(app)
    asked = list(arguments) or ["--help"]
    try:
        answer = command.main(asked, prog_name="tacit", standalone_mode=False)
    except TacitError as error:
        complain(str(error))
        return error.exit_status
    except _UsageError as error:
        complain(_usage(error))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        answer = INTERRUPTED
    if answer == INTERRUPTED:
        # an audit keeps nothing to resume from
        complain("interrupted" if asked[0] == "audit" else "interrupted: the same command resumes")
    return answer if isinstance(answer, int) else 0


def _usage(error: Exception) -> str:
    """click's message, with the command whose help tells what would be right."""
    message = error.format_message().rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tacit"
    return f"{message[:1].lower()}{message[1:]}; see `{path} --help`"
