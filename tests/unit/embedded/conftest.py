"""What the tests of the embedded API server share: a store in virtual time, and the objects they put into it.

tests/e2e/apiserver_book.py decides how requests are answered: it compares hundreds of answers with those of kube-apiserver. The
tests here are about the rest.
"""

from __future__ import annotations

import pytest

from kubesched.embedded import ManualClock, ObjectStore


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(ManualClock(), seed=1)
