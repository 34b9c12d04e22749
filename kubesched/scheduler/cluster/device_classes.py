"""Which device class serves an extended resource.

In: DeviceClasses, one change after the other. Out: the class of a resource name.
"""

from __future__ import annotations

from kubesched.kube.api import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass, parse_time
from kubesched.scheduler.cluster.changelog import Reader
from kubesched.scheduler.cluster.objects import ObjectChange, Objects


class DeviceClassMap:
    """Resource names to classes; one for each `Objects` (see `Objects.shared`).

    It follows the changes one by one, as the reference's cache does, and keeps its quirks: a class that loses a name to
    another is not entered under its implicit name either; an update that keeps the name keeps the old object; deleting
    one of two classes that claim a name frees the name.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._reader: Reader[ObjectChange] = Reader()
        self._classes: dict[str, DeviceClass] = {}

    def find(self, resource: str) -> DeviceClass | None:
        """Return the class that serves a resource, or None."""
        self._follow()
        return self._classes.get(resource)

    def _follow(self) -> None:
        changes = self._reader.changed(self._objects.log(DeviceClass))
        if changes is None:
            self._classes.clear()
            for device_class in self._objects.all(DeviceClass):
                self._enter(device_class)
            return
        for old, new in changes:
            if new is None:
                assert old is not None
                self._classes.pop(old.spec.extended_resource_name or "", None)
                self._classes.pop(DEVICE_CLASS_RESOURCE_PREFIX + old.metadata.name, None)
                continue
            if old is not None and old.spec.extended_resource_name != new.spec.extended_resource_name:
                self._classes.pop(old.spec.extended_resource_name or "", None)
            self._enter(new)

    def _enter(self, device_class: DeviceClass) -> None:
        name = device_class.spec.extended_resource_name
        if name:
            holder = self._classes.get(name)
            if holder is not None and not _wins(device_class, holder):
                return
            self._classes[name] = device_class
        self._classes[DEVICE_CLASS_RESOURCE_PREFIX + device_class.metadata.name] = device_class


def _wins(challenger: DeviceClass, holder: DeviceClass) -> bool:
    ours, theirs = _age(challenger), _age(holder)
    return ours > theirs or (ours == theirs and challenger.metadata.name < holder.metadata.name)


def _age(device_class: DeviceClass) -> float:
    created = device_class.metadata.creation_timestamp
    return parse_time(created) if created else 0.0
