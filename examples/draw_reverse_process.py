"""Draw the reverse diffusion that solves a graph as an animated GIF: from noise X_T to X_0, then the decoded set.

    python examples/draw_reverse_process.py --out docs/reverse-diffusion.gif

Needs the extra `plot`.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from diffuco.diffusion.randomness import RowRandom
from diffuco.diffusion.sampling import sample_steps
from diffuco.graphs.batch import make_batch
from diffuco.graphs.generate import rb_graph
from diffuco.graphs.graph import Graph
from diffuco.inference.decoding import conditional_expectation
from diffuco.model.checkpoint import Checkpoint
from diffuco.plotting import spring_layout
from diffuco.pretrained import load_model
from diffuco.problems import get_problem

CARD, PANEL, TEXT, MUTED = "#0f172a", "#1e293b", "#f1f5f9", "#94a3b8"
OUT, IN, CONFLICT, EDGE = "#475569", "#2dd4bf", "#fb7185", "#64748b"
NUM_COLORS = 96
FRAME_MS, HOLD_FIRST_MS, HOLD_LAST_MS = 90, 900, 3000


@dataclass(frozen=True)
class State:
    """One state of the path and what stands beside it."""

    chosen: NDArray[np.float64]
    """[num_nodes] 0 or 1."""
    caption: str
    energy: float


def main() -> None:
    """Solve one graph while watching, and write the picture."""
    arguments = _arguments()
    graph = rb_graph(num_cliques=15, clique_size=6, tightness=0.75, rng=np.random.default_rng(arguments.graph_seed))
    states = reverse_path(graph, load_model(arguments.model), arguments.step_factor, arguments.seed)
    write_gif(arguments.out, graph, states, arguments.frames_per_state)
    print(f"{states[-1].caption} of {graph.num_nodes} nodes: {arguments.out}")


def reverse_path(graph: Graph, model: Checkpoint, step_factor: int, seed: int) -> list[State]:
    """The states of one sample, from noise to the decoded set."""
    problem, batch = get_problem("mis"), make_batch([graph])
    num_steps = model.model.config.num_steps
    random = RowRandom(torch.Generator().manual_seed(seed))
    steps = list(
        sample_steps(
            model.model,
            batch,
            num_steps=num_steps,
            num_samples=1,
            random=random,
            step_factor=step_factor,
        )
    )
    decoded = conditional_expectation(problem, batch, steps[-1].logits.sigmoid())
    drawn = [(f"Reverse step {index} of {len(steps)}", step.x) for index, step in enumerate(steps)]
    drawn += [(f"Reverse step {len(steps)} of {len(steps)}", steps[-1].next_x)]
    drawn += [(f"Independent set of {int(decoded.sum())}", decoded)]
    return [State(x[:, 0].double().numpy(), caption, problem.energy(batch, x).item()) for caption, x in drawn]


def write_gif(path: Path, graph: Graph, states: list[State], frames_per_state: int) -> None:
    """Draw every state, with the colours fading from one to the next."""
    canvas = FigureCanvasAgg(Figure(figsize=(8.8, 4.5), facecolor=CARD))
    picture = Picture(canvas.figure, graph, states)
    frames = []
    for number, share in _moments(len(states), frames_per_state):
        picture.show(number, share)
        canvas.draw()
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB"))
    # One palette for all frames and no dithering: flat colours stay flat and the file small.
    palette = frames[len(frames) // 4].quantize(NUM_COLORS)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    durations = [HOLD_FIRST_MS, *[FRAME_MS] * (len(frames) - 2), HOLD_LAST_MS]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def _moments(num_states: int, frames_per_state: int) -> Iterator[tuple[int, float]]:
    """Number of the state that is coming and the share of the way to it, frame by frame."""
    yield 0, 1.0
    for number in range(1, num_states):
        yield from ((number, (frame + 1) / frames_per_state) for frame in range(frames_per_state))


class Picture:
    """The graph on the left, its energy over the steps on the right."""

    def __init__(self, figure: Figure, graph: Graph, states: list[State]) -> None:
        self.graph, self.states = graph, states
        axes = figure.add_axes((0.005, 0.01, 0.52, 0.98))
        places = spring_layout(graph, iterations=400)
        places -= (places.max(axis=0) + places.min(axis=0)) / 2
        places /= np.abs(places).max()
        axes.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
        axes.axis("off")
        self.edges = LineCollection(list(places[graph.edges]), zorder=1)
        axes.add_collection(self.edges)
        self.nodes = axes.scatter(*places.T, linewidths=1.2, edgecolors=CARD, zorder=2)

        curve = figure.add_axes((0.605, 0.17, 0.365, 0.52), facecolor=PANEL)
        energies = [state.energy for state in states]
        margin = 0.08 * (max(energies) - min(energies))
        curve.set(xlim=(-0.7, len(states) - 0.3), ylim=(min(energies) - margin, max(energies) + margin))
        curve.tick_params(colors=MUTED, labelsize=9, length=0)
        curve.set_xlabel("reverse step", color=MUTED, fontsize=10)
        curve.set_ylabel("energy", color=MUTED, fontsize=10)
        for spine in curve.spines.values():
            spine.set_visible(False)
        (self.line,) = curve.plot([], [], color=MUTED, linewidth=2)
        (self.dot,) = curve.plot([], [], "o", color=IN, markersize=8)
        self.title = figure.text(0.575, 0.875, "", color=TEXT, fontsize=17, weight="bold")
        self.counts = figure.text(0.575, 0.785, "", color=MUTED, fontsize=12)

    def show(self, number: int, share: float) -> None:
        """Show the way from the state before `number` to it."""
        before, after = self.states[max(0, number - 1)], self.states[number]
        chosen = (1 - share) * before.chosen + share * after.chosen
        conflict = chosen[self.graph.edges].prod(axis=1)
        self.nodes.set_facecolor(_mix(OUT, IN, chosen))
        self.nodes.set_sizes(55 + 65 * chosen)
        self.edges.set_color(np.column_stack([_mix(EDGE, CONFLICT, conflict), 0.26 + 0.64 * conflict]))
        self.edges.set_linewidth(0.7 + 0.9 * conflict)
        energies = [state.energy for state in self.states[:number]]
        energies.append((1 - share) * before.energy + share * after.energy)
        steps = [*range(number), max(0, number - 1 + share)]
        self.line.set_data(steps, energies)
        self.dot.set_data(steps[-1:], energies[-1:])
        num_conflicts = int(after.chosen[self.graph.edges].prod(axis=1).sum())
        self.title.set_text(after.caption)
        self.counts.set_text(f"{int(after.chosen.sum())} nodes chosen, {num_conflicts} conflicts")


def _mix(low: str, high: str, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Colours between two. [n] -> [n, 3]."""
    return (1 - share)[:, None] * np.array(to_rgb(low)) + share[:, None] * np.array(to_rgb(high))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="mis-rb-small", help="shipped model or path")
    parser.add_argument("--out", type=Path, default=Path("docs/reverse-diffusion.gif"))
    parser.add_argument("--step-factor", type=int, default=3)
    parser.add_argument("--frames-per-state", type=int, default=3)
    parser.add_argument("--graph-seed", type=int, default=3)
    parser.add_argument("--seed", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    main()
