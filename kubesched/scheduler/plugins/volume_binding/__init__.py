"""VolumeBinding: find, reserve and bind the volumes that a pod claims.

`plugin` is the plugin. `plan` works out for every node which volume each claim would get (Filter) and scores the storage
(Score). `open_volumes` and `capacities` index what is available. `binding` promises, writes and waits (Reserve, PreBind).
"""

from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
