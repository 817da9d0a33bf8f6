"""Time and memory of one optimiser step, eager and compiled, for any recipe, side by side in one run."""

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from diffuco.diffusion.loss import backward_joint_bound
from diffuco.diffusion.noise import make_noise
from diffuco.graphs.datasets import get_dataset
from diffuco.model.acceleration import accelerate
from diffuco.problems import get_problem
from diffuco.provenance import hardware, source_commit
from diffuco.solver import pick_device
from diffuco.training.config import TrainConfig
from diffuco.training.data import TrainingGraphs
from diffuco.training.distributed import Group
from diffuco.training.loop import initial_model
from diffuco.training.recipes import get_recipe


def measure(config: TrainConfig, data: TrainingGraphs, device: torch.device, repeats: int) -> dict[str, float]:
    """Median milliseconds per step after warm-up, seconds to the end of the first step, and peak memory."""
    model = initial_model(config).to(device)
    optimizer = torch.optim.RAdam(model.parameters(), lr=config.learning_rate)
    denoiser = accelerate(model, device, precision=config.precision, compile=config.compile)
    problem, noise = get_problem(config.problem), make_noise(config.noise, config.num_steps)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()

    def step(index: int) -> float:
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        backward_joint_bound(
            denoiser,
            problem,
            noise,
            data.batch(index),
            temperature=config.start_temperature,
            num_samples=config.samples_per_graph,
            random=data.random(index),
            steps_per_chunk=config.steps_per_chunk or None,
        )
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.max_gradient_norm)
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    first = step(0)
    for index in range(1, 4):
        step(index)
    seconds = [step(4 + index) for index in range(repeats)]
    memory = torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else float("nan")
    return {"milliseconds": 1000 * statistics.median(seconds), "first_seconds": first, "peak_gib": memory}


def main() -> None:
    """Measure the recipes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=["mis-rb-small"])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--skip-eager", action="store_true")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    arguments = parser.parse_args()
    device = pick_device(arguments.device)
    place = hardware(device)
    table = Table("recipe", "graphs x samples x steps x layers", "mode", "ms", "first step s", "peak GiB", title=place)
    records = []
    for name in arguments.recipes:
        recipe = get_recipe(name)
        graphs = get_dataset(recipe.dataset).graphs("train", 4 * recipe.graphs_per_batch)
        data = TrainingGraphs(graphs, recipe.graphs_per_batch, recipe.seed, Group(device))
        shape = f"{recipe.graphs_per_batch} x {recipe.samples_per_graph} x {recipe.num_steps} x {recipe.num_layers}"
        for compiled in (False, True)[arguments.skip_eager :]:
            result = measure(replace(recipe, compile=compiled), data, device, arguments.repeats)
            mode = "compiled" if compiled else "eager"
            table.add_row(
                name, shape, mode, *(f"{result[key]:.1f}" for key in ("milliseconds", "first_seconds", "peak_gib"))
            )
            records.append({"recipe": name, "shape": shape, "mode": mode, "hardware": place, **result})
            torch.compiler.reset()
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"torch": torch.__version__, "commit": source_commit(), "measurements": records}, indent=2)
            + "\n"
        )


if __name__ == "__main__":
    main()
