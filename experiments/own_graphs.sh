#!/usr/bin/env bash
# What training on one's own graphs gains: a shipped model, greedy and a model trained here, all on held-back graphs.
# usage: experiments/own_graphs.sh FOLDER PROBLEM SHIPPED_MODEL
# writes runs/PROBLEM-FOLDER and experiments/results/own-graphs-PROBLEM-FOLDER-{before,greedy,training,after}.json
set -eu
folder=$1 problem=$2 shipped=$3
run="$problem-$(basename "$folder")"
evaluate() {  # NAME OPTIONS...
    local name=$1
    shift
    python3 -m diffuco evaluate "$@" --graphs "$folder" --split test --reference best-known --device cpu \
        --output "experiments/results/own-graphs-$run-$name.json"
}
evaluate before --model "$shipped"
evaluate greedy --method greedy --problem "$problem"
python3 -m diffuco train --graphs "$folder" --problem "$problem" --device cpu
# Nothing is left to do; this only says how long it took.
python3 -m diffuco train --graphs "$folder" --problem "$problem" --device cpu --resume --json \
    >"experiments/results/own-graphs-$run-training.json"
evaluate after --model "runs/$run/best.safetensors"
