"""VolumeBinding: find, reserve and bind the volumes that a pod claims.

`plugin` is the plugin, `plan` works out what would become of the claims on every node, `open_volumes` and `capacities`
know what there is to give, `binding` promises, writes and waits, `scoring` compares nodes by the storage left there.
"""

from kubesched.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
