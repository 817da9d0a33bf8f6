"""`diffuco methods`: all ways to solve a graph."""

from typing import TYPE_CHECKING, Any

import typer

from diffuco.cli.console import print_json, print_result
from diffuco.cli.options import Json, examples

if TYPE_CHECKING:
    from rich.table import Table


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples("diffuco methods", "diffuco methods --json", "diffuco solve mis graph.clq --method greedy")
    )(methods)


def methods(as_json: Json = False) -> None:
    """List what --method can be.

    Shows which problems each method solves and whether it is installed. A time limit is used up ("used"), ends a method
    that is not done earlier ("stops"), or has no effect because the method cannot be cut short ("ignored").
    """
    from diffuco.methods import all_methods
    from diffuco.problems import all_problems

    records = [
        {
            "name": method.name,
            "summary": method.summary,
            "problems": [problem.name for problem in all_problems() if method.solves(problem)],
            "time_limit": method.time_limit,
            "missing": method.missing(),
        }
        for method in all_methods()
    ]
    print_json(records) if as_json else print_result(_table(records))


def _table(records: list[dict[str, Any]]) -> "Table":
    from rich.table import Table

    from diffuco.problems import all_problems

    every = [problem.name for problem in all_problems()]
    table = Table("method", "what it is", "problems", "time limit", "installed")
    for record in records:
        problems = "all" if record["problems"] == every else ", ".join(record["problems"])
        installed = "yes" if record["missing"] is None else f"no: {record['missing']}"
        table.add_row(record["name"], record["summary"], problems, record["time_limit"], installed)
    return table
