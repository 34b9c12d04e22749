"""VolumeRestrictions: no disk in two pods that cannot share it, no ReadWriteOncePod claim in two pods at all."""

from kubesched.scheduler.plugins.volume_restrictions.plugin import VolumeRestrictions

__all__ = ["VolumeRestrictions"]
