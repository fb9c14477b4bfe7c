package manifests

import "fmt"

// BarePod is a pod without a controller, pinned to a cluster, with a ConfigMap that it needs.
func BarePod(name, cluster string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s-settings
data:
  mode: fast
---
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels:
    app: %[1]s
  annotations:
    manifold.dev/clusters: %[2]s
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: app
    image: app:1
    envFrom:
    - configMapRef:
        name: %[1]s-settings
`, name, cluster)
}
