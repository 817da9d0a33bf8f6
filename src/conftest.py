"""Doctests of modules that need an optional package run only where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("triton") else ["diffuco/ops/triton_decode.py"]
