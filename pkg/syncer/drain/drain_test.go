package drain

import (
	"cmp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/words"
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
			message: "2 on the move: Deployment shop/api, Deployment shop/web",
		},
		"some cannot move": {
			moving: []string{"Deployment shop/api"}, stuck: []string{"Pod shop/x: it cannot be moved, only deleted"},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonDraining,
			message: "1 on the move: Deployment shop/api; 1 cannot move: Pod shop/x: it cannot be moved, only deleted",
		},
		"some will end where they are": {
			ending: []string{"Job shop/sums: it leaves when it ends"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonWaiting,
			message: "1 to end there: Job shop/sums: it leaves when it ends",
		},
		"what cannot move keeps the cluster from becoming empty, whatever ends": {
			ending: []string{"a: 1"}, stuck: []string{"b: 2"}, status: metav1.ConditionFalse, reason: v1alpha1.ReasonStuck,
			message: "1 to end there: a: 1; 1 cannot move: b: 2",
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
			want: `it is not moved once it has started; it leaves when it ends, and "cluster drain --force" has it start over elsewhere`,
		},
		"a pod may not": {workload: placement.Workload{Fixed: true}, result: roomy, want: "it cannot be moved, only deleted"},
		"volumes do not follow": {
			result: placement.Result{Tied: []string{"east"}, Verdicts: roomy.Verdicts},
			want:   "its volumes cannot follow; to have it begin with new ones elsewhere, set its annotation manifold.dev/volumes=recreate",
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
