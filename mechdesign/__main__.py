"""python -m mechdesign is the command line."""

import sys

from mechdesign.cli import main

sys.exit(main())
