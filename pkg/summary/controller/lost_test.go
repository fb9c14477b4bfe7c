package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// silentSince is a cluster that has not been heard of since then; the zero time is longer ago than anybody tolerates.
func silentSince(name string, since metav1.Time) *v1alpha1.Cluster {
	c := cluster(name, metav1.ConditionUnknown)
	c.Status.Conditions[0].LastTransitionTime = since
	return c
}

// mirrored is the mirror of a pod in a cluster that an owner of that UID controls.
func mirrored(name, cluster string, owner types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name), Annotations: map[string]string{v1alpha1.AnnotationCluster: cluster},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: owner, Controller: ptr.To(true)}},
	}}
}

func TestMirrorsOfPodsThatWereLostAreTakenAwayAfterAStart(t *testing.T) {
	const onWest, onBoth = `{"west":{"replicas":3}}`, `{"east":{"replicas":1},"west":{"replicas":2}}`
	const known = `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"generation":3}}`
	for name, test := range map[string]struct {
		east       *v1alpha1.Cluster
		deployment *appsv1.Deployment
		want       []string
	}{
		"those in a cluster that the workload has given up": {
			silentSince("east", metav1.Time{}), deployment(onWest, known), []string{"web-1-a", "web-1-b"},
		},
		"not in one that it may come back to": {silentSince("east", metav1.Now()), deployment(onWest, known), nil},
		"not in one that is to run some": {
			silentSince("east", metav1.Time{}), deployment(onBoth, known), nil,
		},
		"not in one that was never heard to run any": {
			silentSince("east", metav1.Time{}), deployment(onWest, ""), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-1", UID: "uid-of-web-1", OwnerReferences: []metav1.OwnerReference{
					*metav1.NewControllerRef(test.deployment, appsv1.SchemeGroupVersion.WithKind("Deployment")),
				},
			}}
			h := start(t, test.east, test.deployment, rs, mirrored("web-1-a", "east", rs.UID), mirrored("web-1-b", "east", rs.UID),
				mirrored("web-1-c", "west", rs.UID), mirrored("other-1", "east", "uid-of-another"))
			if err := h.sync(t.Context(), task{Key: keyOf(test.deployment)}); err != nil {
				t.Fatal(err)
			}
			if got := h.deleted("pods"); !slices.Equal(got, test.want) {
				t.Errorf("deleted %v, want %v", got, test.want)
			}
		})
	}
}

func TestMirrorsOfAStatefulSetsLostPodsAreTakenAway(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-of-db", Annotations: map[string]string{
		v1alpha1.AnnotationPlacement: `{"west":{"replicas":1}}`, v1alpha1.AnnotationStatus: `{"east":{"replicas":1}}`,
	}}}
	h := start(t, silentSince("east", metav1.Time{}), set, mirrored("db-0", "east", set.UID))
	key := keyOf(deployment("", ""))
	key.Resource, key.Name = appsv1.SchemeGroupVersion.WithResource("statefulsets"), set.Name
	if err := h.sync(t.Context(), task{Key: key}); err != nil {
		t.Fatal(err)
	}
	if got, want := h.deleted("pods"), []string{"db-0"}; !slices.Equal(got, want) {
		t.Errorf("deleted %v, want %v", got, want)
	}
}

// deleted are the names of what was deleted of a resource, sorted.
func (h *harness) deleted(resource string) []string {
	var out []string
	for _, action := range h.kube.Actions() {
		if deletion, ok := action.(clienttesting.DeleteAction); ok && action.GetResource().Resource == resource {
			out = append(out, deletion.GetName())
		}
	}
	slices.Sort(out)
	return out
}
