"""The arguments of every plugin in the tree, by plugin name; the configuration loader is handed this table."""

from __future__ import annotations

from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.catalogue import in_tree
from kubesched.scheduler.plugins import IN_TREE

IN_TREE_ARGS: dict[str, type[Args]] = {cls.name: cls.Args for cls in IN_TREE if cls.Args is not None}

# What the loader needs to know about the plugins in the tree.
IN_TREE_CATALOGUE = in_tree(IN_TREE_ARGS)
