"""Every plugin that a configuration can name without more keeps the contract."""

import pytest

from kubesched.scheduler.engine.assembly import registry_with
from kubesched.scheduler.framework import Plugin
from kubesched.testing import check_plugin


@pytest.mark.parametrize("cls", [*registry_with()], ids=lambda cls: cls.name)
def test_plugin_keeps_the_contract(cls: type[Plugin]) -> None:
    check_plugin(cls, seed=7)
