package manifests

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// Database is a StatefulSet with its headless Service, which has no selector that meets the pods: its name alone brings it along.
func Database(name string, replicas int, edits ...func(*appsv1.StatefulSet)) string {
	manifest := fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  serviceName: %[1]s-peers
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: %[1]s
        image: %[1]s:1
`, name, replicas)
	var set appsv1.StatefulSet
	if err := yaml.Unmarshal([]byte(manifest), &set); err != nil {
		panic(err)
	}
	for _, edit := range edits {
		edit(&set)
	}
	data, err := yaml.Marshal(&set)
	if err != nil {
		panic(err)
	}
	return string(data) + fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata:
  name: %s-peers
spec:
  clusterIP: None
  selector:
    app: somebody-else
  ports:
  - port: 5432
`, name)
}

// SetOn pins a StatefulSet.
func SetOn(clusters string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Annotations = map[string]string{v1alpha1.AnnotationClusters: clusters}
	}
}

// Ordinals are the names of pods of a StatefulSet from one ordinal on, up to another one, without it.
func Ordinals(name string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("%s-%d", name, i))
	}
	return out
}

// Dividing is a policy that divides StatefulSets over the clusters.
const Dividing = `
apiVersion: manifold.dev/v1alpha1
kind: PlacementPolicy
metadata:
  name: divide
spec:
  workloads:
    kinds: [StatefulSet]
  division:
    type: Divide
    by: Even
`

// WithDisks has each replica of a StatefulSet keep data in a claim of the scenario's class.
func WithDisks(s *framework.Scenario) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"tier": "disk"}},
			Spec:       ClaimSpec(s),
		}}
	}
}

// ClaimSpec asks for a volume of the scenario's class, see Scenario.Disks.
func ClaimSpec(s *framework.Scenario) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: ptr.To(s.Namespace),
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// Unhold takes every finalizer but ours off, as the operator does that it belongs to.
const Unhold = `{"metadata":{"finalizers":["manifold.dev/projection"]}}`
