"""`python -m trainplane.cli`."""

import sys

from trainplane.cli import main

sys.exit(main())
