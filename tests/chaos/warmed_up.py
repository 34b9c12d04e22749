"""Everything imported and run once, for workers to be forked from."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

from chaos.run import run

run("1")
