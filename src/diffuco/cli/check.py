"""`diffuco check`: judge a solution file with code that shares nothing with the solver."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli.console import print_json, print_result
from diffuco.cli.options import Format, Json, Problem, examples
from diffuco.foundation.errors import GraphWarning

if TYPE_CHECKING:
    from diffuco.problems import Verdict

EXIT_INFEASIBLE = 1


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=examples(
            "diffuco solve mis graph.clq --output graph.sol && diffuco check mis graph.clq graph.sol",
            "diffuco check max-cut G1.txt G1.json --json",
        )
    )(check)


def check(
    problem: Problem,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The graph, or - for standard input.")],
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="One node label per line, or JSON.")],
    file_format: Format = None,
    as_json: Json = False,
) -> None:
    """Verify a solution independently of the solver.

    The exit code is 0 if the solution is feasible, 1 if it is not, and 2 if a file cannot be used.
    """
    from diffuco.graphs.formats import read_graph
    from diffuco.problems import get_problem
    from diffuco.solution.files import read_solution
    from diffuco.solution.result import as_count

    known = get_problem(problem)
    graph = read_graph(file, file_format)
    given = read_solution(solution, graph)
    verdict = known.check(graph, given.chosen)
    _warn_of_false_claims(solution, problem, given.claims, verdict)
    if as_json:
        print_json(
            {
                "problem": problem,
                "file": str(file),
                "nodes": graph.num_nodes,
                "edges": graph.num_edges,
                "objective": as_count(verdict.objective),
                "feasible": verdict.feasible,
                "violations": verdict.violations,
            }
        )
    else:
        feasible = "yes" if verdict.feasible else f"NO: {verdict.violations} violated"
        print_result(f"objective  {as_count(verdict.objective)}\nfeasible   {feasible}")
    raise typer.Exit(0 if verdict.feasible else EXIT_INFEASIBLE)


def _warn_of_false_claims(path: Path, problem: str, claims: dict[str, Any], verdict: "Verdict") -> None:
    if claims.get("problem", problem) != problem:
        text = f"{path}: this is a solution of {claims['problem']}, but it was checked as {problem}"
        warnings.warn(GraphWarning(text), stacklevel=2)
        return
    try:
        claimed = float(claims["objective"])
    except (KeyError, TypeError, ValueError):
        return
    if not math.isclose(claimed, verdict.objective, rel_tol=1e-6, abs_tol=1e-6):
        text = f"{path}: the file claims objective {claims['objective']}, but it is {verdict.objective:g}"
        warnings.warn(GraphWarning(text), stacklevel=2)
