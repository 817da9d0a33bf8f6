#!/usr/bin/env bash
# Trains the runs of Fig. 2 (middle) and Fig. 3 (right) side by side on one GPU, then measures what is finished.
# What was stopped is continued: run it again until nothing is missing.
# usage: experiments/train_ablation.sh MINUTES PROCESSES [OUT [ONLY]]
# OUT, if given, gets the records and, as an archive per seed, the models and their logs.
# ONLY, if given, is a part of the names of the runs to train and measure, such as seed1.
set -eu
minutes=$1 processes=$2 out=${3:-} only=${4:-}
export PYTHONPATH=src OMP_NUM_THREADS=1
for share in $(seq "$processes"); do
    python3 -m experiments.reproduce all --train --only "$only" --share "$share/$processes" --max-minutes "$minutes" &
done
wait
python3 -m experiments.reproduce fig-2-middle --only "$only"
python3 -m experiments.reproduce fig-3-right
if [ -n "$out" ]; then
    mkdir -p "$out"
    cp experiments/results/reproduce-fig-*.json "$out"
    for seed in 0 1 2; do
        runs=$(cd runs && ls -d rb-100/*-seed$seed 2>/dev/null) || continue
        tar czf "$out/rb-100-seed$seed.tgz" -C runs --exclude tensorboard --exclude resume.safetensors $runs
    done
fi
