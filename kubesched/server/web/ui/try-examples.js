// Manifests to begin with.

const deployment = (name, replicas, requests, more = "") => `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: ${replicas}
  selector:
    matchLabels: {app: ${name}}
  template:
    metadata:
      labels: {app: ${name}}
    spec:${more}
      containers:
      - name: main
        image: example.com/${name}:1
        resources:
          requests: ${requests}
`;

export const EXAMPLES = [
  ["Ten replicas, even over zones", deployment("shop", 10, "{cpu: 500m, memory: 512Mi}", `
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector:
          matchLabels: {app: shop}`)],
  ["Two urgent pods that evict others", `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: urgent
value: 100000
---
${deployment("urgent", 2, "{cpu: 14, memory: 8Gi}", `
      priorityClassName: urgent`)}`],
  ["One on every node", deployment("agent", 1, "{cpu: 100m, memory: 64Mi}").replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 1\n", "")],
  ["A pod that fits nowhere", `apiVersion: v1
kind: Pod
metadata:
  name: giant
spec:
  containers:
  - name: main
    image: example.com/giant:1
    resources:
      requests: {cpu: 1000, memory: 1Ti}
`],
];
