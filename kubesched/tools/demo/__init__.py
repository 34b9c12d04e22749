"""What `kubesched demo` shows: a sample workload, and what one may do to it from the page."""
