package server

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldlisters "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/clusters"
	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
)

// connected has a connection to every cluster.
type connected struct{}

func (connected) Get(string) (*connection.Connection, error) { return &connection.Connection{}, nil }

func TestNobodyWaitsForAClusterThatIsKnownToBeSilent(t *testing.T) {
	for name, test := range map[string]struct {
		ready  []metav1.Condition
		silent bool
	}{
		"it has not been tried":         {},
		"it is ready":                   {ready: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue, Reason: health.ReasonReady}}},
		"it says that it is not":        {ready: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionFalse, Reason: health.ReasonNotReady}}},
		"it has returned and is fenced": {ready: []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Reason: health.ReasonFenced}}},
		"it is silent": {ready: []metav1.Condition{
			{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown, Reason: health.ReasonUnreachable, Message: "it does not answer"}}, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			west := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Status: v1alpha1.ClusterStatus{Conditions: test.ready}}
			if err := store.Add(west); err != nil {
				t.Fatal(err)
			}
			_, err := connections{connected{}, manifoldlisters.NewClusterLister(store)}.Connection("west")
			var absent *clusters.NotConnectedError
			if silent := errors.As(err, &absent) && absent.Message == "it does not answer"; silent != test.silent || !silent && err != nil {
				t.Errorf("silent is %t, want %t: %v", silent, test.silent, err)
			}
		})
	}
}
