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
)

func TestWhatOverridesMakeIsTriedAbove(t *testing.T) {
	refused, unanswered := &RefusedError{Reason: "privileged"}, errors.New("no answer")
	for name, test := range map[string]struct {
		overrides []projection.Override
		says      error
		wantTried bool
		want      string // the problem
		wantErr   error
	}{
		"a workload without overrides is not":   {says: refused},
		"one that is admitted goes":             {overrides: list(projection.Override{}), wantTried: true},
		"one that is refused stays as it is":    {overrides: list(projection.Override{}), says: refused, wantTried: true, want: "overrides of PlacementPolicy shop/p make pods that the logical cluster does not admit: privileged"},
		"one that nobody can say of is retried": {overrides: list(projection.Override{}), says: unanswered, wantTried: true, wantErr: unanswered},
	} {
		t.Run(name, func(t *testing.T) {
			web, tried := deployment("web", toEast), false
			s := attach(t, newUpstream(t, web), "east")
			s.Overrides = func(projection.Kind, projection.Object, string) (projection.Overrides, error) {
				return projection.Overrides{Policy: "PlacementPolicy shop/p", Items: test.overrides}, nil
			}
			s.Admits = func(_ context.Context, pod *corev1.Pod) error {
				tried = true
				for key := range pod.Annotations {
					if strings.HasPrefix(key, v1alpha1.GroupName) {
						t.Errorf("the pod is marked with %s", key)
					}
				}
				return test.says
			}
			held, err := s.heldBack(t.Context(), identity.Workload{Kind: deployments, Object: web}, projected(web, 1, 0), nil)
			if !errors.Is(err, test.wantErr) || held != (test.want != "") || tried != test.wantTried {
				t.Errorf("held back: %t, %v, tried: %t; want %q, %v, %t", held, err, tried, test.want, test.wantErr, test.wantTried)
			}
			if got := s.stateOf(identity.KeyOf(deployments, web)).problem; got != test.want {
				t.Errorf("problem %q, want %q", got, test.want)
			}
		})
	}
}
