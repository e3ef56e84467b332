"""The program `assay`: its commands, and how it ends."""

import io
import sys
from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from service.cli import demo, doctor, grade, image, passk, serve
from service.cli.errors import DEFECT, CliError

app = typer.Typer(
    name="assay",
    help="Grades language-model completions in network-isolated sandboxes and returns rewards.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("serve")(serve.command)
app.command("grade")(grade.command)
app.command("passk")(passk.command)
app.command("demo")(demo.command)
app.command("doctor")(doctor.command)
app.add_typer(image.app, name="image")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"assay {installed_version('assay-server')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Run the command line; what a person can put right is one message on standard error, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to stop
    try:
        app()
    except CliError as error:
        sys.stderr.write(f"assay: {error}\n")
        sys.exit(error.exit_code)
    except (RuntimeError, ValueError, OSError, ArithmeticError) as defect:
        # Not 1, which says that everything was answered.
        sys.stderr.write(f"assay: this went wrong in a way that nobody foresaw: {type(defect).__name__}: {defect}\n")
        sys.exit(DEFECT)
