"""The program `diffuco`: run a command and turn every expected failure into one line and an exit code."""

import os
import sys
from contextlib import suppress

from diffuco import cli


def main() -> int:
    """Run a command. After an interrupt, threads that still search are not waited for."""
    code = cli.main()
    if code == cli.EXIT_INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
