package syncer

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/lacking"
)

func TestWhatOverridesMakeIsTriedAbove(t *testing.T) {
	refused, unanswered := &lacking.RefusedError{Reason: "privileged"}, errors.New("no answer")
	for name, test := range map[string]struct {
		overrides []projection.Override
		says      error
		wantTried bool
		want      string // the problem
		wantErr   error
	}{
		"a workload without overrides is not":   {says: refused},
		"one that is admitted goes":             {overrides: list(projection.Override{}), wantTried: true},
		"one that is refused stays as it is":    {overrides: list(projection.Override{}), says: refused, wantTried: true, want: "overrides of PlacementPolicy shop/p make pods that the logical cluster rejects: privileged"},
		"one that nobody can say of is retried": {overrides: list(projection.Override{}), says: unanswered, wantTried: true, wantErr: unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			web, tried := deployment("web", toEast), false
			s := attach(t, newUpstream(t, web), "east")
			s.lacking.Overrides = func(projection.Kind, projection.Object, string) (projection.Overrides, error) {
				return projection.Overrides{Policy: "PlacementPolicy shop/p", Items: test.overrides}, nil
			}
			s.lacking.Admits = func(_ context.Context, pod *corev1.Pod) error {
				tried = true
				for key := range pod.Annotations {
					if strings.HasPrefix(key, v1alpha1.GroupName) {
						t.Errorf("the pod is marked with %s", key)
					}
				}
				return test.says
			}
			held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: deployments, Object: web}, projected(web, 1, 0), nil)
			if !errors.Is(err, test.wantErr) || held != (test.want != "") || tried != test.wantTried {
				t.Errorf("held back: %t, %v, tried: %t; want %q, %v, %t", held, err, tried, test.want, test.wantErr, test.wantTried)
			}
			if got := s.states.Of(identity.KeyOf(deployments, web)).Problem; got != test.want {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}

// A revision has manifests for each target, of which one is what the logical cluster has admitted.
func TestPodsOfARevisionAreTriedAbove(t *testing.T) {
	const want = `the manifests of revision web-v7 for target "eu" make pods that the logical cluster rejects: privileged`
	for name, test := range map[string]struct {
		decision  string
		wantTried bool
		want      string
	}{
		"of a cluster that holds one":                         {atSeven, true, want},
		"not of one that holds what is":                       {`{"west":{"replicas":2}}`, false, ""},
		"not of one that holds what is while others hold one": {`{"west":{"replicas":2},"east":{"replicas":2,"revision":"web-v7","target":"eu"}}`, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			web, tried := deployment("web", test.decision), false
			s := attach(t, newUpstream(t, web), "west")
			s.lacking.Admits = func(context.Context, *corev1.Pod) error {
				tried = true
				return &lacking.RefusedError{Reason: "privileged"}
			}
			held, err := s.lacking.HeldBack(t.Context(), identity.Workload{Kind: deployments, Object: web}, projected(web, 1, 0), nil)
			if err != nil || held != (test.want != "") || tried != test.wantTried {
				t.Errorf("held back: %t, %v, tried: %t; want %q, %t", held, err, tried, test.want, test.wantTried)
			}
			if got := s.states.Of(identity.KeyOf(deployments, web)).Problem; got != test.want {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}
