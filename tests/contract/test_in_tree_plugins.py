"""Every plugin in the tree keeps the contract."""

import pytest

from kubesched.framework import Plugin
from kubesched.plugins import IN_TREE
from kubesched.testing import check_plugin


@pytest.mark.parametrize("cls", IN_TREE, ids=lambda cls: cls.name)
def test_plugin_keeps_the_contract(cls: type[Plugin]) -> None:
    check_plugin(cls, seed=7)
