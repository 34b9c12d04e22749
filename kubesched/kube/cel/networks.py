"""Addresses in CEL: Kubernetes' `ip` and `cidr` functions."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kubesched.kube.cel.values import EvaluationError, no_overload

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class IP:
    """An address."""

    cel_name: ClassVar[str] = "net.IP"
    address: _Address

    @staticmethod
    def parse(text: str) -> IP:
        """Read an address; zones and IPv4 dressed up as IPv6 are refused."""
        if "%" in text:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise EvaluationError(f'IP Address "{text}" parse error during conversion from string') from None
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        return IP(address)

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address with the length of its network's prefix."""

    cel_name: ClassVar[str] = "net.CIDR"
    network: _Network

    @staticmethod
    def parse(text: str) -> CIDR:
        """Read an address and a prefix length."""
        address, slash, length = text.partition("/")
        if not slash or not length.isdecimal() or (len(length) > 1 and length[0] == "0"):
            raise EvaluationError(f'network address parse error during conversion from string: "{text}"')
        IP.parse(address)
        try:
            return CIDR(ipaddress.ip_interface(text))
        except ValueError:
            raise EvaluationError(f'network address parse error during conversion from string: "{text}"') from None

    def __str__(self) -> str:
        return str(self.network)


def _make(kind: type[IP] | type[CIDR], name: str) -> Callable[[Any], Any]:
    def answer(text: Any) -> Any:
        if not isinstance(text, str):
            raise no_overload(name, text)
        return kind.parse(text)

    return answer


def _can_make(kind: type[IP] | type[CIDR], name: str) -> Callable[[Any], bool]:
    def answer(text: Any) -> bool:
        if not isinstance(text, str):
            raise no_overload(name, text)
        try:
            kind.parse(text)
        except EvaluationError:
            return False
        return True

    return answer


def _is_canonical(text: Any) -> bool:
    if not isinstance(text, str):
        raise no_overload("ip.isCanonical", text)
    return str(IP.parse(text)) == text


def _address(name: str, cidr: CIDR, value: Any) -> _Address:
    if isinstance(value, IP):
        return value.address
    if isinstance(value, str):
        return IP.parse(value).address
    raise no_overload(name, cidr, value)


def _contains_ip(cidr: CIDR, value: Any) -> bool:
    return _address("containsIP", cidr, value) in cidr.network.network


def _contains_cidr(cidr: CIDR, value: Any) -> bool:
    inner = CIDR.parse(value) if isinstance(value, str) else value
    if not isinstance(inner, CIDR):
        raise no_overload("containsCIDR", cidr, value)
    ours, theirs = cidr.network.network, inner.network.network
    return ours.version == theirs.version and ours.prefixlen <= theirs.prefixlen and theirs.network_address in ours


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    broadcast = isinstance(address, ipaddress.IPv4Address) and int(address) == 0xFFFFFFFF
    return not (broadcast or address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _is_link_local_multicast(ip: IP) -> bool:
    address = ip.address
    if isinstance(address, ipaddress.IPv4Address):
        return int(address) >> 8 == 0xE00000
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


GLOBALS: dict[str, Callable[..., Any]] = {
    "ip": _make(IP, "ip"),
    "isIP": _can_make(IP, "isIP"),
    "ip.isCanonical": _is_canonical,
    "cidr": _make(CIDR, "cidr"),
    "isCIDR": _can_make(CIDR, "isCIDR"),
}

IP_MEMBERS: dict[str, Callable[..., Any]] = {
    "family": lambda ip: ip.address.version,
    "isUnspecified": lambda ip: ip.address.is_unspecified,
    "isLoopback": lambda ip: ip.address.is_loopback,
    "isLinkLocalMulticast": _is_link_local_multicast,
    "isLinkLocalUnicast": lambda ip: ip.address.is_link_local,
    "isGlobalUnicast": _is_global_unicast,
}
"""What can be asked of an address."""

CIDR_MEMBERS: dict[str, Callable[..., Any]] = {
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "ip": lambda cidr: IP(cidr.network.ip),
    "masked": lambda cidr: CIDR(ipaddress.ip_interface(str(cidr.network.network))),
    "prefixLength": lambda cidr: cidr.network.network.prefixlen,
}
"""What can be asked of a network."""
