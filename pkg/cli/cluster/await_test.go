package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

func withCondition(c manifoldv1alpha1.Cluster, conditions ...metav1.Condition) *manifoldv1alpha1.Cluster {
	c.Status.Conditions = conditions
	return &c
}

func TestReadiness(t *testing.T) {
	for name, test := range map[string]struct {
		cluster *manifoldv1alpha1.Cluster
		ready   bool
		want    string
	}{
		"a cluster that is gone":           {want: "it has been removed meanwhile"},
		"a cluster nobody has asked yet":   {cluster: withCondition(named("east", "")), want: "nobody has probed it yet"},
		"a cluster that refuses its token": {cluster: withCondition(named("east", ""), notReady), want: "Ready=False (Unauthorized): the token is refused"},
		"a ready cluster": {
			cluster: withCondition(named("east", ""), metav1.Condition{Type: "Ready", Status: "True"}), ready: true, want: "Ready=True",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ready, why := readiness(test.cluster)
			if ready != test.ready || why != test.want {
				t.Errorf("readiness: %t, %q, want %t, %q", ready, why, test.ready, test.want)
			}
		})
	}
}

var notReady = metav1.Condition{Type: "Ready", Status: "False", Reason: "Unauthorized", Message: "the token is refused"}

func TestHindrance(t *testing.T) {
	left := metav1.Condition{Type: "Removed", Status: "False", Reason: "ObjectsLeft", Message: "3 objects are left"}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing is known":                  {},
		"what is well is no hindrance":      {conditions: []metav1.Condition{{Type: "Ready", Status: "True"}, {Type: "SyncerRunning", Status: "True"}}},
		"that it is not ready may be one":   {conditions: []metav1.Condition{notReady}, want: "Ready=False (Unauthorized): the token is refused"},
		"several are told, in their order":  {conditions: []metav1.Condition{notReady, left}, want: "Ready=False (Unauthorized): the token is refused; Removed=False (ObjectsLeft): 3 objects are left"},
		"what is left is told if it is not": {conditions: []metav1.Condition{{Type: "Ready", Status: "True"}, left}, want: "Removed=False (ObjectsLeft): 3 objects are left"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hindrance(withCondition(named("east", ""), test.conditions...)); got != test.want {
				t.Errorf("hindrance %q, want %q", got, test.want)
			}
		})
	}
}

func TestFollowSeesChangesUntilTheEnd(t *testing.T) {
	east := named("east", "1")
	client := fake.NewSimpleClientset(&east)
	l := &logical{manifold: client, clusters: client.ManifoldV1alpha1().Clusters()}
	var seen []string
	err := l.follow(t.Context(), "east", time.Minute, func(c *manifoldv1alpha1.Cluster) bool {
		if c == nil {
			seen = append(seen, "gone")
			return true
		}
		seen = append(seen, c.Status.UID)
		if c.Status.UID == "1" {
			changed := c.DeepCopy()
			changed.Status.UID = "2"
			if _, err := l.clusters.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
			return false
		}
		if err := l.clusters.Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	if last := seen[len(seen)-1]; seen[0] != "1" || last != "gone" {
		t.Errorf("saw %v, want the cluster from its first state to its end", seen)
	}
}

func TestFollowEnds(t *testing.T) {
	east := named("east", "1")
	for name, test := range map[string]struct {
		cluster string
		timeout time.Duration
		want    error
	}{
		"at once if there is no such cluster":       {cluster: "west", timeout: time.Minute},
		"with its deadline if nothing ever happens": {cluster: "east", timeout: time.Millisecond, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []manifoldv1alpha1.Cluster
			if test.cluster == "east" {
				objects = append(objects, east)
			}
			client := fake.NewSimpleClientset(&manifoldv1alpha1.ClusterList{Items: objects})
			l := &logical{manifold: client, clusters: client.ManifoldV1alpha1().Clusters()}
			err := l.follow(t.Context(), test.cluster, test.timeout, func(c *manifoldv1alpha1.Cluster) bool { return c == nil })
			if !errors.Is(err, test.want) {
				t.Errorf("follow: %v, want %v", err, test.want)
			}
		})
	}
}
