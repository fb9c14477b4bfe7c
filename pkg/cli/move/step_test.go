package move

import (
	"strings"
	"testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestStepOf(t *testing.T) {
	for name, test := range map[string]struct {
		to, pin, placement, status string
		want                       string
		done                       bool
		problem                    string
	}{
		"what is where it should be has moved": {
			to: "west", pin: "west", placement: `{"west":{"replicas":3}}`, status: `{"west":{"replicas":3,"available":3}}`,
			want: "3 of 3 available in west", done: true,
		},
		"what has only just been decided has not": {
			to: "west", pin: "west", placement: `{"west":{"replicas":3}}`, status: `{"east":{"replicas":3,"available":3}}`,
			want: "3 to leave east, 0 of 3 available in west",
		},
		"nor what still has replicas elsewhere": {
			to: "west", pin: "west", placement: `{"west":{"replicas":3}}`,
			status: `{"east":{"replicas":1},"west":{"replicas":3,"available":3}}`,
			want:   "1 to leave east, 3 of 3 available in west",
		},
		"nor what a chosen cluster has no room for": {
			to: "east,west", pin: "east,west", placement: `{"north":{"replicas":2},"west":{"replicas":1}}`,
			status: `{"north":{"replicas":2,"available":2},"west":{"replicas":1,"available":1}}`,
			want:   "2 stay in north until another cluster can take them, 1 of 1 available in west",
		},
		"nor what a chosen cluster has more of than its share": {
			to: "*", pin: "*", placement: `{"east":{"replicas":1},"west":{"replicas":1}}`,
			status: `{"east":{"replicas":2,"available":2},"west":{"replicas":1,"available":1}}`,
			want:   "2 of 1 available in east, 1 of 1 available in west",
		},
		"what is placed nowhere has not moved": {
			to: "north", pin: "north", want: "it is placed nowhere",
		},
		"a move that somebody else has ended is an error": {
			to: "west", pin: "east", placement: `{"east":{"replicas":3}}`, problem: `other clusters meanwhile: "east"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stepOf(map[string]string{
				manifoldv1alpha1.AnnotationClusters: test.pin, manifoldv1alpha1.AnnotationPlacement: test.placement,
				manifoldv1alpha1.AnnotationStatus: test.status,
			}, test.to, false)
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Fatalf("error %v, want one with %q", err, test.problem)
			}
			if err == nil && (got.text != test.want || got.done != test.done) {
				t.Errorf("got %+v, want %q, done %v", got, test.want, test.done)
			}
		})
	}
}

func TestCustomStepOf(t *testing.T) {
	for name, test := range map[string]struct {
		placement, status string
		want              string
		done              bool
	}{
		"what has only just been decided has not moved": {
			placement: `{"west":{"replicas":1}}`, status: `{"east":{"generation":2}}`, want: "to leave east, to come to west",
		},
		"nor what the old cluster still has": {
			placement: `{"west":{"replicas":1}}`, status: `{"east":{"generation":2},"west":{"generation":2}}`, want: "to leave east, is in west",
		},
		"nor what no chosen cluster can have": {
			placement: `{"east":{"replicas":1}}`, status: `{"east":{"generation":2}}`, want: "stays in east until another cluster can have it",
		},
		"what the chosen cluster alone has has moved": {
			placement: `{"west":{"replicas":1}}`, status: `{"west":{"generation":2}}`, want: "is in west", done: true,
		},
		"what is placed nowhere has not": {want: "it is placed nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := customStepOf(map[string]string{
				manifoldv1alpha1.AnnotationClusters: "west", manifoldv1alpha1.AnnotationPlacement: test.placement, manifoldv1alpha1.AnnotationStatus: test.status,
			}, "west")
			if err != nil || got.text != test.want || got.done != test.done {
				t.Errorf("got %+v and error %v, want %q, done %v", got, err, test.want, test.done)
			}
		})
	}
}
