"""Who is next: pods that may be tried, pods that pause, pods that wait for something to happen, pods in flight."""

from kubesched.scheduler.queue.nominated import Nominated
from kubesched.scheduler.queue.observer import QueueObserver
from kubesched.scheduler.queue.queued import QueuedPod
from kubesched.scheduler.queue.scheduling_queue import Queue, QueueError, QueueOptions
from kubesched.scheduler.queue.steady_clock import SteadyClock
