"""Fuzz, as the command says."""

import sys

from tools.fuzz.runner import main

if __name__ == "__main__":
    sys.exit(main())
