"""Calls that repeat: recorded once per shape as a CUDA graph, then replayed without the host naming every kernel."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor


class CapturedCalls:
    """A function of tensors on a device, and of random numbers, that is called many times with few shapes.

    The first call with a key runs as written, which compiles and allocates what has to be; the second is recorded, and
    from then on a call copies its inputs and replays the recording. Results lie in the recording's own memory, so they
    are valid until the next call. On a CPU, calls run normally.

    The function must not read tensors back and must take everything that changes from its inputs.
    """

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function = function
        self.device = device
        self.generator = torch.Generator(device)
        """What the function draws from; seeded by every call, replays included."""
        self.seen: set[Hashable] = set()
        self.recordings: dict[Hashable, _Recording] = {}
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, key: Hashable, *inputs: Tensor, seed: int) -> Any:
        """`function(key, *inputs)`, with inputs from anywhere, after seeding the generator."""
        self.generator.manual_seed(seed)
        if self.device.type != "cuda":
            return self.function(key, *(value.to(self.device) for value in inputs))
        if key not in self.seen:
            self.seen.add(key)
            return self._run(key, [value.to(self.device, non_blocking=True) for value in inputs])
        if key not in self.recordings:
            self.recordings[key] = self._record(key, [value.to(self.device).clone() for value in inputs])
        recording = self.recordings[key]
        for place, value in zip(recording.inputs, inputs, strict=True):
            place.copy_(value, non_blocking=True)
        recording.graph.replay()
        return recording.result

    def _run(self, key: Hashable, inputs: list[Tensor]) -> Any:
        # On the stream that will record: autograd orders its work by the streams it has seen.
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            result = self.function(key, *inputs)
        torch.cuda.current_stream(self.device).wait_stream(self.stream)
        return result

    def _record(self, key: Hashable, inputs: list[Tensor]) -> "_Recording":
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
            result = self.function(key, *inputs)
        return _Recording(graph, inputs, result)


class _Recording:
    def __init__(self, graph: "torch.cuda.CUDAGraph", inputs: list[Tensor], result: Any) -> None:
        self.graph, self.inputs, self.result = graph, inputs, result
