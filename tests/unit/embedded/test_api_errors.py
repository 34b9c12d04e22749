"""Refusals: the Status that carries one over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.embedded import api_errors
from kubesched.embedded.schema.resources import Catalogue
from kubesched.errors import ApiError

PODS = Catalogue().named("pods")


@pytest.mark.parametrize(
    ("error", "details"),
    [
        pytest.param(api_errors.not_found(PODS, "x"), {"name": "x", "kind": "pods"}, id="an object that is not there is named"),
        pytest.param(api_errors.path_not_found(), {}, id="a path that is not there has empty details"),
        pytest.param(api_errors.method_not_allowed(), {}, id="and so has a method that is not allowed"),
        pytest.param(api_errors.bad_request("no"), None, id="a bad request has none"),
        pytest.param(api_errors.unauthorized(), None, id="nor has somebody unknown"),
    ],
)
def test_details_are_there_where_kube_apiserver_has_them(error: ApiError, details: dict[str, Any] | None) -> None:
    assert api_errors.status_of(error).get("details") == details
