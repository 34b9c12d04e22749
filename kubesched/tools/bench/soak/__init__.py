"""Hours of churn, failovers and faults on a cluster with an API server and several schedulers, and the report of it.

`churn` are the users and what they see come to pass, `replicas` the processes, `faults` what is done to them, `report` and
`page` what is made of what was written down, and `run` lets them meet.
"""
