"""A running scheduler's configuration, taken from its /configz."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.errors import ConfigError
from kubesched.scheduler.config import Configuration, Gates, effective, from_configz, load
from kubesched.scheduler.engine.assembly import default_configuration, registry_with
from kubesched.scheduler.framework.runtime.building import catalogue

GATES = Gates.defaults()
CUSTOM = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 40
profiles:
  - schedulerName: packer
    percentageOfNodesToScore: 70
    plugins:
      multiPoint: {disabled: [{name: InterPodAffinity}], enabled: [{name: NodeResourcesFit, weight: 7}]}
      score: {disabled: [{name: ImageLocality}]}
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms: [{matchExpressions: [{key: Disk, operator: In, values: [SSD]}]}]
  - schedulerName: second
"""


def loaded(text: str) -> Configuration:
    return load(text, gates=GATES, registry=catalogue(registry_with()))


def as_in_go(value: Any, depth: int = 0) -> Any:
    """Return a document as kube-scheduler prints it: fields called as in Go, but for what is of the API's own types."""
    if isinstance(value, list):
        return [as_in_go(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = ("apiVersion", "kind")
    return {
        name if name in kept else name[0].upper() + name[1:]: each if name == "addedAffinity" else as_in_go(each)
        for name, each in value.items()
    }


@pytest.mark.parametrize("form", ["v1", "go"])
@pytest.mark.parametrize("text", [None, CUSTOM], ids=["the default", "one with everything"])
def test_profiles_come_back_as_they_were(form: str, text: str | None) -> None:
    running = default_configuration(GATES) if text is None else loaded(text)
    shown = effective(running) if form == "v1" else as_in_go(effective(running))
    document, n_extenders = from_configz(json.dumps({"componentconfig": shown}))
    found = loaded(document)
    assert n_extenders == 0
    assert found.percentage_of_nodes_to_score == running.percentage_of_nodes_to_score
    assert [each.percentage_of_nodes_to_score for each in found.profiles] == [
        each.percentage_of_nodes_to_score for each in running.profiles
    ]
    for one, other in zip(found.profiles, running.profiles, strict=True):
        assert (one.scheduler_name, one.points, one.args) == (other.scheduler_name, other.points, other.args)


def test_extenders_are_counted_and_left_out() -> None:
    shown = {**effective(default_configuration(GATES)), "extenders": [{"urlPrefix": "http://x"}, {"urlPrefix": "http://y"}]}
    document, n_extenders = from_configz(json.dumps({"componentconfig": shown}))
    assert n_extenders == 2 and loaded(document).extenders == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("<html>", "not the answer of a /configz: Expecting value"),
        ("[]", 'there is no object "componentconfig" in it'),
        ('{"kubeletconfig": {}}', 'there is no object "componentconfig" in it'),
        ('{"componentconfig": {"kind": "KubeSchedulerConfiguration"}}', "a list of profiles is expected"),
        ('{"componentconfig": {"Profiles": [1]}}', "a list of profiles is expected"),
    ],
)
def test_what_is_no_configz_is_refused_in_a_line(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_configz(text)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
