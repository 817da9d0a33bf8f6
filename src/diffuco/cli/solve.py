"""`diffuco solve`: graphs in, solutions out."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import diffuco
from diffuco.cli import EXIT_BAD_INPUT, options
from diffuco.cli.console import (
    check_not_read,
    make_folder,
    print_error,
    print_json,
    print_note,
    print_result,
    progress_bar,
    search_progress,
)
from diffuco.cli.inputs import Inputs, LoadedGraph, load_inputs
from diffuco.cli.many_files import FileSolver, solve_files
from diffuco.cli.outputs import as_record, print_solutions, rows_of, solution_paths
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import counted
from diffuco.solution.log import SUFFIXES

if TYPE_CHECKING:
    from diffuco.graphs.graph import Graph
    from diffuco.solution.result import Solution

OUTPUT_HELP = (
    "Write the solution to this file, as JSON if it ends in .json. For several graphs, a folder with one file each, or "
    "one .jsonl or .parquet file; the same command then continues a stopped run."
)
METHOD_HELP = "A name that `diffuco methods` lists. Options of models choose the method diffuco."
START_HELP = (
    "A solution of your own, as --output writes it. Annealing and --rounds continue from it; the answer is never worse."
)
SOLUTIONS_HELP = "Show up to this many distinct solutions, best first. Annealing adds to those of the method."
ENGINE_HELP = "Where to solve: on this machine, or on a Ray cluster, with --output to a .jsonl or .parquet file."


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
            "diffuco solve mis graph.clq --solutions 5",
            "diffuco solve mis graphs/ --engine ray --output solutions.jsonl",
            "torchrun --nproc-per-node 2 -m diffuco solve max-cut graph.txt --model max-cut-sparse --refine none",
        )
    )(solve)


def solve(
    problem: options.Problem,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Graph files, folders of them, or - for standard input.")
    ],
    file_format: options.Format = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "auto",
    time_limit: options.TimeLimit = None,
    model: Annotated[
        str | None, typer.Option(help="Shipped model or path.", show_default="the one that suits the graph")
    ] = None,
    samples: options.Samples = None,
    step_factor: options.StepFactor = None,
    decode: options.Decode = None,
    token_size: options.TokenSize = None,
    rounds: options.Rounds = None,
    refine: options.Refine = None,
    start: Annotated[Path | None, typer.Option(help=START_HELP)] = None,
    solutions: Annotated[int | None, typer.Option(help=SOLUTIONS_HELP, show_default="one")] = None,
    output: Annotated[Path | None, typer.Option(help=OUTPUT_HELP)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the solved graph to a .png, .pdf or .svg file.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
    engine: Annotated[options.BatchEngine, typer.Option(help=ENGINE_HELP)] = options.BatchEngine.LOCAL,
) -> None:
    """Find a good solution of each graph.

    The method auto proves the optimum of a small graph if that takes at most a second. Otherwise it anneals or, where
    that pays, draws samples of a trained model and refines them. --model and the other options of models draw samples
    of a model and keep the best. Node weights in a file are weights of the set; edge weights are weights of the cut or
    QUBO. A warning names weights that the problem ignores. Every answer is checked independently of what found it. It
    is optimal only if the output says so.
    """
    if refine == "auto" and method not in ("auto", "diffuco"):
        raise InputError(f"refine is for models and excludes the method {method}; give one of the two")
    settings: dict[str, Any] = {
        "method": "diffuco" if refine == "auto" else method,
        "model": None if model is None else diffuco.load_model(model),
        "time_limit_s": time_limit,
        "samples": samples,
        "step_factor": step_factor,
        "decode": decode and decode.value,
        "token_size": token_size,
        "rounds": rounds,
        "refine": options.num_sweeps(refine),
        "solutions": solutions,
        "seed": seed,
        "device": device,
    }
    # Refuse bad options before any file is read. This machine does not know which devices a cluster has.
    diffuco.solve([], problem, **settings | ({"device": "cpu"} if engine is options.BatchEngine.RAY else {}))
    if engine is options.BatchEngine.RAY or _is_log(output):
        if _is_one_of_several():
            raise InputError("torchrun samples graphs in parts; for many graphs in one file, start a single process")
        if solutions is not None and output is not None and output.suffix.lower() == ".parquet":
            raise InputError(f"{output}: Parquet files hold one solution per graph; for --solutions give a .jsonl file")
        solver = FileSolver(problem, settings, file_format)
        summary, num_bad = solve_files(files, _log_path(output, plot, start), solver, engine)
        print_json(summary) if as_json else print_result(_summary_line(summary))
        raise typer.Exit(EXIT_BAD_INPUT if num_bad else 0)
    inputs = load_inputs(files, file_format, problem)
    if inputs.graphs:
        # Find out whether the files can be written before the work, not after it.
        _check_single(inputs, plot, start)
        paths = solution_paths(inputs, output) if output else []
        check_not_read(paths, [*files, *(Path(loaded.file) for loaded in inputs.graphs)])
        found = _solve(problem, inputs, settings | {"start": start and [start]})
        if _is_one_of_several():
            from diffuco.foundation.distributed import leads

            if not leads():
                return
        records = [as_record(loaded, one) if one else None for loaded, one in zip(inputs.graphs, found, strict=True)]
        solved = [record for record in records if record]
        try:
            _write_files(found, records, paths, plot)
        finally:  # what cannot be written is still shown
            if as_json:
                print_json(solved[0] if inputs.is_single else solved)
            elif solved:
                asked = (model, samples, step_factor, decode, token_size, rounds, refine)
                is_model = settings["method"] == "diffuco" or any(option is not None for option in asked)
                print_solutions(solved, _title(problem, solved), show_mean=is_model)
        if len(solved) < len(records):
            raise typer.Exit(EXIT_BAD_INPUT)
    if inputs.num_bad:
        raise typer.Exit(EXIT_BAD_INPUT)


def _solve(problem: str, inputs: Inputs, settings: dict[str, Any]) -> list["Solution | list[Solution] | None"]:
    """Solve all graphs, show the progress, and say how each was solved and why; with `solutions`, a list for each.

    Of several graphs, those that cannot be solved are None.
    """
    graphs = [loaded.graph for loaded in inputs.graphs]
    found: list[Any]
    if _is_one_of_several():
        found = _solve_in_parts(problem, graphs, settings)
    elif inputs.is_single:
        with search_progress():
            found = diffuco.solve(graphs, problem, **settings)
    else:
        with progress_bar() as bar:
            task = bar.add_task("solving", total=len(graphs))
            settings = settings | {"on_solved": lambda count: bar.advance(task, count)}
            found = _solve_several(problem, inputs.graphs, settings)
    solutions = [_first(one) for one in found if one]
    told = [f"solved by {s.found_by}: {s.reason}" if not s.optimal else s.reason for s in solutions if s.reason]
    for line, count in Counter(told).items():
        print_note(line if len(solutions) == 1 else f"{count} of {len(solutions)} graphs {line}")
    return found


def _solve_several(problem: str, graphs: list[LoadedGraph], settings: dict[str, Any]) -> list[Any]:
    """Solve graphs together or, if one cannot be solved, each by itself; an error is reported and leaves None."""
    try:
        found: list[Any] = diffuco.solve([loaded.graph for loaded in graphs], problem, **settings)
    except InputError as error:
        if len(graphs) > 1:
            return [one for loaded in graphs for one in _solve_several(problem, [loaded], settings)]
        print_error(f"{graphs[0].file}: {error}")
        return [None]
    return found


def _solve_in_parts(problem: str, graphs: list["Graph"], settings: dict[str, Any]) -> list[Any]:
    """Solve graphs together with other processes, by a model."""
    from diffuco.foundation.distributed import joined_group
    from diffuco.methods.model import ModelMethod

    method = settings["method"]
    if method not in ("auto", ModelMethod.name):
        raise InputError(f"{method} runs in one process; without torchrun it solves the same, or give a model")
    with joined_group(settings["device"]) as group:
        found: list[Any] = diffuco.solve(graphs, problem, **settings | {"method": ModelMethod(group=group)})
    return found


def _is_one_of_several() -> bool:
    """Whether torchrun started several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _first(found: "Solution | list[Solution]") -> "Solution":
    return found[0] if isinstance(found, list) else found


