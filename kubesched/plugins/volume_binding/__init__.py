"""VolumeBinding: find, reserve and bind the volumes that a pod claims."""
