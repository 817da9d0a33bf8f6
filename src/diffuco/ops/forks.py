"""Processes that are forked after a solve. Torch's threads do not exist in them, and the child would wait for them.

A child therefore calculates on one thread, as in the workers of torch's own data loaders. Processes that are spawned
are not affected.
"""

import os

import torch


def survive_forks() -> None:
    """Let children that are forked from now on calculate on one thread."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
