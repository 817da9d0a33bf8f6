"""The program `diffuco`: run a command and turn every expected failure into one line and an exit code."""

import sys

from diffuco.cli import main

if __name__ == "__main__":
    sys.exit(main())
