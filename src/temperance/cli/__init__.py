"""The command line: the same work as `sample` and `report`, without writing Python.

Whatever is slow to import is imported inside the command that needs it, so that help comes at once.
Mistakes end with one line and status 2; an interrupted run keeps what it has and ends with 130.
"""

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from temperance import __version__
from temperance.cli.arguments import load_problem, parse_move, parse_settings
from temperance.cli.crosscat import app as crosscat_app
from temperance.cli.exit_status import INTERRUPTED, MISTAKE, check_folder, command_of

HELP = """Tempered MCMC: draws from posteriors that defeat ordinary samplers, and log evidence.

A first look: `temperance demo`

A model of your own, a `Problem` or `Target` called `problem` in model.py:

    temperance run model.py:problem --method pt --out run.nc

    temperance report run.nc

What there is to choose from: `temperance methods`

A table with holes, in CSV or Parquet: `temperance crosscat fit table.csv --out model.zip`
"""
RUN_HELP = """Draw from a problem, print what came out, and save it.

PROBLEM is `file.py:name` or `package.module:name`: a Problem, a Target, or a function without
arguments that returns one. Without `:name` it is called `problem`.

    temperance run temperance.cli.demo:problem --num-draws 500

    temperance run model.py --method tt --move 'hmc(num_steps=10)'

    temperance run model.py --checkpoint run.zarr --max-seconds 3600

The same command goes on from its checkpoint, with the same draws as if never stopped.
Ctrl-C lets the block finish, keeps what is done and ends with status 130.
"""

app = typer.Typer(
    help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode="markdown",
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


app.add_typer(crosscat_app, name="crosscat")
command = command_of(app)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"temperance {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command as a whole."""


@command(RUN_HELP)
def run(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="file.py:name or module:name")],
    method: Annotated[str, typer.Option(help="See `temperance methods`.")] = "auto",
    move: Annotated[
        str | None,
        typer.Option(
            help="A name, or a call such as 'hmc(num_steps=10)'. [default: the method's own]"
        ),
    ] = None,
    num_draws: Annotated[int, typer.Option(help="Kept draws in each chain.")] = 1000,
    num_warmup: Annotated[int, typer.Option(help="Steps that tune and are thrown away.")] = 1000,
    num_chains: Annotated[int, typer.Option(help="Independent runs, side by side.")] = 4,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder (.zarr) to keep blocks in and to go on from.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
    target_ess: Annotated[
        float | None, typer.Option(help="Stop once every variable has this effective size.")
    ] = None,
    precision: Annotated[str, typer.Option(help="double or single.")] = "double",
    cache: Annotated[bool, typer.Option(help="Keep compiled programs for the next run.")] = True,
    num_rungs: Annotated[
        int | None, typer.Option(help="Rungs of the ladder (default: chosen by a pilot run).")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other option of the method."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the run is saved: .nc, or .zarr.")] = Path(
        "run.nc"
    ),
) -> None:
    """Draw from a problem, print what came out, and save it."""
    options = parse_settings(set_ or [])
    if num_rungs is not None:
        options["num_rungs"] = num_rungs
    check_folder(out)
    asked = load_problem(problem)
    kernel = None if move is None else parse_move(move)
    from temperance.results.summary import summary
    from temperance.results.tree import save
    from temperance.sampling import RunWarning, sample

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)  # the summary says it in words
        tree = sample(
            asked, method, kernel, num_draws=num_draws, num_warmup=num_warmup,
            num_chains=num_chains, seed=seed, progress=progress, checkpoint=checkpoint,
            max_seconds=max_seconds, target_ess=target_ess, precision=precision, cache=cache,
            **options,
        )  # fmt: skip
    save(tree, out)
    typer.echo(str(summary(tree)))
    typer.echo(f"\nSaved to {out}; `temperance report {out}` draws it.")
    if tree.attrs["stopped"] == "interrupted":
        raise typer.Exit(INTERRUPTED)


@command()
def report(
    path: Annotated[Path, typer.Argument(help="A run saved by `temperance run` or `save`.")],
    out: Annotated[
        Path | None, typer.Option(help="The page (default: the run's name with .html).")
    ] = None,
) -> None:
    """Write a self-contained page about a saved run: pictures, warnings, evidence, citations."""
    from temperance.reports import report as write
    from temperance.results.tree import load

    out = path.with_suffix(".html") if out is None else out
    check_folder(out)
    typer.echo(f"Wrote {write(load(path), out)}")


@command()
def methods() -> None:
    """List the methods, their options, and the papers they rest on."""
    from rich.console import Console
    from rich.table import Table

    from temperance.engine.options import described
    from temperance.methods import METHODS
    from temperance.moves.named import MOVES

    table = Table(
        "method",
        "what it is",
        "options and defaults (--set name=value)",
        "log Z",
        "papers",
        show_lines=True,
    )
    for method in METHODS.values():
        options = "\n".join(
            f"[bold]{one.name}[/]{'' if one.default is None else f'={one.default}'}  {one.words}"
            for one in described(method.options)
        )
        table.add_row(
            f"[bold]{method.name}[/]", method.summary, options or "-",
            "yes" if method.report.gives_evidence else "no", "\n".join(method.references) or "-",
        )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(f"Moves (--move): {', '.join(MOVES)}, or a call such as 'hmc(num_steps=10)'.")
    console.print("tp.cite(run) gives the BibTeX of what a run used.", highlight=False)


@command()
def demo(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("demo.html"),
    seed: Annotated[
        int,
        typer.Option(
            help="Of the samplers; the data stay the same. From about half of all seeds all chains "
            "of NUTS start in one mode, as from this one; from the others in both."
        ),
    ] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws and rows.")] = False,
    picture: Annotated[Path | None, typer.Option(help="Also write the main picture there.")] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = False,
) -> None:
    """Ask samplers two questions with known answers, and write a page about it."""
    from rich.console import Console
    from rich.table import Table

    from temperance.cli.demo import few_rows, many_rows
    from temperance.cli.demo.asking import ask
    from temperance.cli.demo.page import LEADS, write_page, write_picture

    check_folder(out)
    console = Console(width=None if sys.stdout.isatty() else 120)
    told = []
    for lead, act in zip(LEADS, (few_rows, many_rows), strict=True):
        console.print(f"{lead}\n")
        with console.status("starting") as status:
            told.append(ask(act.question(quick), seed, say=status.update))
        shown = Table(*told[-1].question.columns)
        for row in told[-1].cells:
            shown.add_row(*row)
        console.print(shown)
    write_page(out, *told)
    if picture is not None:
        write_picture(picture, told[0])
    console.print(f"Wrote {out}")
    if open_:
        typer.launch(str(out.resolve()))


__all__ = ["INTERRUPTED", "MISTAKE", "app"]
