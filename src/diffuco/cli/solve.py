"""`diffuco solve`: graphs in, solutions out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.console import make_folder, print_json, print_note, progress_bar
from diffuco.cli.inputs import Inputs, LoadedGraph, load_inputs
from diffuco.cli.outputs import print_solutions, solution_paths
from diffuco.errors import InputError

if TYPE_CHECKING:
    from diffuco.solution import Solution
    from diffuco.solver import Solver

EXIT_BAD_INPUT = 2
OUTPUT_HELP = (
    "Write the solution to this file, as JSON if it ends in .json; of several graphs, one each in this folder."
)


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco solve mis graph.clq",
            "diffuco solve max-cut G1.txt.gz --samples 32 --step-factor 6 --decode ce-st",
            "diffuco solve mds graphs/ --output solutions/ --json > solutions.json",
            "gunzip -c graph.gr.gz | diffuco solve mvc - --format pace --plot graph.png",
            "diffuco solve mis graph.clq --method rlsa --time-limit 2",
        )
    )(solve)


def solve(
    context: typer.Context,
    problem: options.Problem,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Graph files, folders of them, or -.")],
    file_format: options.Format = None,
    model: Annotated[str | None, typer.Option(help="Shipped model or path.", show_default="by problem")] = None,
    method: options.Method = None,
    time_limit: options.TimeLimit = None,
    samples: options.Samples = 8,
    step_factor: options.StepFactor = 3,
    decode: options.Decode = options.DecodeName.CE,
    token_size: options.TokenSize = 8,
    output: Annotated[Path | None, typer.Option(help=OUTPUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the solved graph: a .png, .pdf or .svg file.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Find a good solution of each graph with a trained model, or with another method.

    The result is the best of the samples, checked independently of the solver. It need not be optimal.
    """
    options.refuse_mixture(context, method, time_limit)
    if method is not None:
        _check_method(method, problem, time_limit)
    inputs = load_inputs(files, file_format)
    if inputs.graphs:
        # Whatever would make writing fail is found before the work, not after it.
        _check_plot(inputs, plot)
        paths = solution_paths(inputs, output) if output else []
        if method is not None:
            solutions = _solve_with(method, problem, inputs, seed=seed, device=device, time_limit=time_limit)
        else:
            from diffuco.solver import Solver

            solver = Solver(problem, model, device=device)
            _announce_large(solver, inputs, samples)
            settings = {"samples": samples, "step_factor": step_factor, "token_size": token_size, "seed": seed}
            solutions = _solve(solver, inputs, decode, settings)
        records = [_record(*pair) for pair in zip(inputs.graphs, solutions, strict=True)]
        _write_files(solutions, records, paths, plot)
        if as_json:
            print_json(records[0] if inputs.is_single else records)
        else:
            from diffuco.problems import get_problem

            title = f"{get_problem(problem).title}, {'model' if method is None else 'method'} {records[0]['model']}"
            print_solutions(records, title, num_samples=samples if method is None else None)
    if inputs.num_bad:
        raise typer.Exit(EXIT_BAD_INPUT)


def _check_plot(inputs: Inputs, plot: Path | None) -> None:
    if plot is None:
        return
    from diffuco.plotting import check_plot_path

    if len(inputs.graphs) > 1:
        raise InputError(f"--plot draws one graph, here are {len(inputs.graphs)}; give one file")
    make_folder(plot.absolute().parent)
    check_plot_path(plot)


def _announce_large(solver: "Solver", inputs: Inputs, samples: int) -> None:
    from diffuco.memory import LARGE_BYTES

    for loaded in inputs.graphs:
        need = solver.requirement(loaded.graph, samples)
        if need.num_bytes >= LARGE_BYTES:
            at_once = f"{need.samples_at_once} of {samples} samples at a time"
            print_note(f"{loaded.file} will need about {need.num_bytes / 2**30:.1f} GiB, {at_once}")


def _solve(solver: "Solver", inputs: Inputs, decode: options.DecodeName, settings: dict[str, int]) -> list["Solution"]:
    with progress_bar() as bar:
        task = bar.add_task("solving", total=len(inputs.graphs), visible=not inputs.is_single)
        return solver.solve(
            [loaded.graph for loaded in inputs.graphs],
            decode=decode.value,
            on_solved=lambda done: bar.update(task, completed=done),
            **settings,
        )


def _check_method(method: str, problem: str, time_limit: float | None) -> None:
    from diffuco.baselines.methods import check_method, get_method

    check_method(get_method(method), problem, time_limit)


def _solve_with(
    method: str, problem: str, inputs: Inputs, *, seed: int, device: str, time_limit: float | None
) -> list["Solution"]:
    from diffuco.baselines.methods import solve_with

    with progress_bar() as bar:
        task = bar.add_task("solving", total=len(inputs.graphs), visible=not inputs.is_single)
        return solve_with(
            method,
            problem,
            [loaded.graph for loaded in inputs.graphs],
            seed=seed,
            device=device,
            time_limit_s=time_limit,
            on_solved=lambda done: bar.update(task, completed=done),
        )


def _record(loaded: LoadedGraph, solution: "Solution") -> dict[str, Any]:
    """What `--json` prints: the file as the user named it, and reading it counted as loading."""
    record = solution.to_dict() | {"file": loaded.file}
    record["seconds"] = record["seconds"] | {"load": record["seconds"]["load"] + loaded.seconds}
    return record


def _write_files(
    solutions: list["Solution"], records: list[dict[str, Any]], paths: list[Path], plot: Path | None
) -> None:
    from diffuco.solution_files import write_solution

    if paths:
        for path, record in zip(paths, records, strict=True):
            write_solution(path, record)
    if plot:
        from diffuco.plotting import plot_solution

        plot_solution(solutions[0], plot)
