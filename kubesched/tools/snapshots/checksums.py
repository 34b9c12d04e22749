"""Another text with the same checksum.

Ties between equally good nodes fall by the CRC-32 of the pod's uid, started at the seed. CRC-32 is linear: if the checksums
of two texts of equal length are equal for one start, they are equal for every start. So a uid can be replaced by another one,
and no tie falls otherwise, whatever the seed.
"""

from __future__ import annotations

from functools import cache
from zlib import crc32

_FREE_CHARACTERS = 8
_FREE_BITS = 5
_BASE = 0x40
"""Characters from here on, `@A...Z[\\]^_`, differ in their five lower bits only."""


def with_same_checksum(text: str, like: str) -> str:
    """Return a text that starts with `text` and has the length and the CRC-32 of `like`; `text` itself if there is no room."""
    wanted = like.encode()
    start = text.encode()[: len(wanted) - _FREE_CHARACTERS] if len(wanted) > _FREE_CHARACTERS else b""
    padded = start + b"-" * (len(wanted) - _FREE_CHARACTERS - len(start)) if start else b""
    if len(padded) + _FREE_CHARACTERS != len(wanted):
        return text
    tail = _solved(padded, crc32(wanted))
    return (padded + tail).decode() if tail is not None else text


def _solved(start: bytes, wanted: int) -> bytes | None:
    """Return the tail after which the checksum is as wanted."""
    tail = bytearray([_BASE] * _FREE_CHARACTERS)
    missing, chosen, basis = crc32(start + bytes(tail)) ^ wanted, 0, _basis()
    while missing:
        if missing.bit_length() not in basis:
            return None
        effect, bits = basis[missing.bit_length()]
        missing, chosen = missing ^ effect, chosen ^ bits
    for bit in range(_FREE_CHARACTERS * _FREE_BITS):
        if chosen >> bit & 1:
            tail[bit // _FREE_BITS] ^= 1 << bit % _FREE_BITS
    return bytes(tail)


@cache
def _basis() -> dict[int, tuple[int, int]]:
    """Return which free bits of a tail change which bits of the checksum: highest bit changed -> (all of them, free bits)."""
    basis: dict[int, tuple[int, int]] = {}
    nothing = crc32(bytes(_FREE_CHARACTERS))
    for bit in range(_FREE_CHARACTERS * _FREE_BITS):
        changed = bytearray(_FREE_CHARACTERS)
        changed[bit // _FREE_BITS] = 1 << bit % _FREE_BITS
        effect, bits = crc32(bytes(changed)) ^ nothing, 1 << bit
        while effect and effect.bit_length() in basis:
            known, others = basis[effect.bit_length()]
            effect, bits = effect ^ known, bits ^ others
        if effect:
            basis[effect.bit_length()] = effect, bits
    return basis
