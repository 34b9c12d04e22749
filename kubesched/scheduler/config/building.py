"""From a valid document to profiles that can run, or the error that kube-scheduler has when it builds its scheduler object.

Such errors are: certificates of an extender that cannot be read, arguments that a plugin refuses, a plugin that does not exist
or does not implement the point, a profile without QueueSort or Bind. Order and texts are kube-scheduler's. No plugin is built
here: the catalogue has their points and argument types.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from kubesched.errors import ConfigError
from kubesched.kube.values import aggregate, go_quote
from kubesched.scheduler.config.args import Args
from kubesched.scheduler.config.catalogue import Catalogue
from kubesched.scheduler.config.documents.durations import Duration
from kubesched.scheduler.config.documents.fielderrors import Path
from kubesched.scheduler.config.documents.wire import Raw
from kubesched.scheduler.config.merging import expand, needed, weigh
from kubesched.scheduler.config.releases.gates import Gates
from kubesched.scheduler.config.types import Extender, ExtenderTLSConfig, Profile
from kubesched.scheduler.config.validation import MergedProfile

DEFAULT_EXTENDER_TIMEOUT = Duration.of(seconds=5)
_FIT = "NodeResourcesFit"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def build_extenders(extenders: Sequence[Extender], prefix: str = "couldn't build extenders: ") -> tuple[Extender, ...]:
    """Return the extenders with default timeouts; raise ConfigError for TLS settings that cannot be used."""
    built = []
    for extender in extenders:
        try:
            _check_tls(extender)
        except ConfigError as error:
            raise ConfigError("", f"{prefix}{error}") from error
        # Kept quirk: a time-out of 0 means five seconds, so "no limit" cannot be said.
        timeout = extender.http_timeout or DEFAULT_EXTENDER_TIMEOUT
        built.append(msgspec.structs.replace(extender, http_timeout=timeout))
    return tuple(built)


def ignore_managed_resources(extenders: Sequence[Extender], profiles: Sequence[MergedProfile]) -> tuple[MergedProfile, ...]:
    """Let NodeResourcesFit ignore the resources that extenders manage. Kept quirk: their list replaces its ignoredResources."""
    # An extender that manages a resource decides about it alone. NodeResourcesFit would look for it in the node's allocatable
    # and refuse every node.
    managed = (resource for extender in extenders for resource in extender.managed_resources)
    ignored = tuple(resource.name for resource in managed if resource.ignored_by_scheduler)
    if not ignored:
        return tuple(profiles)
    changed = []
    for profile in profiles:
        config = list(profile.plugin_config)
        at = next((at for at, (name, args) in enumerate(config) if name == _FIT and isinstance(args, Args)), None)
        if at is None:
            raise ConfigError("", "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
        config[at] = (_FIT, msgspec.structs.replace(config[at][1], ignored_resources=ignored))
        changed.append(replace(profile, plugin_config=tuple(config)))
    return tuple(changed)


def build_profiles(profiles: Sequence[MergedProfile], catalogue: Catalogue, gates: Gates) -> tuple[Profile, ...]:
    """Return the complete profiles; raise ConfigError for the first that cannot run."""
    built: list[Profile] = []
    for merged in profiles:
        try:
            built.append(_build(merged, catalogue, gates))
        except ConfigError as error:
            detail = f"creating profile for scheduler name {merged.scheduler_name}: {error}"
            raise ConfigError("", f"initializing profiles: {detail}") from error
        # After each profile and not at the end: the error of profile 2 is reported before one in profile 3.
        _check_same_queue(built[0], built[-1])
    return tuple(built)


def _build(merged: MergedProfile, catalogue: Catalogue, gates: Gates) -> Profile:
    """Return one complete profile; raise ConfigError if it has not one QueueSort plugin, no Bind plugin, or several plugins at
    PlacementGenerate."""
    # Arguments before points: kube-scheduler builds the plugins first, so an error in arguments hides a missing QueueSort.
    args = _args_in_use(merged, catalogue, gates)
    of = f"for profile with scheduler name {go_quote(merged.scheduler_name)}"
    points = expand(merged.plugins, catalogue)
    n_sorters = len(points["queue_sort"])
    if n_sorters != 1:
        raise ConfigError("", f"only one queue sort plugin required {of}, but got {n_sorters}")
    if not points["bind"]:
        raise ConfigError("", f"at least one bind plugin is needed {of}")
    if len(points["placement_generate"]) > 1:
        raise ConfigError("", f"at most one placement generate plugin is allowed {of}")
    return Profile(
        scheduler_name=merged.scheduler_name,
        percentage_of_nodes_to_score=merged.percentage_of_nodes_to_score,
        plugins=merged.plugins,
        points=weigh(merged.plugins, points, catalogue),
        args=args,
    )


def _args_in_use(merged: MergedProfile, catalogue: Catalogue, gates: Gates) -> Mapping[str, Args | Raw]:
    """Return the arguments of enabled plugins by name; raise ConfigError for those that do not pass the plugin's own check."""
    wanted = needed(merged.plugins)
    found: dict[str, Args | Raw] = {}
    for name, args in sorted(merged.plugin_config, key=lambda entry: entry[0]):
        if name not in wanted or name not in catalogue or args == Raw():
            continue
        found[name] = args
        errors = args.validate(Path(), gates) if isinstance(args, Args) else []
        if errors:
            raise ConfigError("", f"initializing plugin {go_quote(name)}: {aggregate(errors)}")
    return found


