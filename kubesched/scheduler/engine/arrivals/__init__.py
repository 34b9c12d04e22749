"""What arrives: watch events, binding results and timers, applied to the store and the queue in order."""
