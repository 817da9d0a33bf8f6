"""Split numbers into two parts of nearly equal sums: a binary quadratic model, sampled as dimod's own samplers do.

    python examples/sample_dimod.py

Needs the extra `dwave`. The energy of spins s is the square of sum_i n_i s_i, the difference of the two sums.
"""

import dimod

from diffuco import DiffUCOSampler

NUMBERS = [25, 7, 13, 31, 42, 17, 21, 10, 36, 5]


def main() -> None:
    """Build the model, sample it, print the best split."""
    names = [f"n{index}" for index in range(len(NUMBERS))]
    products = {
        (names[i], names[j]): 2.0 * NUMBERS[i] * NUMBERS[j]
        for i in range(len(NUMBERS))
        for j in range(i + 1, len(NUMBERS))
    }
    model = dimod.BinaryQuadraticModel({}, products, float(sum(n * n for n in NUMBERS)), "SPIN")
    found = DiffUCOSampler().sample(model, num_reads=16, seed=0)
    spins = found.first.sample
    for sign in (1, -1):
        part = [number for name, number in zip(names, NUMBERS, strict=True) if spins[name] == sign]
        print(f"{' + '.join(map(str, part))} = {sum(part)}")
    print(f"difference {round(found.first.energy**0.5)}, best of {len(found)} samples")


if __name__ == "__main__":
    main()
