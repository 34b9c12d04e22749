"""Kubernetes' own scheduler benchmark, scheduler_perf: its files are read in place and run.

    templates       the part of Go's text/template that its object files are written in
    operations      what a workload does, step by step: one struct for each opcode
    cases           performance-config.yaml: test cases, their workloads, gates, labels and thresholds
    cluster         an API server and a scheduler to run a workload on, each a process of its own
    controllers     what runs inside the embedded API server's process beside it
    informer        the pods as a watch tells of them, and waiting for them
    executor        carries the operations out
    objects         nodes, pods, volumes and slices as the operations make them
    devices         claims that are allocated before any pod asks for them
    collecting      throughput and latency, sampled as the original samples them
    runs            one workload from beginning to end

An opcode, field, function or gate that is not known here is an error that names it; nothing is passed over.
"""
