"""Credentials are found where the flags say, renewed when they run out, and explained in one line when missing."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.errors import ConfigError
from kubesched.kube.client.credentials import (
    NO_CLUSTER,
    NOTHING_PROVIDED,
    AddressSource,
    default_kubeconfig,
    delegated_credentials,
    find_credentials,
    kubectl_credentials,
)


def kubeconfig(tmp_path: Path, user: dict[str, Any] | None = None, **cluster: Any) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **cluster}}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "nobody", "context": {"cluster": "c"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    return str(path)


async def test_a_token_and_the_cluster_come_out_of_the_current_context(tmp_path: Path) -> None:
    path = kubeconfig(
        tmp_path,
        {"token": "abc", "as": "boss", "as-groups": ["g1", "g2"]},
        **{"insecure-skip-tls-verify": True, "tls-server-name": "api.local", "proxy-url": "http://proxy:3128"},
    )
    found = await find_credentials(path).load()
    assert found.server == "https://10.0.0.1:6443"
    assert found.authorization == "Bearer abc"
    assert (found.verify, found.tls_server_name, found.proxy) == (False, "api.local", "http://proxy:3128")
    assert found.impersonation == (
        ("Impersonate-User", "boss"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
    )
    assert "abc" not in repr(found)


async def test_a_path_may_contain_the_separator_and_several_are_merged(tmp_path: Path) -> None:
    folder = tmp_path / "run:1"
    folder.mkdir()
    path = kubeconfig(folder, {"token": "abc"})
    assert (await find_credentials(path).load()).authorization == "Bearer abc"
    plain = kubeconfig(tmp_path, {"token": "def"})
    assert (await find_credentials(f"{tmp_path}/absent:{plain}").load()).authorization == "Bearer def"


async def test_callers_are_reviewed_by_a_kubeconfig_of_their_own_or_by_the_cluster_around_us(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "abc"})
    source = delegated_credentials(path, environ={})
    assert source is not None
    assert (await source.load()).authorization == "Bearer abc"
    assert delegated_credentials("", environ={"KUBERNETES_MASTER": "http://somewhere"}) is None
    around = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "token").write_text("of the pod")
    (tmp_path / "ca.crt").write_text("x")
    source = delegated_credentials("", environ=around, service_account_folder=str(tmp_path))
    assert source is not None
    assert (await source.load()).server == "https://10.0.0.1:443"


async def test_another_context_and_another_server_can_be_chosen(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "abc"})
    found = await find_credentials(path, context="nobody", master="localhost:8080").load()
    assert (found.server, found.authorization) == ("http://localhost:8080", "")


def read(name: str | None) -> bytes:
    return Path(name or "").read_bytes()


async def test_certificates_inside_the_file_become_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    path = kubeconfig(
        tmp_path,
        {"client-certificate-data": data, "client-key-data": data},
        **{"certificate-authority-data": data},
    )
    found = await find_credentials(path).load()
    assert [read(name) for name in (found.ca_file, found.cert_file, found.key_file)] == [b"PEM"] * 3


async def test_username_and_password_are_sent_as_basic(tmp_path: Path) -> None:
    found = await find_credentials(kubeconfig(tmp_path, {"username": "u", "password": "p"})).load()
    assert found.authorization == "Basic " + base64.b64encode(b"u:p").decode()


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    source = find_credentials(kubeconfig(tmp_path, {"tokenFile": str(token)}))
    assert (await source.load()).authorization == "Bearer one"
    token.write_text("two")
    assert (await source.renew(refused=False)).authorization == "Bearer two"


def plugin(tmp_path: Path, expires_in: float | None) -> dict[str, Any]:
    """Return the exec section for a plugin that counts how often it was asked."""
    status: dict[str, Any] = {"token": "TOKEN"}
    if expires_in is not None:
        status["expirationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + expires_in))
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script = tmp_path / "plugin"
    script.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/asked\nn=$(wc -l < {tmp_path}/asked)\n"
        f"echo '{json.dumps(answer)}' | sed s/TOKEN/token-$((n))/\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


@pytest.mark.parametrize(
    ("expires_in", "later", "refused"),
    [(None, "token-1", "token-2"), (3600, "token-1", "token-2"), (-60, "token-2", "token-3")],
    ids=["a plugin without expiry", "one that still holds", "one that has expired"],
)
async def test_plugins_are_asked_again_when_what_they_gave_no_longer_holds(
    tmp_path: Path, expires_in: float | None, later: str, refused: str
) -> None:
    source = find_credentials(kubeconfig(tmp_path, plugin(tmp_path, expires_in)))
    assert (await source.load()).authorization == "Bearer token-1"
    assert (await source.renew(refused=False)).authorization == f"Bearer {later}"
    assert (await source.renew(refused=True)).authorization == f"Bearer {refused}"


def answering(tmp_path: Path, status: dict[str, Any], more: str = "") -> dict[str, Any]:
    """Return the exec section for a plugin in the folder of the kubeconfig, which writes down what it was told."""
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script = tmp_path / "plugin"
    script.write_text(f"#!/bin/sh\n{more}\necho \"$KUBERNETES_EXEC_INFO\" > {tmp_path}/told\necho '{json.dumps(answer)}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}


async def test_a_plugin_may_give_a_certificate_and_be_told_about_the_cluster(tmp_path: Path) -> None:
    section = answering(tmp_path, {"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    section["provideClusterInfo"] = True
    ca = base64.b64encode(b"PEM").decode()
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    path = kubeconfig(tmp_path, {"exec": section}, **{"certificate-authority-data": ca, "extensions": [extension]})
    found = await find_credentials(path).load()
    assert (read(found.cert_file), read(found.key_file), found.authorization) == (b"CERT", b"KEY", "")
    assert json.loads((tmp_path / "told").read_text()) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://10.0.0.1:6443/",
                "certificate-authority-data": ca,
                "config": {"audience": "x"},
            },
        },
    }


@pytest.mark.parametrize(
    ("status", "more", "complaint"),
    [
        ({}, "", "neither a token nor a certificate"),
        ({"clientCertificateData": "x"}, "", "neither a token nor a certificate"),
        ({"token": "x"}, "echo '{'", "failed to decode process output"),
        ({"token": "x"}, "echo no such user >&2; exit 3", "process returned 3. no such user"),
        ({"token": "x"}, "sleep 30", "did not answer within"),
    ],
)
async def test_a_plugin_that_fails_is_explained(
    tmp_path: Path, status: dict[str, Any], more: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesched.kube.client.kubeconfig.PLUGIN_SECONDS", 1)
    path = kubeconfig(tmp_path, {"exec": answering(tmp_path, status, more)})
    with pytest.raises(ConfigError, match=f"credentials cannot be loaded: exec: .*{complaint}"):
        await find_credentials(path).load()


async def test_of_several_files_the_first_counts_and_paths_start_at_the_file_that_has_them(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = kubeconfig(tmp_path / "first", {"tokenFile": "token"})
    second = kubeconfig(tmp_path / "second", {"token": "of the second"}, server="http://other")
    (tmp_path / "first" / "token").write_text("of the first")
    found = await find_credentials(f"{first}:{second}").load()
    assert (found.server, found.authorization) == ("https://10.0.0.1:6443", "Bearer of the first")


async def test_an_auth_provider_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes_asyncio.config.kube_config", None)
    with pytest.raises(ConfigError, match=r"auth-provider 'oidc' needs: pip install 'kubesched\[oidc\]'"):
        await find_credentials(kubeconfig(tmp_path, {"auth-provider": {"name": "oidc"}})).load()


async def test_oidc_tokens_are_taken_from_the_file(tmp_path: Path) -> None:
    claims = base64.b64encode(json.dumps({"exp": time.time() + 3600}).encode()).decode()
    token = f"head.{claims}.sign"
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    assert (await find_credentials(kubeconfig(tmp_path, user)).load()).authorization == f"Bearer {token}"


async def test_an_expired_oidc_token_that_cannot_be_refreshed_is_explained(tmp_path: Path) -> None:
    claims = base64.b64encode(json.dumps({"exp": 1}).encode()).decode()
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": f"head.{claims}.sign"}}}
    with pytest.raises(ConfigError, match="credentials cannot be loaded: oidc: No valid id-token"):
        await find_credentials(kubeconfig(tmp_path, user)).load()


BROKEN = [
    ("clusters: [", "not YAML"),
    ("just words", "not a kubeconfig"),
    ("", "not a kubeconfig"),
    ("{}", "no current-context is set"),
    ("current-context: x\ncontexts: []\nclusters: []\n", "Expected object with name x in .*contexts list"),
    ("current-context: x\ncontexts: [{name: x}]\nclusters: []\n", "contexts: x is empty"),
    ("current-context: x\ncontexts: 7\n", "not a kubeconfig"),
    ("current-context: x\nusers: [{name: u, user: 7}]\n", "not a kubeconfig: users do not"),
    ("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: []\n", "Expected object with name c"),
    (
        "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {a: b}}]\n",
        "the cluster has no server; set clusters",
    ),
    (
        "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]\n",
        "clusters: c is empty",
    ),
    (
        "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'ftp://x'}}]\n",
        "'ftp://x' is no server's address",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "complaint"), BROKEN, ids=[text or "empty" for text, _ in BROKEN])
async def test_a_broken_kubeconfig_is_explained_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        await find_credentials(str(path)).load()
    assert str(caught.value).startswith(f"kubeconfig {path}: ")
    assert "\n" not in str(caught.value)


async def test_missing_files_and_plugins_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig .*/none: there is no such file; correct --kubeconfig"):
        await find_credentials(str(tmp_path / "none")).load()
    absent = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}
    with pytest.raises(ConfigError, match="credential plugin 'no-such-plugin' is not installed"):
        await find_credentials(kubeconfig(tmp_path, absent)).load()
    with pytest.raises(ConfigError, match=r"certificate-authority: there is no file .*/none.crt"):
        await find_credentials(kubeconfig(tmp_path, **{"certificate-authority": str(tmp_path / "none.crt")})).load()
    failing = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}
    with pytest.raises(ConfigError, match="credentials cannot be loaded: exec: process returned 1"):
        await find_credentials(kubeconfig(tmp_path, failing)).load()


async def test_inside_a_pod_the_token_is_read_again_as_it_rotates(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_text("PEM")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    source = find_credentials(environ=environ, service_account_folder=str(tmp_path))
    found = await source.load()
    assert (found.server, found.authorization) == ("https://[fd00::1]:443", "Bearer one")
    (tmp_path / "token").write_text("two")
    assert (await source.renew(refused=False)).authorization == "Bearer two"


async def test_a_pod_without_a_token_is_told_to_mount_one(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match="mount a service account token, or give --kubeconfig"):
        await find_credentials(environ=environ, service_account_folder=str(tmp_path)).load()


def test_nothing_at_all_is_the_references_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        find_credentials(environ={})
    assert str(caught.value) == NOTHING_PROVIDED
    assert asyncio.run(find_credentials(environ={"KUBERNETES_MASTER": "h:1"}).load()).server == "http://h:1"


@pytest.mark.parametrize("address", ["http://", "https://:99999", "gopher://x", "http://h:port"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=r"--master: .* is no server's address"):
        find_credentials(master=address)


def test_kubectls_own_file_is_the_default_of_commands(tmp_path: Path) -> None:
    assert default_kubeconfig({"KUBECONFIG": f"a{os.pathsep}b"}) == f"a{os.pathsep}b"
    assert default_kubeconfig({"HOME": str(tmp_path)}) == ""
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert default_kubeconfig({"HOME": str(tmp_path)}) == str(tmp_path / ".kube" / "config")


def test_who_types_a_command_without_a_cluster_hears_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        kubectl_credentials("", "", {"HOME": str(tmp_path)})
    assert str(caught.value) == NO_CLUSTER
    assert isinstance(kubectl_credentials("", "", {"KUBERNETES_MASTER": "http://127.0.0.1:8080"}), AddressSource)


@pytest.mark.parametrize(
    ("user", "cluster", "complaint"),
    [
        ({}, {"insecure-skip-tls-verify": "false"}, "clusters: c: .*`bool.*insecure-skip-tls-verify"),
        ({}, {"extensions": ["x"]}, "clusters: c: .*extensions"),
        ({"as-groups": 7}, {}, "users: u: .*as-groups"),
        ({"as-user-extra": ["x"]}, {}, "users: u: .*as-user-extra"),
        ({"auth-provider": 7}, {}, "users: u: .*auth-provider"),
        ({"tokenFile": "a\0b"}, {}, "cannot be read"),
        ({"exec": {"apiVersion": "v1", "command": "a\0b"}}, {}, "credentials cannot be loaded"),
        ({"exec": {"apiVersion": "v1", "command": "x", "interactiveMode": "never"}}, {}, "users: u: .*interactiveMode"),
    ],
    ids=str,
)
async def test_a_field_of_another_type_is_refused_as_go_refuses_it(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await find_credentials(kubeconfig(tmp_path, user, **cluster)).load()


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        ({"token": "x", "clientCertificateData": "x"}, "neither a token nor a certificate with its key"),
        ({"token": "x", "clientCertificateData": 7, "clientKeyData": "x"}, "clientCertificateData"),
        ({"token": "x", "expirationTimestamp": 7}, "expirationTimestamp"),
        ({"token": "x", "expirationTimestamp": "tomorrow"}, "expirationTimestamp"),
    ],
    ids=str,
)
async def test_a_plugin_that_answers_nonsense_is_refused(tmp_path: Path, status: dict[str, Any], complaint: str) -> None:
    path = kubeconfig(tmp_path, {"exec": answering(tmp_path, status)})
    with pytest.raises(ConfigError, match=f"credentials cannot be loaded: exec: .*{complaint}"):
        await find_credentials(path).load()


@pytest.mark.parametrize("is_late", [True, False], ids=["too late", "cancelled"])
async def test_a_plugin_that_nobody_waits_for_ends_with_all_that_it_started(
    tmp_path: Path, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesched.kube.client.kubeconfig.PLUGIN_SECONDS", 0.5 if is_late else 60)
    started = f"sleep 20 & echo $! > {tmp_path}/child; wait"
    source = find_credentials(kubeconfig(tmp_path, {"exec": answering(tmp_path, {"token": "x"}, started)}))
    began = time.monotonic()
    with pytest.raises(ConfigError if is_late else TimeoutError):
        await asyncio.wait_for(source.load(), 5 if is_late else 0.5)
    assert time.monotonic() - began < 4
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not is_running(child):
            return
        await asyncio.sleep(0.02)
    pytest.fail("the plugin's own child is left")


def is_running(pid: int) -> bool:
    """Return whether a process runs. One that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_what_the_files_have_counts_before_a_plugin_and_a_provider(tmp_path: Path) -> None:
    asked = plugin(tmp_path, None)
    oidc = {"auth-provider": {"name": "oidc", "config": {}}}
    certificate = {f"client-{part}-data": base64.b64encode(b"PEM").decode() for part in ("certificate", "key")}
    for user, expected in (
        ({"token": "abc", **asked}, "Bearer abc"),
        ({"token": "abc", **oidc}, "Bearer abc"),
        ({"username": "u", **asked}, "Basic " + base64.b64encode(b"u:").decode()),
        ({**certificate, **asked}, ""),
    ):
        assert (await find_credentials(kubeconfig(tmp_path, user)).load()).authorization == expected
    assert not (tmp_path / "asked").exists()


