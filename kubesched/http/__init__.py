"""What all HTTP servers share: connection limits, time limits, checks of a request's origin, and certificates."""

from kubesched.http.certificates import PEM, Authority, key_pem
from kubesched.http.connections import source_address
from kubesched.http.listener import Listener, raise_file_limit
from kubesched.http.origins import Origins

__all__ = ["PEM", "Authority", "Listener", "Origins", "key_pem", "raise_file_limit", "source_address"]
