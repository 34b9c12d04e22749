"""Hours of churn, failovers and faults on a cluster with an API server and several schedulers, and the report of it.

`churn` creates and deletes pods and records their bindings, `replicas` runs the processes, `faults` stops and freezes them,
`report` and `page` write the report, and `run` connects all of them.
"""
