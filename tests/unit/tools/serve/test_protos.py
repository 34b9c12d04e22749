"""The .proto files: what they mean on the wire, and that they stay as they were."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

pytest.importorskip("grpc")
from compatibility import breaking_changes
from google.protobuf import descriptor_pb2

from kubesched.tools.serve.descriptors import described, protocol

RECORDED = Path(__file__).with_name("recorded_solver.proto")
"""The file of the last release. A release copies the file of the program here; nothing else changes it."""
PROTOC = shutil.which("protoc")


def text_of(name: str) -> str:
    return (resources.files("kubesched.tools.serve") / "protos" / f"{name}.proto").read_text(encoding="utf-8")


def test_nothing_breaks_callers_of_the_recorded_file() -> None:
    old = described("solver.proto", RECORDED.read_text(encoding="utf-8"))
    assert breaking_changes(old, described("solver.proto", text_of("solver"))) == []


BROKEN = [
    ("bool nodes = 3;", "bool nodes = 4;", "FitsRequest.nodes: was removed without reserving its number and its name"),
    ("bool nodes = 3;", "bool rows = 3;", "FitsRequest.nodes: number 3 is rows now"),
    ("bool nodes = 3;", "string nodes = 3;", "FitsRequest.nodes: its type has changed"),
    ("bool nodes = 3;", "repeated bool nodes = 3;", "FitsRequest.nodes: its type has changed"),
    ("bool nodes = 3;", "", "FitsRequest.nodes: was removed without reserving its number and its name"),
    ("bool nodes = 3;", "reserved 3;", "FitsRequest.nodes: was removed without reserving its number and its name"),
    ("rpc Explain(FitsRequest)", "rpc Explain(PlaceRequest)", "Solver.Explain: takes or gives something else"),
    ("returns (stream FitsAnswer)", "returns (FitsAnswer)", "Solver.Watch: takes or gives something else"),
    ("rpc Explain(FitsRequest) returns (ExplainAnswer);", "", "Solver.Explain: was removed"),
    ("package kubesched.v1;", "package kubesched.v2;", "package: was kubesched.v1"),
]


@pytest.mark.parametrize(("before", "after", "complaint"), BROKEN)
def test_a_change_that_breaks_callers_is_found(before: str, after: str, complaint: str) -> None:
    text = text_of("solver")
    assert before in text
    changed = described("solver.proto", text.replace(before, after))
    assert complaint in breaking_changes(described("solver.proto", text), changed)


def test_a_field_may_come_or_go_if_its_number_and_name_are_reserved() -> None:
    old = described("solver.proto", text_of("solver"))
    new = described("solver.proto", text_of("solver").replace("bool nodes = 3;", 'reserved 3, "nodes"; string more = 9;'))
    assert breaking_changes(old, new) == []
    assert "FitsRequest: number 3 was reserved" in breaking_changes(new, old)


@pytest.mark.parametrize("text", ["message A { oneof b { } }", 'syntax = "proto2";', "message A { string b = 1", 'import "x";'])
def test_what_the_reader_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        described("a.proto", text)


@pytest.mark.skipif(PROTOC is None, reason="there is no protoc (Debian: protobuf-compiler)")
@pytest.mark.parametrize("name", ["solver", "expander"])
def test_protoc_reads_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.proto").write_text(text_of(name))
    done = subprocess.run([str(PROTOC), f"-I{tmp_path}", f"--descriptor_set_out={tmp_path}/out", f"{name}.proto"], check=False)
    assert done.returncode == 0
    (theirs,) = descriptor_pb2.FileDescriptorSet.FromString((tmp_path / "out").read_bytes()).file
    ours = described(f"{name}.proto", text_of(name))
    for message in ours.message_type:  # protoc leaves these out of what it writes for compilers
        for field in (*message.field, *(each for nested in message.nested_type for each in nested.field)):
            field.ClearField("json_name")
    for message in theirs.message_type:
        for field in (*message.field, *(each for nested in message.nested_type for each in nested.field)):
            field.ClearField("json_name")
    for service in (*ours.service, *theirs.service):
        for method in service.method:
            method.ClearField("server_streaming") if not method.server_streaming else None
    assert ours == theirs


def test_the_expander_has_the_fields_of_cluster_autoscalers_wire() -> None:
    """Numbers as in Cluster Autoscaler 1.30 (nodeMap, pod), 1.34 to 1.37 (nodeBytesMap, podBytes)."""
    messages = protocol("expander").messages
    option = {field.name: field.number for field in messages["Option"].DESCRIPTOR.fields}
    assert option == {"nodeGroupId": 1, "nodeCount": 2, "debug": 3, "pod": 4, "podBytes": 5}
    asked = {field.name: field.number for field in messages["BestOptionsRequest"].DESCRIPTOR.fields}
    assert asked == {"options": 1, "nodeMap": 2, "nodeBytesMap": 3}
    sent = messages["BestOptionsRequest"](
        options=[{"nodeGroupId": "g", "nodeCount": 2, "podBytes": [b"p"]}], nodeBytesMap={"g": b"n"}
    )
    assert sent.SerializeToString() == b"\n\x08\n\x01g\x10\x02*\x01p\x1a\x06\n\x01g\x12\x01n"
    assert set(protocol("expander").services) == {"grpcplugin.Expander"}
