#!/usr/bin/env bash
# Trains the runs of Fig. 2 (middle) and Fig. 3 (right) side by side on one GPU, then measures what is finished.
# What was stopped is continued: run it again until nothing is missing.
# usage: experiments/train_ablation.sh MINUTES PROCESSES [OUT]
# OUT, if given, gets the records and, as an archive, the models and their logs.
set -eu
minutes=$1 processes=$2 out=${3:-}
export PYTHONPATH=src OMP_NUM_THREADS=1
for share in $(seq "$processes"); do
    python3 -m diffuco reproduce all --train --share "$share/$processes" --max-minutes "$minutes" &
done
wait
for item in fig-2-middle fig-3-right; do
    python3 -m diffuco reproduce "$item"
done
if [ -n "$out" ]; then
    cp experiments/results/reproduce-fig-*.json "$out"
    tar czf "$out/rb-100.tgz" -C runs --exclude tensorboard --exclude resume.safetensors rb-100
fi
