"""Several processes at one task, one device each, on one machine or several.

`torchrun --nproc-per-node 4 -m diffuco train RECIPE` trains one model: each process takes a share of every batch, and
gradients are summed. With `solve`, each takes a share of a graph's nodes (`graphs.batch.part`). Random numbers are
drawn for all processes (`SharedRandom`), so their number changes the results by rounding only.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise

import torch
from torch import Tensor
from torch import distributed as dist

from diffuco.foundation.devices import pick_device


@dataclass(frozen=True)
class Group:
    """The processes of a run, as seen by one of them; a single process is a group of one."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this process validates, reports and writes files."""
        return self.rank == 0

    def share(self, length: int) -> slice:
        """This process's part of a list; parts are consecutive, and their lengths differ by at most one.

        >>> [Group(torch.device("cpu"), rank, 3).share(8) for rank in range(3)]
        [slice(0, 2, None), slice(2, 5, None), slice(5, 8, None)]
        """
        bounds = self.bounds(length)
        return slice(bounds[self.rank], bounds[self.rank + 1])

    def bounds(self, length: int) -> list[int]:
        """Where the parts of a list begin and end, for all processes."""
        return [rank * length // self.size for rank in range(self.size + 1)]

    def add_up(self, values: Tensor) -> None:
        """Replace every process's tensor by the sum of all."""
        if self.size > 1:
            dist.all_reduce(values)

    def follow_leader(self, values: Tensor) -> None:
        """Replace every process's tensor by the leader's."""
        if self.size > 1:
            dist.broadcast(values.detach(), src=0)

    def sum(self, value: Tensor) -> Tensor:
        """The sum of a tensor over all processes."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value)
        return value

    def max(self, value: Tensor) -> Tensor:
        """The largest value of a tensor over all processes, entry by entry."""
        if self.size > 1:
            value = value.clone()
            dist.all_reduce(value, dist.ReduceOp.MAX)
        return value

    def exchange(self, rows: Tensor, num_sent: Sequence[int], num_received: Sequence[int], *, out: Tensor) -> None:
        """Send the first rows to the first process, the next to the second and so on; `out` gets what all send here."""
        if self.size > 1:
            dist.all_to_all_single(out, rows.contiguous(), list(num_received), list(num_sent))

    def join(self, rows: Tensor, length: int) -> Tensor:
        """All rows of a list of which each process has its share."""
        if self.size == 1:
            return rows
        lengths = [last - first for first, last in pairwise(self.bounds(length))]
        whole = rows.new_empty(length, *rows.shape[1:])
        self.exchange(torch.cat([rows] * self.size), [len(rows)] * self.size, lengths, out=whole)
        return whole

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        # A single process need not wait for its GPU.
        return flag if self.size == 1 else bool(self.sum(torch.tensor(float(flag), device=self.device)))


def leads() -> bool:
    """Whether this process talks to the user: it is the only one, or the first that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def joined_group(device: str) -> Iterator[Group]:
    """The group that torchrun's environment variables describe; with GPUs, each process has its own."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Group(pick_device(device))
        return
    place = pick_device(device)
    if place == torch.device("cuda"):
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    # Functions of this module have the current group as a default argument. If it were first imported inside the group,
    # as optimisers do, they would keep the group alive, and its threads sometimes abort the interpreter's shutdown.
    import_module("torch.distributed.nn")
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Group(place, dist.get_rank(), size)
        # Nobody leaves while the leader still writes files: torchrun ends all processes when one has ended.
        dist.barrier()
    finally:
        dist.destroy_process_group()
