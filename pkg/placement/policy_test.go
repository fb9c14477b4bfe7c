package placement_test

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

func TestToleratesUnschedulable(t *testing.T) {
	under := func(seconds int64) *placement.Policy {
		return &placement.Policy{Spec: v1alpha1.PlacementPolicySpec{UnschedulableTolerationSeconds: ptr.To(seconds)}}
	}
	for name, test := range map[string]struct {
		policy *placement.Policy
		want   time.Duration
	}{
		"no policy":                              {want: build.TwoMinutes},
		"a policy that does not say":             {policy: &placement.Policy{}, want: build.TwoMinutes},
		"a policy that says so":                  {policy: under(30), want: 30 * time.Second},
		"one that tolerates nothing":             {policy: under(0)},
		"one that tolerates more than time goes": {policy: under(1 << 62), want: 10 * 365 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.policy.ToleratesUnschedulable(build.TwoMinutes); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
