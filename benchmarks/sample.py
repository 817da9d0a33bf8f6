"""Time to sample the test graphs of a dataset, without decoding, for all engines that the device has.

    python benchmarks/sample.py --model mis-rb-small --graphs 500 --samples 8 --json sample.json
    python benchmarks/sample.py --recipe max-cut-ba-large-paper
    python benchmarks/sample.py --model max-cut-ba-small --large 100000 --samples 1 --step-factor 1 --repeats 3

With `--large`, there is one Barabási-Albert graph of so many nodes, with four edges per node.
With `--recipe`, the network has the shape of that recipe and random weights; it takes as long as a trained one.
"sample" is the median of `--repeats` passes over all graphs in batches of similar size, until the samples are on the
device. Engines take turns, so that a machine that slows down slows all of them. "collect" is the time to make the
batches and move them to the device, which is the same for all engines. "first" is the first pass, including compilation
unless it is cached. `roofline` explains TFLOP/s, GB/s and the floor.
"""

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np
import torch
from evidence import Record, add_options, measured_limits, require_green, synchronize, write_record
from rich.console import Console
from rich.table import Table
from roofline import FLOAT_BYTES, SPEED_COLUMNS, Work, engines_here, forward_work, speed_cells, speeds

from diffuco.foundation.devices import pick_device
from diffuco.foundation.provenance import hardware
from diffuco.graphs.batch import make_batch
from diffuco.graphs.by_size import batches_by_size, rows_per_batch
from diffuco.graphs.datasets import get_dataset
from diffuco.graphs.generate import ba_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.sampler import Sampler
from diffuco.model import Network
from diffuco.model.engine.acceleration import ENGINES, accelerate, sampling_engine
from diffuco.model.engine.parameters import FlatParameters
from diffuco.pretrained import load_model
from diffuco.training.parts import choose_parts
from diffuco.training.recipes import get_recipe

TESTS = ("tests/test_fused.py", "tests/test_tiled.py")
WARM_UP = 2
"""Passes before the timed ones: the first compiles, the second records what can be replayed."""


def main() -> None:
    """Measure the engines that are worth using on the device."""
    arguments = _arguments()
    device = pick_device(arguments.device)
    tests = require_green(TESTS, skip=arguments.skip_tests)
    limits = measured_limits(device)
    model, dataset, weights = _network(arguments)
    config = model.config
    num_steps = arguments.step_factor * config.num_steps
    if arguments.large:
        graphs = [ba_graph(arguments.large, 4, np.random.default_rng(0))]
        what = f"one graph of {arguments.large:,} nodes"
    else:
        graphs = get_dataset(arguments.dataset or dataset).graphs("test", arguments.graphs)
        what = f"{len(graphs)} graphs of {arguments.dataset or dataset}"
    size = f"{what} x {arguments.samples} samples x {num_steps} steps"
    title = f"{size} x {config.num_layers} layers, {weights} weights, {hardware(device)}"
    columns = ("engine", "sample s", "graphs/s", "collect s", "first s", *SPEED_COLUMNS)
    table = Table(*columns, title=title, caption=str(limits))
    records: list[Record] = []
    engines = arguments.engines or list(dict.fromkeys((*engines_here(model, device), sampling_engine(model, device))))
    for engine, times, work in measured(graphs, engines, device, arguments):
        speed = speeds(work, times["sample_s"], limits, engine)
        record = {"shape": size, "layers": config.num_layers, "weights": weights, "engine": engine} | times | speed
        records.append(record)
        cells = (f"{times['sample_s']:.4f}", f"{len(graphs) / times['sample_s']:.0f}", f"{times['collect_s']:.3f}")
        table.add_row(engine, *cells, f"{times['first_s']:.1f}", *speed_cells(record))
    Console(width=130).print(table)
    write_record(arguments, device, tests, limits, records)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    network = parser.add_mutually_exclusive_group()
    network.add_argument("--model", default="mis-rb-small", help="a model that ships with the package, or a file")
    network.add_argument("--recipe", help="random weights in the shape of this recipe")
    parser.add_argument("--dataset", help="default: the dataset that the network was made for")
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--large", type=int, metavar="NODES", help="one graph of so many nodes instead of a dataset")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--step-factor", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--engines", nargs="+", choices=(*ENGINES, "tiled"), help="default: all that are worth using on the device"
    )
    parser.add_argument("--device", default="auto")
    add_options(parser)
    return parser.parse_args()


def _network(arguments: argparse.Namespace) -> tuple[Network, str, str]:
    """The network, the dataset it was made for and where its weights come from."""
    if arguments.recipe:
        config = get_recipe(arguments.recipe)
        return choose_parts(config).network, config.dataset, "random"
    checkpoint = load_model(arguments.model)
    return checkpoint.model, str(checkpoint.card["dataset"]), "trained"


def measured(
    graphs: list[Graph], engines: list[str], device: torch.device, arguments: argparse.Namespace
) -> Iterator[tuple[str, Record, Work]]:
    """Times of passes over all graphs with each engine, and the work of a pass."""
    samplers = []
    for engine in engines:
        model = _network(arguments)[0].to(device)
        denoiser = accelerate(model, FlatParameters(model), engine, is_trained=True)
        samplers.append(Sampler(denoiser, model.config.num_steps, device))
    positions = batches_by_size(graphs, arguments.samples, rows_per_batch(device))
    groups = [[graphs[position] for position in group] for group in positions]
    options = (arguments.samples, arguments.step_factor)
    passes = [
        [collect_and_sample(sampler, groups, device, options) for sampler in samplers]
        for _ in range(WARM_UP + arguments.repeats)
    ]
    for engine, (first, *others) in zip(engines, zip(*passes, strict=True), strict=True):
        collect_s, sample_s = (statistics.median(times) for times in zip(*others[WARM_UP - 1 :], strict=True))
        work = Work()
        for group in groups:
            over_lists = make_batch(group, device).wide_lists is not None
            shape = (model.config, group, arguments.samples)
            work += forward_work(*shape, over_lists=over_lists, float_bytes=FLOAT_BYTES[engine])
        times = {"sample_s": sample_s, "collect_s": collect_s, "first_s": sum(first)}
        yield engine, times, work * (arguments.step_factor * model.config.num_steps)


def collect_and_sample(
    sampler: Sampler, groups: list[list[Graph]], device: torch.device, options: tuple[int, int]
) -> tuple[float, float]:
    """Seconds to make the batches and to sample them; batches are made again every time, as a solver does."""
    collect_s = sample_s = 0.0
    for group in groups:
        started = _now(device)
        batch = make_batch(group, device)
        collected = _now(device)
        sampler.draw(batch, *options, seed=0)
        collect_s += collected - started
        sample_s += _now(device) - collected
    return collect_s, sample_s


def _now(device: torch.device) -> float:
    synchronize(device)
    return time.perf_counter()


if __name__ == "__main__":
    main()
