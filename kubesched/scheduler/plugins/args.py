"""What the configuration loader needs to know about the plugins in the tree: their extension points and arguments."""

from __future__ import annotations

from kubesched.scheduler.config import Known
from kubesched.scheduler.framework import points_of
from kubesched.scheduler.plugins import IN_TREE

IN_TREE_CATALOGUE = {cls.name: Known(frozenset(points_of(cls)), cls.Args) for cls in IN_TREE}
