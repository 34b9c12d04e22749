"""TaintToleration: keep pods off nodes whose hard taints they do not tolerate, and prefer nodes with few soft ones."""

from kubesched.scheduler.plugins.taint_toleration.plugin import TaintToleration

__all__ = ["TaintToleration"]
