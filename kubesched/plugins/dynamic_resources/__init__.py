"""DynamicResources: find, reserve and allocate the devices that a pod claims."""
