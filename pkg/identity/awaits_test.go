package identity

import (
	"maps"
	"slices"
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestAClusterHasNothingOfWhatAwaitsARelease(t *testing.T) {
	const (
		none  = `{"east":{"replicas":1},"west":{"replicas":1}}`
		first = `{"east":{"replicas":1,"revision":"web-v1","target":"eu"},"west":{"replicas":1}}`
		all   = `{"east":{"replicas":1,"revision":"web-v1","target":"eu"},"west":{"replicas":1,"revision":"web-v1","target":"us"}}`
	)
	for name, test := range map[string]struct {
		decision, awaits string
		carried, waiting []string // of east, west and north
		says             string
	}{
		"nothing awaits any":                       {decision: none, carried: []string{"east", "west"}},
		"none has begun":                           {decision: none, awaits: "web", waiting: []string{"east", "north", "west"}, says: "waits for the first release of Application web: see manifold app get web -n shop; manifold app sync web -n shop begins one"},
		"nothing is decided yet, or ever":          {awaits: "web", waiting: []string{"east", "north", "west"}, says: "waits for the first release of Application web: see manifold app get web -n shop; manifold app sync web -n shop begins one"},
		"one has come to the first":                {decision: first, awaits: "web", carried: []string{"east"}, waiting: []string{"north", "west"}, says: "waits for the first release of Application web to come to more clusters: see manifold app get web -n shop; manifold app sync web -n shop begins one"},
		"one has come to all, and a new one waits": {decision: all, awaits: "web", carried: []string{"east", "west"}, waiting: []string{"north"}, says: "waits for the first release of Application web to come to more clusters: see manifold app get web -n shop; manifold app sync web -n shop begins one"},
		"what is let go is carried out":            {decision: first, carried: []string{"east", "west"}},
		"a decision that cannot be read":           {decision: `{"east"`, awaits: "web", waiting: []string{"east", "north", "west"}, says: "waits for the first release of Application web: see manifold app get web -n shop; manifold app sync web -n shop begins one"},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment(test.decision, "")
			above.Namespace = "shop"
			if above.Annotations == nil {
				above.Annotations = map[string]string{}
			}
			if test.awaits != "" {
				above.Annotations = maps.Clone(above.Annotations)
				above.Annotations[v1alpha1.AnnotationAwaits] = test.awaits
			}
			if got := DecisionOf(above).Clusters(); !slices.Equal(got, test.carried) {
				t.Errorf("carried out in %v, want %v", got, test.carried)
			}
			var waiting []string
			for _, cluster := range []string{"east", "north", "west"} {
				if AwaitsIn(above, cluster) {
					waiting = append(waiting, cluster)
					if at := RevisionIn(above, cluster); at != (Revision{}) {
						t.Errorf("%s is to hold %v", cluster, at)
					}
				}
			}
			if !slices.Equal(waiting, test.waiting) {
				t.Errorf("waiting in %v, want %v", waiting, test.waiting)
			}
			if got := Awaits(above); got != test.says {
				t.Errorf("says %q, want %q", got, test.says)
			}
		})
	}
}