async def test_a_token_file_counts_before_a_token_as_long_as_it_can_be_read(tmp_path: Path) -> None:
    source = find_credentials(kubeconfig(tmp_path, {"token": "written", "tokenFile": "token"}))
    assert (await source.load()).authorization == "Bearer written"
    (tmp_path / "token").write_text("rotated")
    assert (await source.renew(refused=False)).authorization == "Bearer rotated"


async def test_a_token_and_a_password_are_one_method_too_many(tmp_path: Path) -> None:
    user = {"token": "t", "username": "u", "password": "p"}
    with pytest.raises(ConfigError, match=r"more than one authentication method found; found \[token basicAuth\]"):
        await find_credentials(kubeconfig(tmp_path, user)).load()


@pytest.mark.parametrize(
    ("server", "is_sent"),
    [("http://api.example", False), ("http://127.evil.example", False), ("http://127.0.0.1:80", True), ("https://h", True)],
)
async def test_credentials_go_over_tls_alone_or_stay_on_this_machine(tmp_path: Path, server: str, is_sent: bool) -> None:
    for user in ({"token": "secret"}, {"username": "u", "password": "secret"}, plugin(tmp_path, None)):
        found = await find_credentials(kubeconfig(tmp_path, user, server=server)).load()
        assert bool(found.authorization) == is_sent
    assert (tmp_path / "asked").exists() == is_sent
    moved = find_credentials(kubeconfig(tmp_path, {"token": "secret"}), master="http://api.example")
    assert (await moved.load()).authorization == ""


async def test_the_keys_of_impersonated_extras_are_escaped_and_need_a_user(tmp_path: Path) -> None:
    extra = {"example.com/a%b c": ["1"], "plain-key_x": ["2"]}
    found = await find_credentials(kubeconfig(tmp_path, {"as": "boss", "as-user-extra": extra})).load()
    assert found.impersonation[1:] == (
        ("Impersonate-Extra-example.com%2Fa%25b%20c", "1"),
        ("Impersonate-Extra-plain-key_x", "2"),
    )
    with pytest.raises(ConfigError, match="as-uid, as-groups or as-user-extra is set without as"):
        await find_credentials(kubeconfig(tmp_path, {"as-groups": ["system:masters"]})).load()


async def test_the_name_in_a_certificate_belongs_to_the_server_of_the_file(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, **{"tls-server-name": "api.local"})
    assert (await find_credentials(path, master="https://other:6443").load()).tls_server_name is None


async def test_base64_may_be_wrapped(tmp_path: Path) -> None:
    data = base64.encodebytes(b"PEM" * 50).decode()
    found = await find_credentials(kubeconfig(tmp_path, **{"certificate-authority-data": data})).load()
    assert read(found.ca_file) == b"PEM" * 50
