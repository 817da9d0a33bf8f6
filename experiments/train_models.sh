#!/usr/bin/env bash
# Trains recipes side by side on one GPU (each alone leaves it half idle) and packs every run into OUT/RECIPE.tgz.
# A run that was packed before and unpacked into runs/ is continued.
# usage: experiments/train_models.sh MINUTES OUT RECIPE...
set -u
minutes=$1 out=$2
shift 2
export PYTHONPATH=src
for recipe in "$@"; do
    resume=""
    [ -f "runs/$recipe/resume.safetensors" ] && resume="--resume"
    python3 -m diffuco train "$recipe" --out "runs/$recipe" --max-minutes "$minutes" --json $resume \
        >"runs-$recipe.json" 2>"runs-$recipe.err" &
done
wait
for recipe in "$@"; do
    tail -n 3 "runs-$recipe.err"
    cat "runs-$recipe.json"
    grep '"validation"' "runs/$recipe/log.jsonl" | tail -n 1
    tail -n 1 "runs/$recipe/log.jsonl"
    tar czf "$out/$recipe.tgz" -C runs --exclude tensorboard "$recipe"
done
