"""The tables and figures of the paper, measured with `diffuco`: `python -m experiments.reproduce ITEM`.

A row of an item holds the paper's number, ours, and where and how ours was measured. A row whose model or graphs are
missing says what it needs.
"""
