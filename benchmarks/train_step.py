"""Time and memory of one optimiser step of any recipe: reference, compiled and fused, side by side in one run."""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from diffuco.diffusion.noise import make_noise
from diffuco.graphs.datasets import get_dataset
from diffuco.model.acceleration import ENGINES, accelerate, pick_engine
from diffuco.model.weights import FlatWeights
from diffuco.problems import get_problem
from diffuco.provenance import hardware, source_commit
from diffuco.solver import pick_device
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.distributed import Group
from diffuco.training.loop import initial_model
from diffuco.training.recipes import get_recipe
from diffuco.training.step import TrainStep


def measure(config: TrainConfig, data: TrainingGraphs, engine: str, repeats: int) -> dict[str, float]:
    """Median milliseconds per step after warm-up, seconds to the end of the first step, and peak memory."""
    group = data.group
    device = group.device
    model = initial_model(config).to(device)
    weights = FlatWeights(model)
    problem, noise = get_problem(config.problem), make_noise(config.noise, config.num_steps)
    denoiser = accelerate(model, weights, engine)
    take_step = TrainStep(config, problem, noise, denoiser, weights, data, group, capture=engine == "fused")
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()

    def step(index: int) -> float:
        started = time.perf_counter()
        take_step(index, config.start_temperature, config.learning_rate)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    first = step(0)
    warm_up = 3 * len(data.ceilings)
    for index in range(1, warm_up):
        step(index)
    seconds = [step(warm_up + index) for index in range(repeats)]
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else float("nan")
    return {"milliseconds": 1000 * statistics.median(seconds), "first_seconds": first, "peak_gib": memory}


def _engines(recipe: TrainConfig, device: torch.device) -> tuple[str, ...]:
    return ENGINES if pick_engine("auto", recipe.model, device) == "fused" else ENGINES[:2]


def main() -> None:
    """Measure the recipes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=["mis-rb-small"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--engines", nargs="+", choices=ENGINES)
    parser.add_argument("--json", type=Path, help="write the measurements here")
    arguments = parser.parse_args()
    device = pick_device(arguments.device)
    place = hardware(device)
    table = Table(
        "recipe", "graphs x samples x steps x layers", "engine", "ms", "first step s", "peak GiB", title=place
    )
    records = []
    for name in arguments.recipes:
        recipe = get_recipe(name)
        graphs = get_dataset(recipe.dataset).graphs("train", 4 * recipe.graphs_per_batch)
        data = TrainingGraphs(graphs, recipe.graphs_per_batch, recipe.seed, Group(device))
        shape = f"{recipe.graphs_per_batch} x {recipe.samples_per_graph} x {recipe.num_steps} x {recipe.num_layers}"
        for engine in arguments.engines or _engines(recipe, device):
            result = measure(recipe, data, engine, arguments.repeats)
            table.add_row(
                name, shape, engine, *(f"{result[key]:.1f}" for key in ("milliseconds", "first_seconds", "peak_gib"))
            )
            records.append({"recipe": name, "shape": shape, "engine": engine, "hardware": place, **result})
            torch.compiler.reset()
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"torch": torch.__version__, "commit": source_commit(), "measurements": records}, indent=2)
            + "\n"
        )


if __name__ == "__main__":
    main()
