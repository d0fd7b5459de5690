"""`python -m trainplane.cache`."""

import os
import sys

from trainplane.cache.program import main

sys.exit(main(sys.argv[1:], os.environ))
