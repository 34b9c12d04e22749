"""DynamicResources: find, reserve and allocate the devices that a pod claims."""

from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
