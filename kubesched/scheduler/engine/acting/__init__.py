"""Acting on a decision: assume, Reserve, Permit, bind, evict, and what happens to a pod that failed."""