def _check_same_queue(first: Profile, other: Profile) -> None:
    """Refuse profiles with different QueueSort plugins from multiPoint, which validation does not read. All share one queue."""
    # One plugin each: `_build` has checked that.
    (wanted,), (found,) = first.points["queue_sort"], other.points["queue_sort"]
    shown = go_quote(other.scheduler_name)
    if wanted.name != found.name:
        detail = f"{go_quote(found.name)}, first: {go_quote(wanted.name)}"
        raise ConfigError("", f"initializing profiles: different queue sort plugins for profile {shown}: {detail}")
    if first.args.get(wanted.name) != other.args.get(wanted.name):
        raise ConfigError("", f"initializing profiles: different queue sort plugin args for profile {shown}")


def _check_tls(extender: Extender) -> None:
    """Check an extender's TLS settings and read its files, so that errors are found at the start."""
    tls = extender.tls_config or ExtenderTLSConfig()
    has_ca = bool(tls.ca_data or tls.ca_file)
    has_certificate = bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    # Kept quirk: HTTPS without an authority is not verified, although nobody asked for that.
    insecure = tls.insecure or (extender.enable_https and not has_ca)
    if not (has_ca or has_certificate or insecure or tls.server_name):
        return
    if has_ca and insecure:
        raise ConfigError("", "specifying a root certificates file with the insecure flag is not allowed")
    ca, certificate, key = (
        data or (read_file(file) if file else b"")
        for data, file in ((tls.ca_data, tls.ca_file), (tls.cert_data, tls.cert_file), (tls.key_data, tls.key_file))
    )
    if ca:
        _check_authorities(ca)
    # A pair of files is not compared: it is read again at each handshake, because files may be renewed.
    if has_certificate and (tls.cert_data or tls.key_data):
        _check_pair(certificate, key)


def read_file(file: str) -> bytes:
    """Return the content of a file; raise ConfigError with Go's text if it cannot be read."""
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise unreadable(file, error) from error


def unreadable(file: str, error: OSError) -> ConfigError:
    """Return the error for a file that cannot be read, with Go's text."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    verb = "read" if isinstance(error, IsADirectoryError) else "open"
    return ConfigError("", f"{verb} {file}: {reason[:1].lower()}{reason[1:]}")


def _check_authorities(pem: bytes) -> None:
    """Raise ConfigError if no certificate in a PEM text can be read, with Go's texts."""
    from cryptography import x509  # heavy, and most configurations have no extender with certificates

    # Go skips what it cannot read and is content with one certificate, so each is tried. The first complaint is reported if
    # none can be read.
    complaint = "" if b"-----END " in pem else "unable to parse bytes as PEM block"
    for certificate in _CERTIFICATE.findall(pem):
        try:
            x509.load_pem_x509_certificate(certificate)
            return  # one that can be read is enough
        except ValueError:
            complaint = complaint or "failed to parse certificate: x509: malformed certificate"
    complaint = complaint or "no valid certificate authority data seen"
    raise ConfigError("", f"unable to load root certificates: {complaint}")


def _check_pair(certificate: bytes, key: bytes) -> None:
    """Raise ConfigError if a key does not belong to its certificate, with Go's texts."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"-----BEGIN " not in certificate:
        raise ConfigError("", "tls: failed to find any PEM data in certificate input")
    if b"-----BEGIN " not in key:
        raise ConfigError("", "tls: failed to find any PEM data in key input")
    try:
        # The first certificate of the chain is the one that the key belongs to.
        public = x509.load_pem_x509_certificate(certificate).public_key()
        private = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError) as error:
        raise ConfigError("", "tls: failed to parse private key") from error
    if public != private:
        raise ConfigError("", "tls: private key does not match public key")
