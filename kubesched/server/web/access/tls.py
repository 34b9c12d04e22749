"""TLS: a context that serves the right certificate to each caller and notices changed files.

In: the serving flags and the trusted authorities. Out: one `ssl.SSLContext` to listen with. At every handshake the server name
that the caller sends selects the certificate, and changed files are read again, so a renewed certificate needs no restart. An
option that this TLS library does not have is an error.
"""

from __future__ import annotations

import ssl
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubesched.errors import ConfigError
from kubesched.server.web.access.certificates import Pair, kept_pair, read_pair, self_signed
from kubesched.server.web.access.client_certificates import Trust
from kubesched.telemetry.logs import logger

if TYPE_CHECKING:
    from kubesched.server.options.options import Serving

log = logger(__name__)

KEPT_NAME = "kube-scheduler"

_VERSIONS = {
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_CURVES = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519"}
_ALWAYS_IN_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_WEAK = ("TLSv1", "TLSv1_1")


class _Source:
    """A certificate and the files it comes from."""

    def __init__(self, pair: Pair, files: tuple[str, str] = ("", ""), names: Sequence[str] = ()) -> None:
        self.pair = pair
        self.files = files
        self.given_names = tuple(names)
        self.mark = _mark(files)
        self.context: ssl.SSLContext | None = None

    def reload(self) -> bool:
        """Read the files again if they changed; return whether there is a new certificate."""
        mark = _mark(self.files)
        if mark == self.mark:
            return False
        self.mark = mark
        try:
            self.pair = read_pair(*self.files)
        except ConfigError as error:
            log.error("Cannot read the serving certificate again; the old one stays", err=error)
            return False
        log.v(2).info("Read the serving certificate again", file=self.files[0])
        return True


class ServingTls:
    """The certificates, and the context to serve them with."""

    def __init__(self, settings: Serving, trust: Trust | None = None, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._trust = trust or Trust()
        self._trusted = self._trust.version
        self._sources = [_default_source(settings, now())]
        for files in settings.tls_sni_cert_key:
            try:
                pair = read_pair(files.cert_file, files.key_file)
            except ConfigError as error:
                raise ConfigError("", f"failed to load SNI cert and key: {error}") from error
            self._sources.append(_Source(pair, (files.cert_file, files.key_file), files.names))
        self.context = self._new_context(self._sources[0].pair)
        self.context.sni_callback = self._choose
        for source in self._sources:
            source.context = self._new_context(source.pair)

    @property
    def pair(self) -> Pair:
        """Return the certificate for callers that name no server, read again if it changed."""
        self.refresh()
        return self._sources[0].pair

    def _choose(self, tls: ssl.SSLSocket | ssl.SSLObject, server_name: str | None, _: Any) -> None:
        """Select the certificate for a handshake."""
        self.refresh()
        tls.context = self._source_for(server_name or "").context  # type: ignore[assignment]

    def refresh(self) -> None:
        """Read changed certificates and authorities again."""
        self._trust.refresh()
        trusts_others = self._trust.version != self._trusted
        if trusts_others:
            self._trusted = self._trust.version
            # This context only asks for a certificate. The one chosen in the handshake has the authorities.
            self._ask_for_certificates(self.context)
        for source in self._sources:
            if source.reload() or trusts_others:
                source.context = self._new_context(source.pair)

    def _source_for(self, name: str) -> _Source:
        """Return the certificate for a name: names in flags come before those in certificates, whole names before `*`."""
        lower = name.lower().rstrip(".")
        _, _, parent = lower.partition(".")
        for wanted in (lower, f"*.{parent}"):
            for are_given in (True, False):
                for source in self._sources[1:]:
                    names = source.given_names if are_given else () if source.given_names else source.pair.names
                    if wanted in (each.lower() for each in names):
                        return source
        return self._sources[0]

    def _new_context(self, pair: Pair) -> ssl.SSLContext:
        """Return a context for one certificate, with the versions, ciphers and curves of the flags."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        oldest = _VERSIONS[self._settings.tls_min_version]
        suites = [suite for suite in self._settings.tls_cipher_suites if suite not in _ALWAYS_IN_13]
        if self._settings.tls_cipher_suites and not suites:
            oldest = ssl.TLSVersion.TLSv1_3  # nothing was left that older versions could use
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # whoever asks for an old version knows that it is old
            context.minimum_version = oldest
        _use_ciphers(context, suites, is_weak=oldest.name in _WEAK)
        _use_curves(context, self._settings.tls_curve_preferences)
        context.set_alpn_protocols(["http/1.1"])
        # Without tickets every connection has a full handshake, which says who the caller is.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self._ask_for_certificates(context)
        pair.load_into(context)
        return context

    def _ask_for_certificates(self, context: ssl.SSLContext) -> None:
        """Ask callers for a certificate, if any authority is trusted."""
        if self._trust.wants_certificates:
            context.load_verify_locations(cadata=self._trust.authorities)
            context.verify_mode = ssl.CERT_OPTIONAL


def _default_source(settings: Serving, now: float) -> _Source:
    """Return the certificate of the flags, or one that is made: kept in --cert-dir, or in memory."""
    files = (settings.tls_cert_file, settings.tls_private_key_file)
    if any(files):
        return _Source(read_pair(*files), files)
    if settings.cert_dir:
        return _Source(kept_pair(settings.cert_dir, KEPT_NAME, settings.bind_address, now))
    pair = self_signed(settings.bind_address, now)
    log.info("Generated self-signed cert in-memory")
    return _Source(pair)


def _use_ciphers(context: ssl.SSLContext, suites: Sequence[str], *, is_weak: bool) -> None:
    """Set the cipher suites. Weak ones need a lower security level of OpenSSL."""
    level = ":@SECLEVEL=0" if is_weak or any("_RC4_" in suite or "_3DES_" in suite for suite in suites) else ""
    if not suites:
        if level:
            context.set_ciphers(f"DEFAULT{level}")
        return
    for suite in suites:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(f"{_openssl_name(suite)}:@SECLEVEL=0")
        except ssl.SSLError as error:
            detail = f"--tls-cipher-suites: {suite} is not available in {ssl.OPENSSL_VERSION}"
            raise ConfigError("", detail) from error
    context.set_ciphers(":".join(map(_openssl_name, suites)) + level)


def _openssl_name(suite: str) -> str:
    """Return what OpenSSL calls a suite: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256 there."""
    exchange, _, rest = suite.removeprefix("TLS_").partition("_WITH_")
    if rest.startswith("CHACHA20"):
        return f"{exchange.replace('_', '-')}-CHACHA20-POLY1305"
    cipher = (
        rest.replace("AES_128", "AES128")
        .replace("AES_256", "AES256")
        .replace("_CBC_SHA", "_SHA")
        .replace("RC4_128", "RC4")
        .replace("3DES_EDE_SHA", "DES_CBC3_SHA")
    )
    start = "" if exchange == "RSA" else f"{exchange}-"
    return f"{start}{cipher}".replace("_", "-")


def _use_curves(context: ssl.SSLContext, curves: Sequence[int]) -> None:
    """Set the curve. Python's TLS library takes a single one."""
    if not curves:
        return
    unknown = next((curve for curve in curves if curve not in _CURVES), None)
    if unknown is not None:
        raise ConfigError("", f"--tls-curve-preferences: curve {unknown} is not available in {ssl.OPENSSL_VERSION}")
    if len(curves) > 1:
        detail = "Python's TLS library can be told one curve only; name the one to offer, or none to offer all"
        raise ConfigError("", f"--tls-curve-preferences: {','.join(map(str, curves))}: {detail}")
    context.set_ecdh_curve(_CURVES[curves[0]])


def _mark(files: tuple[str, str]) -> object:
    """Return a value that changes when the files do."""
    marks = []
    for file in filter(None, files):
        try:
            stat = Path(file).stat()
            marks.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:  # it is being replaced: the next check finds it
            marks.append((0, 0, 0))
    return marks
