"""Time to sample the test graphs of a dataset with a shipped model: eager, bfloat16 and compiled, in one run."""

import argparse
import json
import statistics
import time
from collections import deque
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.reverse import Denoiser
from diffuco.graphs.batch import Batch, make_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.model.acceleration import accelerate
from diffuco.pretrained import load_model
from diffuco.provenance import hardware, source_commit
from diffuco.sampling import sample_steps
from diffuco.solver import batches_by_size, pick_device, rows_per_batch

MODES = {
    "eager float32": {"precision": "float32", "compile": False},
    "eager bfloat16": {"precision": "bfloat16", "compile": False},
    "compiled bfloat16": {"precision": "bfloat16", "compile": True},
}


def seconds_to_sample(
    denoiser: Denoiser, batches: list[Batch], num_steps: int, num_samples: int, step_factor: int
) -> float:
    """Wall-clock time of one pass over all batches."""
    device = batches[0].device
    random = RowRandom(torch.Generator(device).manual_seed(0))
    started = time.perf_counter()
    for batch in batches:
        steps = sample_steps(
            denoiser, batch, num_steps=num_steps, num_samples=num_samples, step_factor=step_factor, random=random
        )
        deque(steps, maxlen=0)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def main() -> None:
    """Measure the modes that pay on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mis-rb-small")
    parser.add_argument("--dataset", default="rb-small")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--step-factor", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    arguments = parser.parse_args()
    device = pick_device(arguments.device)
    graphs = get_dataset(arguments.dataset).graphs("test", arguments.count)
    groups = batches_by_size(graphs, arguments.samples, rows_per_batch(device))
    batches = [make_batch([graphs[position] for position in group], device) for group in groups]
    table = Table(
        "mode", "seconds", "graphs a second", title=f"{arguments.count} {arguments.dataset}, {hardware(device)}"
    )
    records = []
    for mode, options in MODES.items() if device.type == "cuda" else [("eager float32", MODES["eager float32"])]:
        model = load_model(arguments.model, device).model
        denoiser = accelerate(model, device, **options)
        settings = (model.config.num_steps, arguments.samples, arguments.step_factor)
        seconds_to_sample(denoiser, batches, *settings)
        seconds = statistics.median(seconds_to_sample(denoiser, batches, *settings) for _ in range(arguments.repeats))
        table.add_row(mode, f"{seconds:.3f}", f"{arguments.count / seconds:.0f}")
        records.append({"mode": mode, "seconds": seconds})
    Console().print(table)
    if arguments.json:
        chosen = {name: value for name, value in vars(arguments).items() if name not in ("json", "device")}
        origin = {"hardware": hardware(device), "torch": torch.__version__, "commit": source_commit()}
        arguments.json.write_text(json.dumps(chosen | origin | {"measurements": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
