"""Values inside API objects: quantities, label names, regular expressions, and bounds on text from outside."""

from kubesched.kube.values.amount import MILLI, UNITS, Amount, wrapped
from kubesched.kube.values.bounds import (
    DEEPEST,
    LONGEST_NUMBER,
    Content,
    check_yaml,
    content_of,
    lines_of,
    shown,
    yaml_document,
    yaml_documents,
)
from kubesched.kube.values.go_format import ESCAPES, aggregate, go_json, go_quote
from kubesched.kube.values.naming import label_value_complaints, qualified_name_complaints, subdomain_complaints
from kubesched.kube.values.quantity import INT64_MAX, NANO, QuantityError, amount_text, is_bytes, milli_value, parse, value
from kubesched.kube.values.regex import Regex, RegexError, compile_regex
from kubesched.kube.values.well_known import (
    BETA_REGION,
    BETA_ZONE,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CONTROLLER_REVISION_HASH,
    HOSTNAME,
    MIGRATED_PLUGINS,
    MIRROR_POD,
    POD_TEMPLATE_HASH,
    REGION,
    SELECTED_NODE,
    ZONE,
)
