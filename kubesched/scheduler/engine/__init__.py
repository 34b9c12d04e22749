"""The engine: takes in what arrives, decides pod after pod, and acts on each decision."""

from kubesched.scheduler.engine.acting.attempts import PoppedPod
from kubesched.scheduler.engine.acting.eviction import Then
from kubesched.scheduler.engine.arrivals.inbox import AssumedBinding, Changed, Inbox, LoopCall
from kubesched.scheduler.engine.arrivals.inbox_log import INBOX_LOG_FORMAT, InboxLog
from kubesched.scheduler.engine.arrivals.intake import POD_CAME, POD_WENT, Intake
from kubesched.scheduler.engine.assembly import (
    EngineOptions,
    Ports,
    assemble,
    build_profiles,
    default_configuration,
    engine_options,
    new_handle,
    queue_options,
    registry_with,
)
from kubesched.scheduler.engine.cache_debugger import debug_later
from kubesched.scheduler.engine.deciding.agreement import Agreement, Comparison, compare
from kubesched.scheduler.engine.deciding.all_nodes import filter_nodes
from kubesched.scheduler.engine.deciding.attempt import Attempt, Question, Rules
from kubesched.scheduler.engine.deciding.cycle import NO_NODES, attempt
from kubesched.scheduler.engine.deciding.extenders import Poster
from kubesched.scheduler.engine.deciding.failure import Failure
from kubesched.scheduler.engine.deciding.preemptor import Preemptor
from kubesched.scheduler.engine.deciding.sampling import Sampling
from kubesched.scheduler.engine.deciding.ties import FirstByName, FirstShuffled, SeededTies, Ties, UniformTies, best_rows
from kubesched.scheduler.engine.explaining.explain import Explanation, explain, explain_now
from kubesched.scheduler.engine.explaining.node_verdicts import node_verdict, node_verdicts
from kubesched.scheduler.engine.explaining.patches import workload_of
from kubesched.scheduler.engine.explaining.pending_groups import PendingGroups, alike
from kubesched.scheduler.engine.explaining.pod_report import GONE, condition_of, pod_report, requests_of
from kubesched.scheduler.engine.gc_tuning import await_the_list, spare_the_collector
from kubesched.scheduler.engine.handle import EngineHandle, StillClock, SystemClock
from kubesched.scheduler.engine.loop import Engine
from kubesched.scheduler.engine.observer import NoObserver
from kubesched.scheduler.engine.records.decision_log import DECISION_LOG_FORMAT, DecisionLog
from kubesched.scheduler.engine.records.decision_record import (
    OUTCOMES,
    PLACED,
    DecisionFilter,
    DecisionRecord,
    DecisionRing,
    document,
)
from kubesched.scheduler.engine.records.decision_recorder import SHARE, DecisionRecorder, Tried, refusal_counts, table_of
from kubesched.scheduler.engine.records.decision_spans import DecisionSpans, spans_to
from kubesched.scheduler.engine.records.refusals import Refusal
