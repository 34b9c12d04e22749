"""`python -m kubesched` is `kubesched`."""

from kubesched.cli import main

main()
