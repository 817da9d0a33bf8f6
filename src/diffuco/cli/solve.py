"""`diffuco solve`: graphs in, solutions out."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from diffuco.cli import options
from diffuco.cli.many_files import FileSolver, solve_files
from diffuco.cli.console import make_folder, print_json, print_note, print_result, progress_bar
from diffuco.cli.inputs import Inputs, LoadedGraph, load_inputs
from diffuco.cli.outputs import as_record, print_solutions, solution_paths
from diffuco.foundation.errors import InputError
from diffuco.solution.log import SUFFIXES
from diffuco.foundation.wording import counted

if TYPE_CHECKING:
    from diffuco.graphs.graph import Graph
    from diffuco.model.checkpoint import Checkpoint
    from diffuco.solution.result import Solution
    from diffuco.inference.solver import Solver

EXIT_BAD_INPUT = 2
OUTPUT_HELP = (
    "Write the solution to this file, as JSON if it ends in .json; of several graphs, one each in this folder, or all "
    "in a file that ends in .jsonl or .parquet. Such a file is continued where a run was stopped."
)
METHOD_HELP = "How to solve: auto, or what `diffuco methods` lists; options of models ask for a model instead."
ENGINE_HELP = "Where to solve: here, or on the workers of a Ray cluster, with --output to a .jsonl or .parquet file."


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco solve mis graph.clq",
            "diffuco solve max-cut G1.txt.gz --samples 32 --step-factor 6 --decode ce-st",
            "diffuco solve mis graph.clq --model mis-rb-small --refine none",
            "diffuco solve mds graphs/ --output solutions/ --json > solutions.json",
            "gunzip -c graph.gr.gz | diffuco solve mvc - --format pace --plot graph.png",
            "diffuco solve mis graph.clq --method rlsa --time-limit 2",
            "diffuco solve mis graphs/ --engine ray --output solutions.jsonl",
        )
    )(solve)


def solve(
    context: typer.Context,
    problem: options.Problem,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Graph files, folders of them, or -.")],
    file_format: options.Format = None,
    model: Annotated[str | None, typer.Option(help="Shipped model or path.", show_default="by the graph")] = None,
    method: Annotated[str | None, typer.Option(help=METHOD_HELP, show_default="auto")] = None,
    time_limit: options.TimeLimit = None,
    samples: options.Samples = 8,
    step_factor: options.StepFactor = 3,
    decode: options.Decode = options.DecodeName.CE,
    token_size: options.TokenSize = 8,
    refine: options.Refine = "auto",
    output: Annotated[Path | None, typer.Option(help=OUTPUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the solved graph: a .png, .pdf or .svg file.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
    engine: Annotated[options.BatchEngine, typer.Option(help=ENGINE_HELP)] = options.BatchEngine.LOCAL,
) -> None:
    """Find a good solution of each graph.

    The method auto proves the optimum of a small graph where that takes a second, and else anneals or, where that pays,
    samples and refines with a trained model. --model and the other options of models ask for the samples of a
    model, of which the best is kept. Node weights in a file are weights of the set, edge weights those of the cut or
    QUBO; a problem says which it ignores. Every answer is checked independently of what found it; it is optimal only
    where that is said.
    """
    method = options.method_or_model(context, method, time_limit)
    sweeps = options.num_sweeps(refine)
    if method is not None:
        _check_method(method, problem, time_limit)
    settings: dict[str, Any] = {"samples": samples, "step_factor": step_factor, "token_size": token_size}
    settings |= {"decode": decode.value, "refine": sweeps}
    if engine is options.BatchEngine.RAY or _is_log(output):
        solver = FileSolver(
            *(problem.value, method, _load(problem, model), settings, seed, device, time_limit, file_format)
        )
        summary, num_bad = solve_files(files, _log_path(output, plot), solver, engine)
        print_json(summary) if as_json else print_result(_summary_line(summary))
        raise typer.Exit(EXIT_BAD_INPUT if num_bad else 0)
    inputs = load_inputs(files, file_format, problem.value)
    if inputs.graphs:
        # Whatever would make writing fail is found before the work, not after it.
        _check_plot(inputs, plot)
        paths = solution_paths(inputs, output) if output else []
        if method is not None:
            solutions = _solve_with(method, problem, inputs, seed=seed, device=device, time_limit=time_limit)
        else:
            solutions = _solve_with_models(problem, model, inputs, settings | {"seed": seed}, device)
        if method == "auto":
            _explain(problem, solutions, device, time_limit)
        records = [as_record(*pair) for pair in zip(inputs.graphs, solutions, strict=True)]
        _write_files(solutions, records, paths, plot)
        if as_json:
            print_json(records[0] if inputs.is_single else records)
        else:
            title = _title(problem, "model" if method is None else "method", records)
            print_solutions(records, title, num_samples=samples if method is None else None)
    if inputs.num_bad:
        raise typer.Exit(EXIT_BAD_INPUT)


def _is_log(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() in SUFFIXES


def _log_path(output: Path | None, plot: Path | None) -> Path:
    """Where many solutions go; what does not go together is refused."""
    if output is None or not _is_log(output):
        raise InputError("--engine ray writes all solutions to one file; give --output FILE.jsonl or FILE.parquet")
    if plot is not None:
        raise InputError(f"--plot draws one graph; it excludes --output {output} and --engine ray")
    return output


def _load(problem: str, model: str | None) -> "Checkpoint | None":
    """The model that is asked for, once for all workers."""
    from diffuco.inference.solver import Solver

    return Solver(problem, model, device="cpu").checkpoint if model is not None else None


def _summary_line(summary: dict[str, Any]) -> str:
    line = f"{counted(summary['graphs'], 'graph')} in {summary['output']}, {summary['solved']} solved now"
    details = [f"{summary[name]} {name}" for name in ("optimal", "infeasible") if summary[name]]
    return f"{line} ({', '.join(details)})" if details else line


def _title(problem: str, kind: str, records: list[dict[str, Any]]) -> str:
    from diffuco.problems import get_problem

    names = dict.fromkeys(record["model"] for record in records)
    return f"{get_problem(problem).title}, {kind}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _explain(problem: str, solutions: list["Solution"], device: str, time_limit: float | None) -> None:
    """Say how the method auto found each solution, and why so."""
    from diffuco.methods.auto import missing_proof, searchers
    from diffuco.foundation.devices import pick_device
    from diffuco.problems import get_problem

    reasons = [f"proven optimal by {solution.model}" for solution in solutions if solution.optimal]
    rest = [solution.graph for solution in solutions if not solution.optimal]
    plan = searchers(get_problem(problem), rest, pick_device(device), time_limit)
    reasons += [f"solved by {name}: {why}" for name, why in plan]
    for reason, count in Counter(reasons).items():
        print_note(reason if len(solutions) == 1 else f"{count} of {len(solutions)} graphs {reason}")
    missing = missing_proof(get_problem(problem), rest)
    if missing:
        print_note(f"no proof was tried, for want of {missing}")


def _check_plot(inputs: Inputs, plot: Path | None) -> None:
    if plot is None:
        return
    from diffuco.plotting import check_plot_path

    if len(inputs.graphs) > 1:
        raise InputError(f"--plot draws one graph, here are {len(inputs.graphs)}; give one file")
    make_folder(plot.absolute().parent)
    check_plot_path(plot)


def _solve_with_models(
    problem: str, model: str | None, inputs: Inputs, settings: dict[str, Any], device: str
) -> list["Solution"]:
    from diffuco.solving.entry import solvers_for

    graphs = [loaded.graph for loaded in inputs.graphs]
    if model is None:
        _announce_choice(problem, graphs)
    solutions: dict[int, Solution] = {}
    with progress_bar() as bar:
        task = bar.add_task("solving", total=len(graphs), visible=not inputs.is_single)
        for solver, positions in solvers_for(problem, graphs, model, device=device):
            done = len(solutions)
            _announce_large(solver, [inputs.graphs[position] for position in positions], settings["samples"])
            found = solver.solve(
                [graphs[position] for position in positions],
                on_solved=lambda count, done=done: bar.update(task, completed=done + count),  # type: ignore[misc]
                **settings,
            )
            solutions |= dict(zip(positions, found, strict=True))
    return [solutions[position] for position in range(len(graphs))]


def _announce_choice(problem: str, graphs: list["Graph"]) -> None:
    """Say which shipped models are taken for how many graphs, and why."""
    from diffuco.pretrained import choose_model, choose_models

    names = [choice.name for choice in choose_models(problem, graphs)]
    for name in dict.fromkeys(names):
        chosen = [graph for graph, other in zip(graphs, names, strict=True) if other == name]
        print_note(f"model {name}, {choose_model(problem, chosen).reason}")


def _announce_large(solver: "Solver", inputs: list[LoadedGraph], samples: int) -> None:
    from diffuco.inference.memory import LARGE_BYTES

    for loaded in inputs:
        need = solver.requirement(loaded.graph, samples)
        if need.num_bytes >= LARGE_BYTES:
            at_once = f"{need.samples_at_once} of {samples} samples at a time"
            print_note(f"{loaded.file} will need about {need.num_bytes / 2**30:.1f} GiB, {at_once}")


def _check_method(method: str, problem: str, time_limit: float | None) -> None:
    from diffuco.methods import check_method, get_method

    check_method(get_method(method), problem, time_limit)


def _solve_with(
    method: str, problem: str, inputs: Inputs, *, seed: int, device: str, time_limit: float | None
) -> list["Solution"]:
    from diffuco.methods import solve_with

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


def _write_files(
    solutions: list["Solution"], records: list[dict[str, Any]], paths: list[Path], plot: Path | None
) -> None:
    from diffuco.solution.files import write_solution

    if paths:
        for path, record in zip(paths, records, strict=True):
            write_solution(path, record)
    if plot:
        from diffuco.plotting import plot_solution

        plot_solution(solutions[0], plot)
