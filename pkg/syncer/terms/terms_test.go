package terms

import (
	"testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestTheMannerCountsOfAClusterThatLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		leaving                     bool
		manner                      string
		leaves, leftAsItIs, givenUp bool
	}{
		"one that stays": {},
		"one that stays, whatever is written on it": {manner: v1alpha1.RemoveForce},
		"one that is emptied":                       {leaving: true, leaves: true},
		"one that is left as it is":                 {leaving: true, manner: v1alpha1.RemoveOrphan, leaves: true, leftAsItIs: true},
		"one that is gone for good":                 {leaving: true, manner: v1alpha1.RemoveForce, leaves: true, givenUp: true},
		"one with a manner that nobody knows":       {leaving: true, manner: "slowly", leaves: true},
	} {
		t.Run(name, func(t *testing.T) {
			terms := Terms{Leaving: func() (bool, string) { return test.leaving, test.manner }}
			if terms.Leaves() != test.leaves || terms.LeftAsItIs() != test.leftAsItIs || terms.GivenUp() != test.givenUp {
				t.Errorf("leaves %t, left as it is %t, given up %t", terms.Leaves(), terms.LeftAsItIs(), terms.GivenUp())
			}
		})
	}
}
