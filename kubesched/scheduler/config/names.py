"""Names in a configuration file: label keys and the names of extended resources."""

from __future__ import annotations

from kubesched.kube.values.naming import qualified_name_complaints
from kubesched.scheduler.config.documents.fielderrors import FieldError, Path, TypedString, invalid


def validate_label_key(key: str, path: Path) -> list[FieldError]:
    return [invalid(path, key, complaint) for complaint in qualified_name_complaints(key)]


def validate_extended_resource(name: str, path: Path) -> list[FieldError]:
    """Check that a name belongs to no Kubernetes domain, as the name of a device's resource must not."""
    errors = [invalid(path, TypedString(name), complaint) for complaint in qualified_name_complaints(name)]
    if not errors and not _is_extended_resource(name):
        errors.append(invalid(path, name, "is an invalid extended resource name"))
    return errors


def _is_extended_resource(name: str) -> bool:
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name_complaints(f"requests.{name}")  # the form that quotas use must be a name too
