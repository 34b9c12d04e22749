"""What every HTTP server of ours has in common: how many may connect, and how long they may take."""

from kubesched.serving.listener import Listener, raise_file_limit

__all__ = ["Listener", "raise_file_limit"]
