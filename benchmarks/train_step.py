"""Time and memory of one optimiser step of any recipe, for the engines reference, compiled and fused in one run.

    python benchmarks/train_step.py mis-rb-small mis-rb-large-paper --json train-step.json

Batches are padded to one of a few sizes, so a step's time depends on its batch. Six batches, two of each size, take
turns, as in training. After two passes over them to warm up (one on a CPU), `--passes` passes are timed, with the
device synchronised around every step. "ms" is the median of each size, averaged over the six batches. "first" is the
first step, including compilation unless it is cached. "peak" is the memory of a step, without the training graphs that
stay on the device.

`roofline` explains which arithmetic and which bytes count for TFLOP/s and GB/s. The shares in brackets are relative to
the speeds that the device reached in this run with a matrix product of the engine's type and with a copy. The floor is
the shortest time that these limits allow.
"""

import argparse
import gc
import statistics
from collections import defaultdict
from dataclasses import replace

import torch
from evidence import Record, add_options, measured_limits, require_green, seconds, write_record
from rich.console import Console
from rich.table import Table
from roofline import FLOAT_BYTES, SPEED_COLUMNS, Work, engines_here, speed_cells, speeds, train_step_work

from diffuco.foundation.devices import pick_device
from diffuco.foundation.distributed import Group
from diffuco.foundation.provenance import hardware
from diffuco.graphs.datasets import get_dataset
from diffuco.model.engine.acceleration import ENGINES
from diffuco.training.config import TrainConfig
from diffuco.training.data import NUM_SIZES, TrainingGraphs
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe
from diffuco.training.step import TrainStep

TESTS = ("tests/test_fused.py", "tests/test_loss.py")
NUM_BATCHES = 2 * NUM_SIZES
WARM_UP_PASSES = 2
"""These take four steps of each size; the third is the first that replays a recording, which a CPU does not make."""


def main() -> None:
    """Measure the recipes named on the command line."""
    arguments = _arguments()
    device = pick_device(arguments.device)
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    columns = ("recipe", "graphs x samples x steps x layers", "engine", "ms", "first s", "peak GiB", *SPEED_COLUMNS)
    table = Table(*columns, title=hardware(device), caption=str(limits))
    records: list[Record] = []
    for name in arguments.recipes:
        config = get_recipe(name)
        data = training_graphs(config, device)
        for engine in arguments.engines or engines_here(choose_parts(config).network, device):
            times, work = measure(config, data, engine, arguments.passes)
            speed = speeds(work, times["ms"] / 1000, limits, engine)
            record = {"recipe": name, "shape": shape(config), "engine": engine} | times | speed
            records.append(record)
            table.add_row(name, record["shape"], engine, *time_cells(record), *speed_cells(record))
    Console(width=150).print(table)
    write_record(arguments, device, tests, limits, records)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=["mis-rb-small"], metavar="recipe")
    parser.add_argument("--passes", type=int, default=5, help="timed passes over the batches")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, help="default: all that are worth using on the device")
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


def training_graphs(config: TrainConfig, device: torch.device) -> TrainingGraphs:
    """A few batches of a recipe."""
    graphs = get_dataset(config.dataset).graphs("train", NUM_BATCHES * config.graphs_per_batch)
    return TrainingGraphs(graphs, config.graphs_per_batch, config.seed, Group(device))


def measure(config: TrainConfig, data: TrainingGraphs, engine: str, passes: int) -> tuple[Record, Work]:
    """Times and memory of steps with one engine, and the work of an average step."""
    device = data.group.device
    memory_before = _fresh_memory(device)
    take_step = TrainStep(choose_parts(replace(config, engine=engine)), data)

    def step(index: int) -> float:
        return seconds(lambda: take_step(index, config.start_temperature, config.learning_rate), device)

    first = step(0)
    num_warm_up = (1 if device.type == "cpu" else WARM_UP_PASSES) * NUM_BATCHES
    for index in range(1, num_warm_up):
        step(index)
    by_size: dict[int, list[float]] = defaultdict(list)
    for index in range(num_warm_up, num_warm_up + passes * NUM_BATCHES):
        by_size[data.chosen(index)[1]].append(step(index))
    medians = {size: statistics.median(times) for size, times in sorted(by_size.items())}
    times = {
        "ms": 1000 * statistics.fmean(medians[size] for size, times in by_size.items() for _ in times),
        "ms_by_padded_size": {str(size): 1000 * median for size, median in medians.items()},
        "first_s": first,
        "peak_gib": _peak_gib(device, memory_before),
        "mean_nodes": statistics.fmean(graph.num_nodes for graph in data.graphs),
    }
    return times, _mean_work(config, data, engine)


def _mean_work(config: TrainConfig, data: TrainingGraphs, engine: str) -> Work:
    """Mean work of a batch; all batches together are all graphs."""
    over_lists = data.batch(*data.chosen(0)).wide_lists is not None
    whole = train_step_work(config, data.graphs, over_lists=over_lists, float_bytes=FLOAT_BYTES[engine])
    return whole * (1 / NUM_BATCHES)


def _fresh_memory(device: torch.device) -> int:
    """Free the memory of the last engine, and return the bytes still in use."""
    torch.compiler.reset()
    gc.collect()
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def _peak_gib(device: torch.device, memory_before: int) -> float | None:
    """Peak memory beyond `memory_before`; None on a CPU, which does not report it."""
    return (torch.cuda.max_memory_allocated(device) - memory_before) / 2**30 if device.type == "cuda" else None


def shape(config: TrainConfig) -> str:
    """The size of a step in words."""
    return f"{config.graphs_per_batch} x {config.samples_per_graph} x {config.num_steps} x {config.num_layers}"


def time_cells(record: Record) -> list[str]:
    """The columns of a table for the times and the memory."""
    peak = "" if record["peak_gib"] is None else f"{record['peak_gib']:.2f}"
    return [f"{record['ms']:.2f}", f"{record['first_s']:.1f}", peak]


if __name__ == "__main__":
    main()
