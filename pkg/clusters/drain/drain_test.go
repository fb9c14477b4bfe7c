package drain

import (
	"cmp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
	"github.com/manifold-dev/manifold/pkg/projection"
)

func TestConditionSaysWhatMovesAndWhatCannot(t *testing.T) {
	for name, test := range map[string]struct {
		moving, stuck   []string
		ending          []string
		status          metav1.ConditionStatus
		reason, message string
	}{
		"nothing is left": {status: metav1.ConditionTrue, reason: v1alpha1.ReasonDrained, message: "no workload is left"},
		"all moves": {
			moving: []string{"Deployment shop/api", "Deployment shop/web"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonDraining,
			message: "2 moving: Deployment shop/api, Deployment shop/web",
		},
		"some cannot move": {
			moving: []string{"Deployment shop/api"}, stuck: []string{"Pod shop/x: it cannot be moved, only deleted"},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonDraining,
			message: "1 moving: Deployment shop/api; 1 cannot move: Pod shop/x: it cannot be moved, only deleted",
		},
		"some will end where they are": {
			ending: []string{"Job shop/sums: it leaves when it ends"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaiting,
			message: "1 finishing there: Job shop/sums: it leaves when it ends",
		},
		"what cannot move keeps the cluster from becoming empty, whatever ends": {
			ending: []string{"a: 1"}, stuck: []string{"b: 2"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonStuck,
			message: "1 finishing there: a: 1; 1 cannot move: b: 2",
		},
		"none can move, and not all are named": {
			stuck: []string{"a: 1", "b: 2", "c: 3", "d: 4", "e: 5", "f: 6", "g: 7"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonStuck,
			message: "7 cannot move: a: 1; b: 2; c: 3; d: 4; e: 5; and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := condition(test.moving, test.ending, test.stuck)
			if got.Type != v1alpha1.ClusterDrained || got.Status != test.status || got.Reason != test.reason || got.Message != test.message {
				t.Errorf("got %+v, want %s %s %q", got, test.status, test.reason, test.message)
			}
		})
	}
}

func TestWhyStays(t *testing.T) {
	refused := placement.Result{Verdicts: []placement.Verdict{{Cluster: "east"}, {Cluster: "west", Reasons: []words.Reason{{Code: words.ReasonCordoned}}}}}
	unpinned := placement.Result{Verdicts: []placement.Verdict{{Cluster: "east"}, {Cluster: "west", Reasons: []words.Reason{{Code: words.ReasonNotPinned}}}}}
	roomy := placement.Result{Verdicts: []placement.Verdict{{Cluster: "east"}, {Cluster: "west", Feasible: true}}}
	for name, test := range map[string]struct {
		workload placement.Workload
		pin      *v1alpha1.Pin // the one that counts; by default the workload's own
		result   placement.Result
		want     string
	}{
		"a Job may start over": {
			workload: placement.Workload{Fixed: true, Restarts: true}, result: roomy,
			want: `it has started, so it is not moved: it leaves when it ends, and "cluster drain --force" starts it over elsewhere`,
		},
		"a pod may not": {workload: placement.Workload{Fixed: true}, result: roomy, want: "it cannot be moved, only deleted"},
		"volumes do not follow": {
			result: placement.Result{Tied: []string{"east"}, Verdicts: roomy.Verdicts},
			want:   "its volumes cannot move; to start with new volumes elsewhere, set its annotation manifold.dev/volumes=recreate",
		},
		"the other clusters say why not":      {result: refused, want: "1 is cordoned"},
		"one has room, but not for all of it": {result: roomy, want: "there is not enough room elsewhere"},
		"a pin to the cluster keeps it there": {
			workload: placement.Workload{Pin: &v1alpha1.Pin{Names: []string{"east"}}}, result: unpinned,
			want: `pinned to "east" by annotation manifold.dev/clusters: unpin it or pin it elsewhere`,
		},
		"of several that it is pinned to, the others say why not": {
			workload: placement.Workload{Pin: &v1alpha1.Pin{Names: []string{"east", "west"}}}, result: refused,
			want: `1 is cordoned; pinned to "east", "west" by annotation manifold.dev/clusters: unpin it or pin it elsewhere`,
		},
		"its namespace's pin does too": {
			pin: &v1alpha1.Pin{Names: []string{"east"}}, result: unpinned,
			want: `pinned to "east" by annotation manifold.dev/clusters of its namespace: unpin it or pin it elsewhere`,
		},
		"pinned to all is pinned to none": {
			workload: placement.Workload{Pin: &v1alpha1.Pin{All: true}}, result: refused, want: "1 is cordoned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := whyStays(test.workload, cmp.Or(test.pin, test.workload.Pin), test.result, "east"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// runs is a logical cluster in which the cluster east runs something.
type runs []identity.Workload

func (runs) HasSynced() bool                        { return true }
func (r runs) Occupants(string) []identity.Workload { return r }

func TestProgressGoesByWhatWouldBeDecided(t *testing.T) {
	in := func(clusters ...string) placement.Decision {
		out := placement.Decision{}
		for _, cluster := range clusters {
			out[cluster] = placement.Share{Replicas: 1}
		}
		return out
	}
	for name, test := range map[string]struct {
		annotation string             // the decision that the workload carries
		next       placement.Decision // what would be decided
		unknown    bool
		want       string
	}{
		"what is on its way is asked about no more": {annotation: `{"west":{"replicas":1}}`, next: in("east"), want: v1alpha1.ReasonDraining},
		"what would leave moves":                    {annotation: `{"east":{"replicas":1}}`, next: in("west"), want: v1alpha1.ReasonDraining},
		"what would stay is stuck":                  {annotation: `{"east":{"replicas":1}}`, next: in("east"), want: v1alpha1.ReasonStuck},
		"what nobody can decide yet is no obstacle": {annotation: `{"east":{"replicas":1}}`, next: in("east"), unknown: true, want: v1alpha1.ReasonDraining},
	} {
		t.Run(name, func(t *testing.T) {
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
				Annotations: map[string]string{v1alpha1.AnnotationPlacement: test.annotation}}}
			kind, _ := projection.KindOf(web)
			c := &Controller{Options: Options{
				Upstream: runs{{Kind: kind, Object: web}}, Custom: func(string) []string { return nil },
				Decide: func(placement.Workload, placement.Decision) (placement.Result, *v1alpha1.Pin, bool) {
					return placement.Result{Decision: test.next}, nil, !test.unknown
				},
			}}
			if got := c.progress("east"); got.Reason != test.want {
				t.Errorf("%s: %s, want %s", got.Reason, got.Message, test.want)
			}
		})
	}
}
