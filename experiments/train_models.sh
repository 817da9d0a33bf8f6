#!/usr/bin/env bash
# Trains models, some at a time, and packs every run into OUT/RUN.tgz. More than two at a time gain nothing on one GPU,
# which a step keeps busy (docs/log.md); two, so that one may start while the other trains.
# A run is a recipe, or a recipe and a seed: mis-rb-small:1 is trained in runs/mis-rb-small-seed1.
# What was packed before and unpacked into runs/ is continued; what is finished is left alone.
# usage: experiments/train_models.sh MINUTES PROCESSES OUT RECIPE[:SEED]...     (whole minutes)
set -u
end=$((SECONDS + 60 * $1)) processes=$2 out=$3
shift 3
export PYTHONPATH=src OMP_NUM_THREADS=1

train_one() { # RECIPE[:SEED]
    local name=${1/:/-seed} seed=0 resume="" left=$((end - SECONDS))
    case $1 in *:*) seed=${1##*:} ;; esac
    [ "$left" -gt 0 ] || return
    [ -f "runs/$name/resume.safetensors" ] && resume="--resume"
    python3 -m diffuco train "${1%%:*}" --set "seed=$seed" --out "runs/$name" --json $resume \
        --stop-after "$(awk "BEGIN { print $left / 60 }")" >"runs-$name.json" 2>"runs-$name.err"
    echo "$SECONDS s, $name: $(tail -n 1 "runs-$name.err") $(grep '"validation"' "runs/$name/log.jsonl" | tail -n 1)"
    tar czf "$out/$name.tgz" -C runs --exclude tensorboard "$name"
}

for run in "$@"; do
    while [ "$(jobs -rp | wc -l)" -ge "$processes" ]; do wait -n; done
    train_one "$run" &
done
wait
