package rules

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/placement/build"
)

// FuzzTolerations asks for how long a taint is endured by policies that nobody has looked at.
func FuzzTolerations(f *testing.F) {
	f.Add([]byte(`[{"key":"a","operator":"Equal","value":"b","effect":"NoExecute","tolerationSeconds":7}]`), "a", "b", "NoExecute")
	f.Add([]byte(`[{"operator":"Exists"},{"operator":"Lt","tolerationSeconds":-9223372036854775808}]`), v1alpha1.TaintUnreachable, "", "NoExecute")
	f.Fuzz(func(t *testing.T, data []byte, key, value, effect string) {
		policy := &placement.Policy{Kind: "ClusterPlacementPolicy", Name: "fuzzed"}
		if json.Unmarshal(data, &policy.Spec.Tolerations) != nil {
			return
		}
		c := build.Cluster("c0", 1)
		c.Taint(key, value, corev1.TaintEffect(effect))
		stay, forever := Endures(policy, &c.Taints[0], time.Minute)
		if stay < 0 || forever && stay != 0 {
			t.Fatalf("endures %v for %s, for ever: %t", c.Taints[0], stay, forever)
		}
		if tolerates, _ := Tolerates(policy, &c.Taints[0]); tolerates && Untolerated(policy, &c.Cluster) != nil {
			t.Fatalf("%v is tolerated, and keeps replicas away", c.Taints[0])
		}
	})
}

func TestPolicyEndures(t *testing.T) {
	const silence = 5 * time.Minute
	spot := corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoExecute}
	silent := corev1.Taint{Key: v1alpha1.TaintUnreachable, Effect: corev1.TaintEffectNoExecute}
	for name, test := range map[string]struct {
		request     *build.RequestBuilder
		taint       corev1.Taint
		want        time.Duration
		wantForever bool
	}{
		"without a policy a taint ends the stay at once":              {request: build.Deployment(1), taint: spot},
		"a taint without effect on what runs never does":              {request: build.Deployment(1), taint: corev1.Taint{Effect: corev1.TaintEffectNoSchedule}, wantForever: true},
		"a toleration without a time is for ever":                     {request: build.Deployment(1).Tolerating(build.TolerateFor("spot", -1)), taint: spot, wantForever: true},
		"the shortest time counts":                                    {request: build.Deployment(1).Tolerating(build.TolerateFor("spot", 60), build.TolerateFor("spot", 30), build.TolerateFor("spot", -1)), taint: spot, want: 30 * time.Second},
		"a toleration of another taint does not count":                {request: build.Deployment(1).Tolerating(build.TolerateFor("other", -1)), taint: spot},
		"a silent cluster is endured for a while by default":          {request: build.Deployment(1), taint: silent, want: silence},
		"a policy says how long a silent cluster is endured":          {request: build.Deployment(1).Tolerating(build.TolerateFor(silent.Key, 7)), taint: silent, want: 7 * time.Second},
		"a policy may give up a silent cluster at once":               {request: build.Deployment(1).Tolerating(build.TolerateFor(silent.Key, 0)), taint: silent},
		"a policy that tolerates everything endures a silent cluster": {request: build.Deployment(1).Tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists}), taint: silent, wantForever: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, forever := Endures(test.request.Policy, &test.taint, silence)
			if got != test.want || forever != test.wantForever {
				t.Errorf("endures %s (for ever: %t), want %s (%t)", got, forever, test.want, test.wantForever)
			}
		})
	}
}
