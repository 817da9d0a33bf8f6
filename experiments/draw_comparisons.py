"""Draw gap against time from records of `diffuco compare --output`, a panel each.

usage: python experiments/draw_comparisons.py docs/compare-h200.png results/compare-*-h200.json
"""

import argparse
import json
from pathlib import Path

from diffuco.plotting import plot_comparisons


def main() -> None:
    """Draw the records named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("picture", type=Path)
    parser.add_argument("records", type=Path, nargs="+")
    options = parser.parse_args()
    plot_comparisons([json.loads(path.read_text()) for path in options.records], options.picture)


if __name__ == "__main__":
    main()