def _is_log(output: Path | None) -> bool:
    return output is not None and output.suffix.lower() in SUFFIXES


def _log_path(output: Path | None, plot: Path | None, start: Path | None) -> Path:
    """The file for many solutions; options that exclude each other are refused."""
    if output is None or not _is_log(output):
        raise InputError("--engine ray writes all solutions to one file; give --output FILE.jsonl or FILE.parquet")
    for option, given in (("--plot", plot), ("--start", start)):
        if given is not None:
            raise InputError(f"{option} is for one graph; it excludes --output {output} and --engine ray")
    return output


def _summary_line(summary: dict[str, Any]) -> str:
    line = f"{counted(summary['graphs'], 'graph')} in {summary['output']}, {summary['solved']} solved now"
    details = [f"{summary[name]} {name}" for name in ("optimal", "infeasible") if summary[name]]
    return f"{line} ({', '.join(details)})" if details else line


def _title(problem: str, records: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(row["found_by"] for row in rows_of(records))
    return f"{diffuco.problems.get_problem(problem).title}, by {', '.join(names)}"


def _check_single(inputs: Inputs, plot: Path | None, start: Path | None) -> None:
    for option, given in (("--plot", plot), ("--start", start)):
        if given is not None and len(inputs.graphs) > 1:
            raise InputError(f"{option} is for one graph, but there are {len(inputs.graphs)}; give one file")
    if plot is not None:
        from diffuco.plotting import check_plot_path

        make_folder(plot.absolute().parent)
        check_plot_path(plot)


def _write_files(
    found: Sequence["Solution | list[Solution] | None"],
    records: Sequence[dict[str, Any] | None],
    paths: list[Path],
    plot: Path | None,
) -> None:
    from diffuco.solution.files import write_solution

    if paths:
        for path, record in zip(paths, records, strict=True):
            if record:
                write_solution(path, record)
    if plot and found[0]:
        from diffuco.plotting import plot_solution

        plot_solution(_first(found[0]), plot)
