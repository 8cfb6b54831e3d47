"""How a command ends: well, with a mistake said in one line and status 2, or stopped with 130."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from temperance.errors import ArgumentError, InterruptedRunError, TemperanceError

MISTAKE, INTERRUPTED = 2, 130

Register = Callable[[Callable[..., None]], Callable[..., None]]


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """What the user can mend is said in one line on standard error."""
    try:
        yield
    except InterruptedRunError as error:
        say(f"stopped: {error}")
        raise typer.Exit(INTERRUPTED) from error
    except TemperanceError as error:
        say(f"error: {error}")
        raise typer.Exit(MISTAKE) from error
    except KeyboardInterrupt as error:
        say("interrupted")
        raise typer.Exit(INTERRUPTED) from error


def command_of(app: typer.Typer) -> Callable[..., Register]:
    """A decorator for commands of `app` that end in `plain_errors`."""

    def command(help_text: str | None = None) -> Register:
        def register(function: Callable[..., None]) -> Callable[..., None]:
            @functools.wraps(function)
            def guarded(*args: Any, **kwargs: Any) -> None:
                with plain_errors():
                    function(*args, **kwargs)

            app.command(help=help_text)(guarded)
            return function

        return register

    return command


def check_folder(path: Path, option: str = "--out") -> None:
    """Said before a long run, not after it."""
    if not path.parent.is_dir():
        raise ArgumentError(f"{option} {path}: there is no folder {path.parent}")


def say(text: str) -> None:
    """On standard error."""
    typer.echo(text, err=True)
