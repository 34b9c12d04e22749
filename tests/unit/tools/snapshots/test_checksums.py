"""Another text with the same checksum, whatever the seed."""

from zlib import crc32

import pytest

from kubesched.tools.snapshots.checksums import with_same_checksum


@pytest.mark.parametrize("uid", ["uid-team-a-web-0", "123456789", "x" * 300, "uid-größer-als-nichts"])
@pytest.mark.parametrize("seed", [0, 1, 0xFFFFFFFF])
def test_length_and_checksum_are_kept(uid: str, seed: int) -> None:
    other = with_same_checksum("uid-7-", uid)
    assert other != uid and other.isascii()
    assert len(other) == len(uid.encode())
    assert crc32(other.encode(), seed) == crc32(uid.encode(), seed)


def test_a_text_without_room_is_replaced_all_the_same() -> None:
    assert with_same_checksum("uid-7-", "shorter") == "uid-7-"
