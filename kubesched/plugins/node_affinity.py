"""NodeAffinity: keep pods on the nodes that their node selector and node affinity allow, and score the preferred ones.

The arguments can add an affinity that every pod of the profile has to respect as if it were its own.
"""

from __future__ import annotations

from kubesched.config.args import Args
from kubesched.config.fielderrors import FieldError, Path
from kubesched.config.gates import Gates
from kubesched.config.selectors import NodeAffinity


class NodeAffinityArgs(Args, frozen=True, rename="camel"):
    added_affinity: NodeAffinity | None = None

    def validate(self, path: Path, gates: Gates) -> list[FieldError]:
        return self.added_affinity.validate(path.child("addedAffinity")) if self.added_affinity else []
