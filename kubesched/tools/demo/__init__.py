"""What `kubesched demo` shows: a sample workload, and the actions of its page."""
