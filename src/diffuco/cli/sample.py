"""`diffuco sample`: weighted draws from the Boltzmann distribution of a graph's energy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import diffuco
from diffuco.cli import options
from diffuco.cli.console import check_not_read, make_folder, print_json, print_note, print_result, print_warning
from diffuco.foundation.errors import InputError
from diffuco.foundation.wording import as_utf8, counted, with_error

if TYPE_CHECKING:
    from diffuco.solution.samples import BoltzmannSamples

FEW = 30
"""Effective draws below which the errors themselves mean little."""
MANY_ERRORS = 4
"""Standard errors that estimates may be off by chance."""
LITTLE = 0.01
"""Of the temperature: a drift that changes little."""
MODEL_HELP = "Shipped model or path; best is one that was trained at this temperature."
OUTPUT_HELP = "Write states, energies, log-weights and node labels to this .npz file."


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        epilog=options.examples(
            "diffuco sample mis graph.clq --temperature 0.2",
            "diffuco sample mis graph.clq --temperature 0.5 --model runs/mine/last.safetensors --output draws.npz",
        )
    )(sample)


def sample(
    problem: options.Problem,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The graph, or - for standard input.")],
    temperature: Annotated[float, typer.Option(help="In the unit of the energy; above 0.")],
    file_format: options.Format = None,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP, show_default="the one that suits the graph")] = None,
    samples: Annotated[int, typer.Option(help="Draws.")] = 1000,
    output: Annotated[Path | None, typer.Option(help=OUTPUT_HELP)] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.Json = False,
) -> None:
    """Draw from a Boltzmann distribution.

    It is exp(-H / temperature) / Z, where H is the energy of the problem on the graph.

    A model draws, and the probability of each path gives the draw a weight that corrects what the model does wrong.
    The weights give the free energy and the mean energy with standard errors. The effective sample size says how many
    draws of the Boltzmann distribution the weighted ones are worth.
    """
    if output is not None and output.suffix != ".npz":
        raise InputError(f"{output}: draws are written as NumPy arrays; give a name that ends in .npz")
    check_not_read([output] if output else [], [file])
    graph = diffuco.read_graph(file, file_format)
    found = diffuco.sample(
        graph, problem, temperature=temperature, model=model, samples=samples, seed=seed, device=device
    )
    record = found.to_dict() | {"file": as_utf8(str(file))}
    try:
        if output is not None:
            _write(output, found)
    finally:  # what cannot be written is still shown
        print_json(record) if as_json else print_result(_text(found))
    if found.reason:
        print_note(f"drawn by {found.found_by}: {found.reason}")
    if doubt := _doubt(found):
        remedy = "raise --temperature, or give a --model that was trained at it on such graphs"
        print_warning(f"{doubt}: trust neither the estimates nor their errors; {remedy}")


def _doubt(found: "BoltzmannSamples") -> str:
    """What speaks against the draws; empty if nothing does."""
    if found.effective_sample_size < FEW:
        return f"the {counted(len(found.weights), 'draw')} are worth {found.effective_sample_size:.1f}"
    drift, error = found.energy_drift
    if abs(drift) > max(MANY_ERRORS * error, LITTLE * found.temperature):
        return (
            f"a sweep of Gibbs sampling moves the mean energy by {with_error(drift, error)}, so the model misses states"
        )
    if found.log_z.value + MANY_ERRORS * found.log_z.error < found.least_log_z:
        return f"the states drawn prove that log Z is at least {found.least_log_z:.2f}"
    return ""


def _text(found: "BoltzmannSamples") -> str:
    rows = {
        "samples": f"{len(found.weights):,}",
        "effective sample size": f"{found.effective_sample_size:.1f}",
        "acceptance rate": f"{found.acceptance_rate:.0%}",
        "log Z": with_error(*found.log_z),
        "log Z, at least": f"{found.least_log_z:.2f}",
        "free energy": with_error(*found.free_energy),
        "mean energy": with_error(*found.mean_energy),
        "energy drift": with_error(*found.energy_drift),
        "seconds": f"{found.seconds:.2f}",
    }
    title = f"{found.problem.title} at temperature {found.temperature:g}, by {found.found_by}"
    return "\n".join([title, *(f"{name:<23}{value}" for name, value in rows.items())])


def _write(path: Path, found: "BoltzmannSamples") -> None:
    import numpy as np

    from diffuco.graphs.formats.output import open_for_writing

    make_folder(path.absolute().parent)
    labels = np.array([str(label) for label in found.graph.labels])
    with open_for_writing(path) as out:
        np.savez_compressed(
            out, states=found.states, energies=found.energies, log_weights=found.log_weights, labels=labels
        )
