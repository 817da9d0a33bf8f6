"""What rounding to 16 bits does to the network's logits and to their gradient, one kind of tensor at a time.

    python experiments/rounding.py --model mis-rb-small --dataset rb-small --json rounding.json

Everything else is float32, and the gradient is that of the rounded network, without rounding of its own: what is left
is what the forward pass alone does. Compared is one random combination of the logits.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from diffuco.foundation.provenance import hardware, source_commit
from diffuco.graphs.batch import DenseBatch
from diffuco.graphs.datasets import get_dataset
from diffuco.model.gnn import Gnn
from diffuco.pretrained import load_model

PLACES = ("weights", "features", "messages", "sums", "normalised sums", "MLP's middle")


def main() -> None:
    """Round, compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mis-rb-small")
    parser.add_argument("--dataset", default="rb-small")
    parser.add_argument("--graphs", type=int, default=6)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    model = load_model(arguments.model, torch.device("cpu")).model
    batch = DenseBatch.from_graphs(get_dataset(arguments.dataset).graphs("test", arguments.graphs))
    torch.manual_seed(0)
    shape = (batch.num_rows, arguments.samples)
    inputs = (
        (torch.rand(shape) < 0.5).float(),
        torch.randint(1, model.config.num_steps + 1, shape[1:]),
        torch.randn(*shape, model.num_random_features),
    )
    direction = torch.randn(shape)
    exact = _logits_and_gradient(model, batch, inputs, direction, (), torch.float32)
    records = []
    print(f"{'rounded':<18}{'type':<10}{'logits':>10}{'gradient':>10}")
    for dtype in (torch.float16, torch.bfloat16):
        for places in (*((place,) for place in PLACES), PLACES):
            rounded = _logits_and_gradient(model, batch, inputs, direction, places, dtype)
            name = places[0] if len(places) == 1 else "all of them"
            errors = [
                ((got - wanted).norm() / wanted.norm()).item() for got, wanted in zip(rounded, exact, strict=True)
            ]
            records.append({"rounded": name, "type": str(dtype)[6:], "logits": errors[0], "gradient": errors[1]})
            print(f"{name:<18}{str(dtype)[6:]:<10}{errors[0]:>10.1e}{errors[1]:>10.1e}")
    if arguments.json:
        setting = {"commit": source_commit(), "hardware": hardware(torch.device("cpu")), "model": arguments.model}
        setting |= {"dataset": arguments.dataset, "graphs": arguments.graphs, "samples": arguments.samples}
        arguments.json.write_text(json.dumps({**setting, "records": records}, indent=2) + "\n")


class _Round(torch.autograd.Function):
    """Rounds what passes, and lets the gradient pass as it is."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dtype: torch.dtype) -> Tensor:
        return values.to(dtype).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def _logits_and_gradient(
    model: Gnn,
    batch: DenseBatch,
    inputs: tuple[Tensor, Tensor, Tensor],
    direction: Tensor,
    places: tuple[str, ...],
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    def rounded(place: str, values: Tensor) -> Tensor:
        return _Round.apply(values, dtype) if place in places else values

    def linear(layer: Any, values: Tensor) -> Tensor:
        return F.linear(values, rounded("weights", layer.weight), layer.bias)

    x, step, features = inputs
    h = model.encode_node(torch.cat([2 * x[..., None] - 1, features], -1))
    h = rounded("features", h + model.encode_step(F.one_hot(step - 1, model.config.num_steps).float()))
    scale = (1 / batch.degrees.clamp(min=1).sqrt())[:, None, None]
    for layer in model.layers:
        summed = rounded("sums", batch.neighbor_sum(rounded("messages", linear(layer.message, h))))
        normal = rounded("normalised sums", layer.message_norm(batch, summed * scale))
        first, _, norm, second, _ = layer.node_mlp
        middle = rounded("MLP's middle", norm(F.relu(linear(first, torch.cat([h, normal], -1)))))
        h = rounded("features", layer.norm(linear(layer.skip, h) + F.relu(linear(second, middle))))
    first, _, first_norm, second, _, second_norm, last = model.head
    middle = rounded("MLP's middle", first_norm(F.relu(linear(first, h))))
    logits = last(second_norm(F.relu(linear(second, middle)))).squeeze(-1)
    model.zero_grad()
    (logits * direction)[batch.mask].sum().backward()
    gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])
    return logits.detach()[batch.mask], gradient.clone()


if __name__ == "__main__":
    main()
