"""Which of file, ConfigMap and provider the old flags mean, and what is said when it cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubesched.errors import ConfigError
from kubesched.kube.api.core import ConfigMap
from kubesched.scheduler.legacy.policies.policy import Policy
from kubesched.scheduler.legacy.policies.sources import (
    FromConfigMap,
    FromFile,
    FromProvider,
    PolicyFlags,
    Source,
    no_config_map,
    policy_from_config_map,
    policy_from_file,
    source_of,
)

EMPTY = json.dumps({"kind": "Policy", "apiVersion": "v1"})


@pytest.mark.parametrize(
    ("flags", "source"),
    [
        (PolicyFlags(), FromProvider("DefaultProvider")),
        (PolicyFlags("ClusterAutoscalerProvider"), FromProvider("ClusterAutoscalerProvider")),
        (PolicyFlags(policy_config_file="/p"), FromFile("/p")),
        (PolicyFlags(policy_configmap="m"), FromConfigMap("kube-system", "m")),
        (PolicyFlags(policy_config_file="/p", policy_configmap="m"), FromConfigMap("kube-system", "m")),
        (PolicyFlags(policy_config_file="/p", policy_configmap="m", use_legacy_policy_config=True), FromFile("/p")),
        (PolicyFlags(policy_configmap="m", policy_configmap_namespace="n"), FromConfigMap("n", "m")),
    ],
)
@pytest.mark.parametrize("version", ["1.13", "1.17"])
def test_from_1_7_on(flags: PolicyFlags, source: Source, version: str) -> None:
    assert source_of(flags, version) == source
    assert flags.are_given == (flags != PolicyFlags())


def test_a_file_that_is_asked_for_must_be_named() -> None:
    with pytest.raises(ConfigError) as error:
        source_of(PolicyFlags(use_legacy_policy_config=True))
    assert str(error.value) == "policyConfigFile: Required value: required when --use-legacy-policy-config is true"


def test_up_to_1_6_a_missing_file_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    flags = PolicyFlags(policy_config_file=str(file))
    assert source_of(flags, "1.6") == FromProvider("DefaultProvider")
    file.write_text(EMPTY)
    assert source_of(flags, "1.6") == FromFile(str(file))
    assert policy_from_file(FromFile(str(file)), "1.6") == Policy()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    missing = FromFile(str(tmp_path / "no"))
    for source, version, text in (
        (missing, "1.17", f"missing policy config file {missing.path}"),
        (missing, "1.6", f"unable to read policy config: open {missing.path}: no such file or directory"),
        (FromFile(str(tmp_path)), "1.17", f"couldn't read policy config: read {tmp_path}: is a directory"),
        (FromFile(str(tmp_path)), "1.6", f"unable to read policy config: read {tmp_path}: is a directory"),
    ):
        with pytest.raises(ConfigError) as error:
            policy_from_file(source, version)
        assert str(error.value) == text


def test_config_maps() -> None:
    assert policy_from_config_map(ConfigMap(data={"policy.cfg": EMPTY})) == Policy()
    with pytest.raises(ConfigError) as error:
        policy_from_config_map(ConfigMap(data={"other": EMPTY}))
    assert str(error.value) == 'missing policy config map value at key "policy.cfg"'
    assert str(no_config_map(FromConfigMap("n", "m"), 'configmaps "m" not found')) == (
        'couldn\'t get policy config map n/m: configmaps "m" not found'
    )
