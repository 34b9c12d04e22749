"""Leader election: the Lease, the candidate, and the fence that stops a replica whose lease may have run out."""
