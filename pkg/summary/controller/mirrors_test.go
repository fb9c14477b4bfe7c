package controller

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// look is one time that a status is about to be written.
type look struct {
	what    string
	unshown int
	settled bool
	after   time.Duration
	want    bool // it waits
}

func TestHowLongAStatusWaitsForMirrors(t *testing.T) {
	for name, looks := range map[string][]look{
		"not at all when all are there": {{"all are shown", 0, true, 0, false}},
		"progress is told when it is due": {
			{"some are missing", 3, false, 0, true},
			{"still", 3, false, settle - 1, true},
			{"as many others", 3, false, settle, false},
			{"and from there on again", 3, false, settle, true},
		},
		"what has settled waits while mirrors come": {
			{"many are missing", 900, true, 0, true},
			{"fewer", 500, true, 4 * time.Second, true},
			{"fewer still", 100, true, 8 * time.Second, true},
			{"none", 0, true, 12 * time.Second, false},
		},
		"but not for what does not come": {
			{"one is missing", 1, true, 0, true},
			{"still", 1, true, stuck - 1, true},
			{"for too long", 1, true, stuck, false},
		},
		"what settles while it waits goes on waiting": {
			{"it is under way", 9, false, 0, true},
			{"it has settled, with more", 800, true, settle - 1, true},
			{"fewer", 500, true, 5 * time.Second, true},
			{"all are shown", 0, true, 6 * time.Second, false},
			{"another change", 2, false, time.Hour, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
			other := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "api"}
			w := waits{}
			w.holds(other, 1, false, now)
			for _, l := range looks {
				if got := w.holds(key, l.unshown, l.settled, now.Add(l.after)); got != l.want {
					t.Errorf("%s: waits %t, want %t", l.what, got, l.want)
				}
			}
		})
	}
}
