"""Field names and types of limits, quotas, autoscalers, networks, runtime classes, admission and aggregation.

In the notation of schema/language.py.
"""

TYPES = """
APIService*: spec#2 APIServiceSpec ={}, status#3 APIServiceStatus
APIServiceCondition: lastTransitionTime#3 time, message#5 str, reason#4 str, status#2! str, type#1! str
APIServiceReference: name#2 str, namespace#1 str, port#3 int =443
APIServiceSpec: caBundle#5 bytes, group#2 str, groupPriorityMinimum#7! int, insecureSkipTLSVerify#4 bool, service#1
  APIServiceReference, version#3 str, versionPriority#8! int
APIServiceStatus: conditions#1 [APIServiceCondition|type]
AdmissionServiceReference: name#2! str, namespace#1! str, path#3 str, port#4 int =443
AdmissionWebhookClientConfig: caBundle#2 bytes, service#1 AdmissionServiceReference, url#3 str
ApplyConfiguration: expression#1 str
AuditAnnotation: key#1! str, valueExpression#2! str
ContainerMetrics: name#1! str, usage#2! {quantity}
ContainerResourceMetricSource: container#3! str, name#1! str, target#2! MetricTarget
ContainerResourceMetricStatus: container#3! str, current#2! MetricValueStatus, name#1! str
CrossVersionObjectReference: apiVersion#3 str, kind#1! str, name#2! str
ExpressionWarning: fieldRef#2! str, warning#3! str
ExternalMetricSource: metric#1! MetricIdentifier, target#2! MetricTarget
ExternalMetricStatus: current#2! MetricValueStatus, metric#1! MetricIdentifier
HPAScalingPolicy: periodSeconds#3! int, type#1! str, value#2! int
HPAScalingRules: policies#2 [HPAScalingPolicy], selectPolicy#1 str, stabilizationWindowSeconds#3 int, tolerance#4
  quantity
HTTPIngressPath: backend#2! IngressBackend, path#1 str, pathType#3! str
HTTPIngressRuleValue: paths#1! [HTTPIngressPath]
HorizontalPodAutoscaler*: spec#2 HorizontalPodAutoscalerSpec ={}, status#3 HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior: scaleDown#2 HPAScalingRules, scaleUp#1 HPAScalingRules
HorizontalPodAutoscalerCondition: lastTransitionTime#3 time, message#5 str, observedGeneration#6 int, reason#4 str,
  status#2! str, type#1! str
HorizontalPodAutoscalerSpec: behavior#5 HorizontalPodAutoscalerBehavior, maxReplicas#3! int, metrics#4 [MetricSpec],
  minReplicas#2 int =1, scaleTargetRef#1! CrossVersionObjectReference
HorizontalPodAutoscalerStatus: conditions#6 [HorizontalPodAutoscalerCondition|type], currentMetrics#5 [MetricStatus],
  currentReplicas#3 int, desiredReplicas#4! int, lastScaleTime#2 time, observedGeneration#1 int
IPBlock: cidr#1! str, except#2 [str]
Ingress*: spec#2 IngressSpec, status#3 IngressStatus
IngressBackend: resource#3 TypedLocalObjectReference, service#4 IngressServiceBackend
IngressClass*: spec#2 IngressClassSpec
IngressClassParametersReference: apiGroup#1 str, kind#2! str, name#3! str, namespace#5 str, scope#4 str =Cluster
IngressClassSpec: controller#1 str, parameters#2 IngressClassParametersReference
IngressLoadBalancerIngress: hostname#2 str, ip#1 str, ports#4 [IngressPortStatus]
IngressLoadBalancerStatus: ingress#1 [IngressLoadBalancerIngress]
IngressPortStatus: error#3 str, port#1! int, protocol#2! str
IngressRule: host#1 str, http#2.1 HTTPIngressRuleValue
IngressServiceBackend: name#1! str, port#2 ServiceBackendPort
IngressSpec: defaultBackend#1 IngressBackend, ingressClassName#4 str, rules#3 [IngressRule], tls#2 [IngressTLS]
IngressStatus: loadBalancer#1 IngressLoadBalancerStatus
IngressTLS: hosts#1 [str], secretName#2 str
JSONPatchMutation: expression#1 str
LimitRange*: spec#2 LimitRangeSpec ={}
LimitRangeItem: default#4 {quantity}, defaultRequest#5 {quantity}, max#2 {quantity}, maxLimitRequestRatio#6
  {quantity}, min#3 {quantity}, type#1! str
LimitRangeSpec: limits#1! [LimitRangeItem] =[]
MatchCondition: expression#2! str, name#1! str
MatchResources: excludeResourceRules#4 [NamedRuleWithOperations], matchPolicy#7 str =Equivalent, namespaceSelector#1
  LabelSelector ={}, objectSelector#2 LabelSelector ={}, resourceRules#3 [NamedRuleWithOperations]
MetricIdentifier: name#1! str, selector#2 LabelSelector
MetricSpec: containerResource#7 ContainerResourceMetricSource, external#5 ExternalMetricSource, object#2
  ObjectMetricSource, pods#3 PodsMetricSource, resource#4 ResourceMetricSource, type#1! str
MetricStatus: containerResource#7 ContainerResourceMetricStatus, external#5 ExternalMetricStatus, object#2
  ObjectMetricStatus, pods#3 PodsMetricStatus, resource#4 ResourceMetricStatus, type#1! str
MetricTarget: averageUtilization#4 int, averageValue#3 quantity, type#1! str, value#2 quantity
MetricValueStatus: averageUtilization#3 int, averageValue#2 quantity, value#1 quantity
MutatingAdmissionPolicy*: spec#2 MutatingAdmissionPolicySpec ={}
MutatingAdmissionPolicyBinding*: spec#2 MutatingAdmissionPolicyBindingSpec ={}
MutatingAdmissionPolicyBindingSpec: matchResources#3 MatchResources, paramRef#2 ParamRef, policyName#1 str
MutatingAdmissionPolicySpec: failurePolicy#5 str =Fail, matchConditions#6 [MatchCondition|name], matchConstraints#2
  MatchResources, mutations#4 [Mutation], paramKind#1 ParamKind, reinvocationPolicy#7 str, variables#3 [Variable]
MutatingWebhook: admissionReviewVersions#8! [str], clientConfig#2! AdmissionWebhookClientConfig, failurePolicy#4 str
  =Fail, matchConditions#12 [MatchCondition|name], matchPolicy#9 str =Equivalent, name#1! str, namespaceSelector#5
  LabelSelector ={}, objectSelector#11 LabelSelector ={}, reinvocationPolicy#10 str =Never, rules#3
  [RuleWithOperations], sideEffects#6! str, timeoutSeconds#7 int =10
MutatingWebhookConfiguration*: webhooks#2 [MutatingWebhook|name]
Mutation: applyConfiguration#3 ApplyConfiguration, jsonPatch#4 JSONPatchMutation, patchType#2! str
NamedRuleWithOperations: apiGroups#2.2.1 [str], apiVersions#2.2.2 [str], operations#2.1 [str], resourceNames#1 [str],
  resources#2.2.3 [str], scope#2.2.4 str =*
NetworkPolicy*: spec#2 NetworkPolicySpec ={}
NetworkPolicyEgressRule: ports#1 [NetworkPolicyPort], to#2 [NetworkPolicyPeer]
NetworkPolicyIngressRule: from#2 [NetworkPolicyPeer], ports#1 [NetworkPolicyPort]
NetworkPolicyPeer: ipBlock#3 IPBlock, namespaceSelector#2 LabelSelector, podSelector#1 LabelSelector
NetworkPolicyPort: endPort#3 int, port#2 intstr, protocol#1 str =TCP
NetworkPolicySpec: egress#3 [NetworkPolicyEgressRule], ingress#2 [NetworkPolicyIngressRule], podSelector#1
  LabelSelector ={}, policyTypes#4 [str]
NodeMetrics*: timestamp#2! time, usage#4! {quantity}, window#3! str
ObjectMetricSource: describedObject#1! CrossVersionObjectReference, metric#3! MetricIdentifier, target#2! MetricTarget
ObjectMetricStatus: current#2! MetricValueStatus, describedObject#3! CrossVersionObjectReference, metric#1!
  MetricIdentifier
Overhead: podFixed#1 {quantity}
ParamKind: apiVersion#1 str, kind#2 str
ParamRef: name#1 str, namespace#2 str, parameterNotFoundAction#4 str, selector#3 LabelSelector
PodMetrics*: containers#4! [ContainerMetrics|name], timestamp#2! time, window#3! str
PodsMetricSource: metric#1! MetricIdentifier, target#2! MetricTarget
PodsMetricStatus: current#2! MetricValueStatus, metric#1! MetricIdentifier
ResourceMetricSource: name#1! str, target#2! MetricTarget
ResourceMetricStatus: current#2! MetricValueStatus, name#1! str
ResourceQuota*: spec#2 ResourceQuotaSpec, status#3 ResourceQuotaStatus
ResourceQuotaSpec: hard#1 {quantity}, scopeSelector#3 ScopeSelector, scopes#2 [str]
ResourceQuotaStatus: hard#1 {quantity}, used#2 {quantity}
RuleWithOperations: apiGroups#2.1 [str], apiVersions#2.2 [str], operations#1 [str], resources#2.3 [str], scope#2.4 str
  =*
RuntimeClass*: handler#2! str is:dns-label, overhead#3 Overhead, scheduling#4 Scheduling
Scheduling: nodeSelector#1 {str}, tolerations#2 [Toleration]
ScopeSelector: matchExpressions#1 [ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: operator#2! str, scopeName#1! str, values#3 [str]
ServiceBackendPort: name#1 str, number#2 int
TypeChecking: expressionWarnings#1 [ExpressionWarning]
ValidatingAdmissionPolicy*: spec#2 ValidatingAdmissionPolicySpec ={}, status#3 ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding*: spec#2 ValidatingAdmissionPolicyBindingSpec ={}
ValidatingAdmissionPolicyBindingSpec: matchResources#3 MatchResources, paramRef#2 ParamRef, policyName#1 str,
  validationActions#4 [str|set]
ValidatingAdmissionPolicySpec: auditAnnotations#5 [AuditAnnotation], failurePolicy#4 str =Fail, matchConditions#6
  [MatchCondition|name], matchConstraints#2 MatchResources, paramKind#1 ParamKind, validations#3 [Validation],
  variables#7 [Variable|name]
ValidatingAdmissionPolicyStatus: conditions#3 [Condition|type], observedGeneration#1 int, typeChecking#2 TypeChecking
ValidatingWebhook: admissionReviewVersions#8! [str], clientConfig#2! AdmissionWebhookClientConfig, failurePolicy#4 str
  =Fail, matchConditions#11 [MatchCondition|name], matchPolicy#9 str =Equivalent, name#1! str, namespaceSelector#5
  LabelSelector ={}, objectSelector#10 LabelSelector ={}, rules#3 [RuleWithOperations], sideEffects#6! str,
  timeoutSeconds#7 int =10
ValidatingWebhookConfiguration*: webhooks#2 [ValidatingWebhook|name]
Validation: expression#1! str, message#2 str, messageExpression#4 str, reason#3 str
Variable: expression#2! str, name#1! str
"""
