"""The scheduling queue: pods to try, pods in backoff, unschedulable pods, pods in flight."""

from kubesched.scheduler.queue.nominated import Nominated
from kubesched.scheduler.queue.ports import QueueError, QueueObserver, QueueOptions, SteadyClock
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.scheduling_queue import Queue
