package clusters

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	manifoldfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/clusters/health"
	"github.com/manifold-dev/manifold/pkg/clusters/status"
)

func TestTheTimeThatNobodyListenedIsNoSilence(t *testing.T) {
	const grace = 40 * time.Second
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for name, test := range map[string]struct {
		since time.Time
		heard time.Time // another cluster, while the process ran
		want  time.Time
	}{
		"a cluster that was silent for a minute, and then nobody listened for hours": {
			since: ago(5*time.Hour + time.Minute), heard: ago(5 * time.Hour), want: ago(20 * time.Second),
		},
		"a silence that had just begun begins anew": {
			since: ago(5 * time.Hour), heard: ago(5 * time.Hour), want: noon,
		},
		"a quick restart in the middle of a long silence gives no more than a moment to be heard": {
			since: ago(4 * time.Minute), heard: ago(2 * time.Second), want: ago(4*time.Minute - 4*time.Second),
		},
		"a clock that was put back": {
			since: ago(time.Minute), heard: noon.Add(time.Hour), want: ago(time.Minute),
		},
		"nobody else was heard: from the beginning of the silence on, nobody is known to have listened": {
			since: ago(time.Hour), want: noon,
		},
	} {
		t.Run(name, func(t *testing.T) {
			west := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			west.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionUnknown,
				Reason: health.ReasonUnreachable, LastTransitionTime: metav1.NewTime(test.since)}}
			east := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			east.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ClusterReady, Status: metav1.ConditionTrue,
				Reason: health.ReasonReady, LastTransitionTime: metav1.NewTime(ago(24 * time.Hour))}}
			client, manifold := fake.NewClientset(), manifoldfake.NewClientset(west, east)
			if !test.heard.IsZero() {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "cluster-east"}}
				lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(test.heard))
				if _, err := client.CoordinationV1().Leases(lease.Namespace).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := Resume(t.Context(), client, manifold, grace, noon); err != nil {
				t.Fatal(err)
			}
			got, err := manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "west", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if since := status.ReadyOf(got.Status).LastTransitionTime; !since.Time.Equal(test.want) {
				t.Errorf("silent since %s, want %s", since, test.want)
			}
			got, err = manifold.ManifoldV1alpha1().Clusters().Get(t.Context(), "east", metav1.GetOptions{})
			if err != nil || !status.ReadyOf(got.Status).LastTransitionTime.Time.Equal(ago(24*time.Hour)) {
				t.Errorf("the cluster that was heard has changed: %v, %v", got, err)
			}
		})
	}
}
