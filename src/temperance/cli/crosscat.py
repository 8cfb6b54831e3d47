"""`temperance crosscat`: a model of a whole table, and questions to it, without writing Python."""

from pathlib import Path
from typing import Annotated, Any

import typer

from temperance.cli.cells import (
    check_table,
    check_written,
    parse_cells,
    parse_names,
    parse_pairs,
    read_frame,
    write_frame,
)
from temperance.cli.exit_status import INTERRUPTED, check_folder, command_of
from temperance.cli.fit_progress import fit_progress
from temperance.errors import ArgumentError, unknown_name

HELP = """A model of a whole table: what depends, what missing cells may be, which rows are odd.

A table is a .csv or .parquet file with names in its first line; empty cells are missing. Columns
are categories, yes or no, numbers, counts, or numbers that are mostly one value.

    temperance crosscat fit table.csv --out model.zip

    temperance crosscat dependence model.zip --picture dependence.png

    temperance crosscat impute model.zip table.csv --out filled.csv

    temperance crosscat sample model.zip --num 5 --given age=40

    temperance crosscat score model.zip new.csv
"""
FIT_HELP = """Learn a table, and keep the model.

The kinds of columns are guessed and shown first; `--kind` says otherwise, once for each column:

    temperance crosscat fit table.csv --out model.zip --kind zip=categorical --kind age=real

Kinds are categorical, boolean, real, count and spike (a number that is mostly one value).

Each of `--states` is one draw from the posterior, and answers are averaged over them: more are
better, and `--workers` of them run side by side. The same seed gives the same states, however many
workers. `--strategy anneal` begins with few rows and lets more in. More `--passes` take longer and
find more: on some hundred rows take a hundred. `--stratify` lets rare values of a column in early.

Ctrl-C keeps what is done, saves the model as it is, and ends with status 130. With `--checkpoint`
the same command goes on where it was.
"""
MODELS = {
    "crosscat": "CrossCat",
    "pitman-yor": "PitmanYorMixture",
    "dirichlet": "DirichletProcessMixture",
}

