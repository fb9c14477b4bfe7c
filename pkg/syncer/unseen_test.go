package syncer

import (
	"testing"

	"github.com/manifold-dev/manifold/pkg/identity"
)

// What a start has not looked at yet would be reported as if the cluster had carried out nothing of it.
func TestNothingIsReportedBeforeItWasLookedAtOnce(t *testing.T) {
	web := deployment("web", toEast)
	key := identity.KeyOf(deployments, web)
	u := newUpstream(t, web)
	s := attach(t, u, "east", projected(web, 3, 3))
	s.enqueueEverything()
	if report, known := s.reports.Report(key, web); known {
		t.Fatalf("reported %+v before it was looked at", report)
	}
	s.changes = nil
	// Whatever comes of it: there is no namespace here that it could be in.
	_ = s.look(t.Context(), key)
	if _, known := s.reports.Report(key, web); !known {
		t.Error("nothing is reported after it was looked at")
	}
	if len(s.changes) == 0 || s.changes[len(s.changes)-1].key != key {
		t.Errorf("told of %v, want the Deployment, whose status waited", s.changes)
	}
}
