{{- define "kubesched.lease" -}}
{{- if eq .Values.mode "replacement" }}kube-scheduler{{ else }}{{ .Release.Name }}{{ end }}
{{- end }}

{{- define "kubesched.leaseNamespace" -}}
{{- if eq .Values.mode "replacement" }}kube-system{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- define "kubesched.selector" -}}
app.kubernetes.io/name: kubesched
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubesched.labels" -}}
{{ include "kubesched.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "kubesched.config" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceNamespace: {{ include "kubesched.leaseNamespace" . }}
  resourceName: {{ include "kubesched.lease" . }}
  leaseDuration: {{ .Values.leaderElection.leaseDuration }}
  renewDeadline: {{ .Values.leaderElection.renewDeadline }}
  retryPeriod: {{ .Values.leaderElection.retryPeriod }}
clientConnection:
  qps: {{ .Values.qps }}
  burst: {{ .Values.burst }}
profiles:
{{- if .Values.profiles }}
  {{- toYaml .Values.profiles | nindent 2 }}
{{- else if eq .Values.mode "replacement" }}
  - schedulerName: default-scheduler
{{- else }}
  - schedulerName: {{ .Values.schedulerName }}
{{- end }}
{{- with .Values.config }}
{{ toYaml . }}
{{- end }}
{{- end }}
