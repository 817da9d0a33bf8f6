#!/usr/bin/env bash
# Trains models side by side on one GPU (each alone leaves it half idle) and packs every run into OUT/RUN.tgz.
# A run is a recipe, or a recipe and a seed: mis-rb-small:1 is trained in runs/mis-rb-small-seed1.
# What was packed before and unpacked into runs/ is continued; what is finished is left alone.
# usage: experiments/train_models.sh MINUTES OUT RECIPE[:SEED]...
set -u
minutes=$1 out=$2
shift 2
export PYTHONPATH=src

# Through NVIDIA's multi-process service the kernels of several processes run at the same time, not in turn.
if command -v nvidia-cuda-mps-control >/dev/null; then
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY
    if nvidia-cuda-mps-control -d; then
        trap 'echo quit | nvidia-cuda-mps-control >/dev/null' EXIT
    else
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    fi
fi

folder() { # RECIPE[:SEED]
    case $1 in *:*) echo "${1%%:*}-seed${1##*:}" ;; *) echo "$1" ;; esac
}

for run in "$@"; do
    name=$(folder "$run") seed=0 resume=""
    case $run in *:*) seed=${run##*:} ;; esac
    [ -f "runs/$name/resume.safetensors" ] && resume="--resume"
    python3 -m diffuco train "${run%%:*}" --set "seed=$seed" --out "runs/$name" --max-minutes "$minutes" --json $resume \
        >"runs-$name.json" 2>"runs-$name.err" &
done
wait
for run in "$@"; do
    name=$(folder "$run")
    tail -n 1 "runs-$name.err"
    grep '"validation"' "runs/$name/log.jsonl" | tail -n 1
    tar czf "$out/$name.tgz" -C runs --exclude tensorboard "$name"
done
