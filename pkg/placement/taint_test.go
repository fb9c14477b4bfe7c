package placement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func (b *requestBuilder) tolerating(tolerations ...corev1.Toleration) *requestBuilder {
	return b.under(func(s *v1alpha1.PlacementPolicySpec) { s.Tolerations = tolerations })
}

// tolerateFor tolerates a NoExecute taint for so many seconds; below 0 means for ever.
func tolerateFor(key string, seconds int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if seconds >= 0 {
		t.TolerationSeconds = &seconds
	}
	return t
}

func TestPlaceTolerates(t *testing.T) {
	gpu := corev1.Toleration{Key: "gpu", Value: "yes"}
	testPlace(t, map[string]placeCase{
		"a tolerated taint does not matter": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("gpu", "yes", corev1.TaintEffectNoSchedule), cluster("west", 5)},
			request:  deployment(3).tolerating(gpu),
			want:     shares("east", 3),
		},
		"a taint of another value keeps away": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("gpu", "no", corev1.TaintEffectNoSchedule), cluster("west", 5)},
			request:  deployment(3).tolerating(gpu),
			want:     shares("west", 3),
		},
		"all taints must be tolerated": {
			clusters: []*clusterBuilder{
				cluster("east", 10).taint("gpu", "yes", corev1.TaintEffectNoSchedule).taint("spot", "", corev1.TaintEffectNoExecute),
			},
			request:  deployment(3).tolerating(gpu),
			unplaced: 3,
			message:  "0/1 clusters can run it: 1 has the untolerated taint {spot: }",
		},
		"a NoExecute taint that is tolerated for a time lets new replicas in": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("spot", "", corev1.TaintEffectNoExecute)},
			request:  deployment(3).tolerating(tolerateFor("spot", 30)),
			want:     shares("east", 3),
		},
		"a taint that prefers others makes them come first": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("old", "", corev1.TaintEffectPreferNoSchedule), cluster("west", 5)},
			request:  deployment(3),
			want:     shares("west", 3),
		},
		"a taint that prefers others gives way to room": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("old", "", corev1.TaintEffectPreferNoSchedule), cluster("west", 2)},
			request:  deployment(3),
			want:     shares("east", 3),
		},
		"a taint that prefers others and is tolerated does not matter": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("old", "", corev1.TaintEffectPreferNoSchedule), cluster("west", 5)},
			request:  deployment(3).tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}),
			want:     shares("east", 3),
		},
		"a pinned workload tolerates what its policy does": {
			clusters: []*clusterBuilder{cluster("east", 10).taint("gpu", "yes", corev1.TaintEffectNoSchedule), cluster("west", 50)},
			request:  deployment(3).pinned("east").tolerating(gpu),
			want:     shares("east", 3),
		},
	})
}

func TestPolicyEndures(t *testing.T) {
	const silence = 5 * time.Minute
	spot := corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoExecute}
	silent := corev1.Taint{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute}
	for name, test := range map[string]struct {
		request     *requestBuilder
		taint       corev1.Taint
		want        time.Duration
		wantForever bool
	}{
		"without a policy a taint ends the stay at once":              {request: deployment(1), taint: spot},
		"a taint without effect on what runs never does":              {request: deployment(1), taint: corev1.Taint{Effect: corev1.TaintEffectNoSchedule}, wantForever: true},
		"a toleration without a time is for ever":                     {request: deployment(1).tolerating(tolerateFor("spot", -1)), taint: spot, wantForever: true},
		"the shortest time counts":                                    {request: deployment(1).tolerating(tolerateFor("spot", 60), tolerateFor("spot", 30), tolerateFor("spot", -1)), taint: spot, want: 30 * time.Second},
		"a toleration of another taint does not count":                {request: deployment(1).tolerating(tolerateFor("other", -1)), taint: spot},
		"a silent cluster is endured for a while by default":          {request: deployment(1), taint: silent, want: silence},
		"a policy says how long a silent cluster is endured":          {request: deployment(1).tolerating(tolerateFor(silent.Key, 7)), taint: silent, want: 7 * time.Second},
		"a policy may give up a silent cluster at once":               {request: deployment(1).tolerating(tolerateFor(silent.Key, 0)), taint: silent},
		"a policy that tolerates everything endures a silent cluster": {request: deployment(1).tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), taint: silent, wantForever: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, forever := test.request.Policy.Endures(&test.taint, silence)
			if got != test.want || forever != test.wantForever {
				t.Errorf("endures %s (for ever: %t), want %s (%t)", got, forever, test.want, test.wantForever)
			}
		})
	}
}