app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode="markdown")
command = command_of(app)

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="What `fit` saved.")]
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv or .parquet file.")]
OutPath = Annotated[
    Path | None, typer.Option(help="A .csv or .parquet file. [default: CSV to standard output]")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.")]


@command(FIT_HELP)
def fit(
    table: TablePath,
    out: Annotated[Path, typer.Option(help="Where the model is saved.")] = Path("model.zip"),
    kind: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=KIND", help="A column's kind. Repeatable.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to leave out, such as a name. Repeatable."),
    ] = None,
    states: Annotated[int, typer.Option(help="Draws from the posterior.")] = 8,
    passes: Annotated[float, typer.Option(help="How often, about, each row is looked at.")] = 20.0,
    strategy: Annotated[str, typer.Option(help="anneal, sequential or prior.")] = "anneal",
    schedule: Annotated[
        str, typer.Option(help="Of an anneal: accelerating or linear.")
    ] = "accelerating",
    churn: Annotated[
        str, typer.Option(help="Of an anneal: window, random, metropolis or weighted.")
    ] = "window",
    final_sweeps: Annotated[float, typer.Option(help="Sweeps over all rows at the end.")] = 2.0,
    stratify: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column whose rare values enter early.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    workers: Annotated[int | None, typer.Option(help="States side by side.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to keep states in and to go on from.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="crosscat, or one view: pitman-yor or dirichlet.")
    ] = "crosscat",
    progress: Annotated[bool, typer.Option(help="Show progress.")] = True,
) -> None:
    """Learn a table, and keep the model."""
    check_table(table)
    check_folder(out)
    if checkpoint is not None:
        check_folder(checkpoint, "--checkpoint")
    if model not in MODELS:
        raise unknown_name("--model", model, MODELS)
    kinds = parse_pairs("--kind", kind or []) | dict.fromkeys(drop or [])
    from rich.console import Console

    from temperance.crosscat import estimator
    from temperance.crosscat.encoding.schema_inference import guess_schema
    from temperance.crosscat.frames.frame import open_frame

    opened = open_frame(table)
    schema = guess_schema(opened, kinds)
    Console(stderr=True).print(schema)
    learner = getattr(estimator, MODELS[model])(
        strategy, passes, states, schedule=schedule, churn=churn, final_sweeps=final_sweeps,
        stratify=stratify, num_workers=workers, random_state=seed,
    )  # fmt: skip
    with fit_progress(progress) as heard:
        learner.fit(
            opened, schema=schema, callback=heard, max_seconds=max_seconds, checkpoint=checkpoint
        )
    learner.save(out)
    typer.echo(told(learner))
    typer.echo(f"Saved to {out}; `temperance crosscat --help` says what can be asked of it.")
    if heard.interrupted:
        raise typer.Exit(INTERRUPTED)


@command()
def score(model: ModelPath, table: TablePath, out: OutPath = None) -> None:
    """Write the log density of every row: the lower, the odder. Their mean is told as well."""
    check_table(table)
    check_written(out)
    loaded = load(model)
    import pandas as pd

    scores = loaded.score_samples(table)
    write_frame(pd.DataFrame({"log_density": scores}), out)
    typer.echo(f"mean of {len(scores):,} rows: {scores.mean():.4f}", err=True)


@command()
def impute(
    model: ModelPath,
    table: TablePath,
    out: OutPath = None,
    uncertainty: Annotated[
        Path | None,
        typer.Option(help="Also write how sure each filled cell is: .csv or .parquet."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals in that file.")] = 0.9,
) -> None:
    """Fill in missing cells, each given the others of its row."""
    check_table(table)
    check_written(out)
    check_written(uncertainty, "--uncertainty")
    loaded = load(model)
    # As a frame, so that columns which the model does not know stay as they are.
    frame = read_frame(table, loaded.schema_)
    filled, sure = loaded.impute(frame, uncertainty=True, level=level)
    write_frame(filled, out)
    if uncertainty is not None:
        # Values of several kinds in one column: as text.
        ends = ["value", "low", "high"]
        write_frame(
            sure.assign(**{name: sure[name].astype("string") for name in ends}), uncertainty
        )


@command()
def sample(
    model: ModelPath,
    num: Annotated[int, typer.Option(help="Rows to draw.")] = 10,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Some columns. [default: all]")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="What is known of the rows. Repeatable."),
    ] = None,
    seed: Seed = 0,
    out: OutPath = None,
) -> None:
    """Draw new rows, all with the cells that are given."""
    check_written(out)
    loaded = load(model)
    known = parse_cells("--given", given or [], loaded.schema_)
    names = parse_names("--columns", columns, loaded.schema_)
    write_frame(loaded.sample(num, names, known, random_state=seed), out)


@command()
def dependence(
    model: ModelPath,
    out: OutPath = None,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw it there, as .png, .pdf or .svg.")
    ] = None,
) -> None:
    """Write the probability that two columns depend: that they share a view."""
    check_written(out)
    if picture is not None:
        check_folder(picture, "--picture")
    found = load(model).dependence()
    write_frame(found, out, index=True)
    if picture is not None:
        from temperance.reports.crosscat_figures import dependence as draw

        draw(found).savefig(picture)
        typer.echo(f"Wrote {picture}", err=True)


def load(path: Path) -> Any:
    """The model that `fit` saved."""
    if not path.is_file():
        raise ArgumentError(f"{path}: there is no such file; wanted a model that `fit` saved")
    from temperance.crosscat.estimator import CrossCat

    return CrossCat.load(path)


def told(learner: Any) -> str:
    """What was learned, in a few lines: each state's views, and the clusters in them."""
    lines = []
    for number, state in enumerate(learner.states_):
        clusters = [len(view.log_mass) - 1 for view in state.views]
        shown = ", ".join(map(str, clusters))
        lines.append(
            f"state {number + 1}: views {len(clusters)}, clusters {shown}, "
            f"log joint {state.log_joint:.1f}"
        )
    return "\n".join(lines)
