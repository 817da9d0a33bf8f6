"""Repeated calls: recorded once per shape as a CUDA graph, then replayed without launching each kernel from Python."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

REPEATS_THAT_PAY = 5
"""Recording a step takes about as long as this many calls."""


class CapturedCalls:
    """A function of tensors and random numbers on a device, called many times with few shapes.

    On a GPU, the first call with a key runs normally, which compiles and allocates everything needed. The second call
    is recorded. Every later call copies its inputs and replays the recording. Results lie in the recording's own
    memory, so they are valid until the next call. On a CPU, all calls run normally.

    The function must not copy tensors back to the CPU, and everything that changes must come from its inputs.
    """

    def __init__(self, function: Callable[..., Any], device: torch.device) -> None:
        self.function = function
        self.device = device
        self.generator = torch.Generator(device)
        """The function draws from this; every call seeds it, including replays."""
        self.seen: set[Hashable] = set()
        self.recordings: dict[Hashable, _Recording] = {}
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, key: Hashable, *inputs: Tensor, seed: int) -> Any:
        """Seed the generator and return `function(key, *inputs)`; the inputs may be on any device."""
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
        # Run on the stream that will record, because autograd orders its work by the streams it has seen.
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


def repeat(step: Callable[[], None], times: int, device: torch.device) -> None:
    """Call a step many times; on a GPU it is recorded once and replayed.

    The step must work in place, on tensors that exist before, and must not copy any of them back to the CPU.

    >>> count = torch.zeros(1)
    >>> repeat(lambda: count.add_(2) and None, 3, count.device)
    >>> count.item()
    6.0
    """
    if device.type != "cuda" or times < REPEATS_THAT_PAY:
        for _ in range(times):
            step()
        return
    stream, current = torch.cuda.Stream(device), torch.cuda.current_stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        step()  # compiles and allocates what is needed
    current.wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        step()
    for _ in range(times - 1):
        graph.replay()
    current.synchronize()  # the recording owns memory that its replays use
