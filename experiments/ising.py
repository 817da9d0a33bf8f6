"""Draws of an Ising lattice against its exact solution: train a model, sample at several temperatures, compare.

    python -m experiments.ising [--side 6] [--epochs 200] [--draws 10000]

The lattice is a ferromagnet with periodic boundaries, H = -sum_(i,j) s_i s_j with s = 2x - 1, written as a QUBO. The
transfer matrix solves it. A model is trained by the paper's bound, and then either on or by the forward divergence. The
command writes experiments/results/ising.json and the table of docs/sampling.md. The runs stay in runs/ising,
runs/ising-longer and runs/ising-forward, where the same command continues them.
"""

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import diffuco
from diffuco.foundation.provenance import hardware, source_commit
from diffuco.foundation.wording import with_error
from diffuco.graphs.collection import Collection

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "sampling.md"
RESULTS = ROOT / "experiments" / "results" / "ising.json"
TABLE = re.compile(r"(?<=<!-- ising: written by experiments/ising.py -->\n).*?(?=\n<!-- end of ising -->)", re.S)
TRAINED_AT = 3.0
TEMPERATURES = (2.0, 2.5, TRAINED_AT, 4.0, 6.0)


def main() -> None:
    """Train, sample, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=6, help="spins along each side of the lattice")
    parser.add_argument("--epochs", type=int, default=200, help="passes over 40 copies of the lattice")
    parser.add_argument("--draws", type=int, default=10_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # more would wait for each other: the lattices are small
    rng = np.random.default_rng(0)
    # The same lattice with its nodes in other orders, so that some copies are left to validate with.
    copies = Collection.of("ising", [lattice(arguments.side, rng) for _ in range(80)])
    config = diffuco.TrainConfig(
        problem="qubo",
        dataset="ising",
        num_steps=8,
        start_temperature=2 * TRAINED_AT,
        end_temperature=TRAINED_AT,
        anneal_epochs=arguments.epochs,
        noise="exponential",
        weighted=True,
        num_layers=4,
        num_hidden=32,
        graphs_per_batch=4,
        samples_per_graph=16,
        num_train_graphs=40,
        num_validation_graphs=1,
    )
    graph = lattice(arguments.side, rng)
    first = Path("runs/ising")
    then = replace(
        config,
        start_from=str(first / "last.safetensors"),
        start_temperature=TRAINED_AT,
        anneal_epochs=arguments.epochs // 2,
        learning_rate=config.learning_rate / 2,
    )
    stages = {
        "trained": (first, config),
        "trained longer": (Path("runs/ising-longer"), then),
        "trained, then `forward-kl`": (Path("runs/ising-forward"), replace(then, objective="forward-kl")),
    }
    runs = [trained_in(folder, stage, copies) for folder, stage in stages.values()]
    models = {name: folder / "last.safetensors" for name, (folder, _) in stages.items()}
    rows = [
        compared(graph, arguments.side, name, model, temperature, arguments.draws)
        for name, model in models.items()
        for temperature in TEMPERATURES
    ]
    rows.append(compared(graph, arguments.side, "shipped", "qubo-random", TRAINED_AT, arguments.draws))
    setting = {"side": arguments.side, "draws": arguments.draws, "trained_at": TRAINED_AT, "commit": source_commit()}
    setting |= {"steps": [run["step"] for run in runs], "minutes": [run["seconds"] / 60 for run in runs]}
    record = setting | {"hardware": hardware(torch.device("cpu")), "rows": rows}
    RESULTS.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(TABLE.sub(lambda _: table(rows), PAGE.read_text()))


def trained_in(folder: Path, config: diffuco.TrainConfig, graphs: Collection) -> dict[str, Any]:
    """Train in a folder, or continue there."""
    is_begun = (folder / "resume.safetensors").exists()
    return diffuco.train(config, folder, graphs=graphs, resume=is_begun, device="cpu")


def lattice(side: int, rng: np.random.Generator) -> diffuco.Graph:
    """The lattice as a QUBO, its nodes in random order: s_i s_j = 4 x_i x_j - 2 x_i - 2 x_j + 1."""
    sites = rng.permutation(side**2).reshape(side, side)
    edges = np.concatenate([np.stack([sites, np.roll(sites, 1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)])
    return diffuco.Graph.from_edges(edges, edge_weights=np.full(2 * side**2, -4.0), node_weights=np.full(side**2, 8.0))


def exact(side: int, temperature: float) -> tuple[float, float]:
    """log Z and the mean energy of the QUBO, which is the lattice's plus one for every edge."""
    spins = 1.0 - 2 * (np.arange(2**side)[:, None] >> np.arange(side) & 1)  # [2^side, side]
    inside = (spins * np.roll(spins, 1, axis=1)).sum(1)
    bonds = spins @ spins.T + (inside[:, None] + inside) / 2  # of two rows: those between them, and half of their own

    def log_z(beta: float) -> float:
        return float(np.log((np.linalg.eigvalsh(np.exp(beta * bonds)) ** side).sum()) - beta * 2 * side**2)

    beta, change = 1 / temperature, 1e-4
    return log_z(beta), (log_z(beta - change) - log_z(beta + change)) / (2 * change)


def compared(graph: diffuco.Graph, side: int, name: str, model: Any, temperature: float, draws: int) -> dict[str, Any]:
    """The estimates beside the exact values."""
    found = diffuco.sample(graph, "qubo", temperature=temperature, model=model, samples=draws, device="cpu")
    log_z, mean_energy = exact(side, temperature)
    chain = float(found.energies[found.chain].mean())
    return found.to_dict() | {
        "model": name,
        "exact": {"log_z": log_z, "mean_energy": mean_energy},
        "chain_mean_energy": chain,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    headings = ("model", "temperature", "log Z, exact", "estimate", "mean energy, exact", "estimate", "chain", "drift")
    headings += ("effective draws", "accepted")
    lines = [f"| {' | '.join(headings)} |", f"|{len(headings) * ' --- |'}"]
    for row in rows:
        log_z, energy, drift = (with_error(*row[name].values()) for name in ("log_z", "mean_energy", "energy_drift"))
        exact_values = [f"{row['exact'][name]:.2f}" for name in ("log_z", "mean_energy")]
        lines.append(
            f"| {row['model']} | {row['temperature']:g} | {exact_values[0]} | {log_z} | {exact_values[1]} | {energy} "
            f"| {row['chain_mean_energy']:.2f} | {drift} | {row['effective_sample_size']:,.0f} of {row['samples']:,} "
            f"| {row['acceptance_rate']:.0%} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
