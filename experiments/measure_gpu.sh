#!/usr/bin/env bash
# Everything the project says about speed and memory on a GPU, from one machine in one sitting.
#
#     experiments/measure_gpu.sh OUT
#
# Writes one JSON file per benchmark to the folder OUT. The tests that a benchmark rests on run first, side by side;
# each benchmark then finds that they have passed, or refuses.
set -uo pipefail
out=$(realpath "$1")
cd "$(dirname "$0")/.."
export PYTHONPATH=src:benchmarks
python=${PYTHON:-python3}
mkdir -p "$out"

for test in tests/test_fused.py tests/test_loss.py tests/test_memory.py tests/test_triton_anneal.py tests/test_refinement.py; do
    "$python" -c "import sys, evidence; print(evidence.require_green(sys.argv[1:]))" "$test" &
done
wait

measure() { # NAME SCRIPT ARGUMENTS...
    local name=$1 script=$2
    shift 2
    "$python" "benchmarks/$script.py" "$@" --json "$out/$name.json"
}
rows="mis-rb-small-paper mis-rb-large-paper mds-ba-small-paper max-cut-ba-large-paper"
measure train-step-h200 train_step $rows --engines reference fused
measure memory-train-h200 memory --recipe mis-rb-large-paper --steps 4 40 --steps-per-chunk 4
measure memory-large-h200 memory --nodes 1000000 --edges 5000000 --samples 2
measure sample-rb-small-h200 sample --recipe mis-rb-small-paper --engines reference fused
measure sample-ba-large-h200 sample --recipe max-cut-ba-large-paper --engines fused
measure train-step-compiled-h200 train_step mis-rb-small-paper --engines compiled fused
measure refine-rb-small-h200 refine --sets mis:rb-small --graphs 500 --chains 32 --sweeps 200 1000
measure refine-h200 refine --sets mis:rb-large max-clique:rb-small max-cut:ba-small max-cut:ba-large mds:ba-small mds:ba-large \
    --graphs 100 --chains 8 --sweeps 100 1000
