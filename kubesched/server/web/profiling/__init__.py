"""Profiles of the running scheduler: where processor time, memory and waiting go, and what every task is doing.

`sampling` and `memory` measure, `stacks` is what they measure, `rendering` shows it (as a flame graph, folded stacks,
a table, or the file that `go tool pprof` reads), `pages` is the HTTP face under /debug/pprof.
"""
