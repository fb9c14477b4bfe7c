package placement_test

import (
	"encoding/json"
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

func TestAResultNamesItsPolicyAsPeopleDo(t *testing.T) {
	for name, test := range map[string]struct {
		policy *placement.Policy
		want   string
	}{
		"none":             {nil, ""},
		"of a namespace":   {&placement.Policy{Kind: "PlacementPolicy", Namespace: "shop", Name: "web"}, "PlacementPolicy shop/web"},
		"for all of these": {&placement.Policy{Kind: "ClusterPlacementPolicy", Name: "default"}, "ClusterPlacementPolicy default"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(placement.Result{Policy: test.policy.Ref()})
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if said, has := got["policy"]; has != (test.want != "") || has && said != test.want {
				t.Errorf("policy in JSON: %v, want %q", said, test.want)
			}
			if said := test.policy.String(); said != test.want {
				t.Errorf("policy: %q, want %q", said, test.want)
			}
		})
	}
}
