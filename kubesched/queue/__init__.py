"""Who is next: pods that may be tried, pods that pause, pods that wait for something to happen, pods in flight."""

from kubesched.queue.observing import Observer
from kubesched.queue.queued import QueuedPod
from kubesched.queue.scheduling import Queue, QueueError, QueueOptions

__all__ = ["Observer", "Queue", "QueueError", "QueueOptions", "QueuedPod"]
