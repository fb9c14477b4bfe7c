package controller

import (
	"testing"
	"time"

	"github.com/manifold-dev/manifold/pkg/syncer"
)

func TestAStatusWaitsForMirrorsNoLongerThanProgressIsTold(t *testing.T) {
	key := syncer.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
	other := syncer.Key{Resource: deploymentResource, Namespace: "shop", Name: "api"}
	w := waits{}
	for _, step := range []struct {
		what  string
		key   syncer.Key
		ahead bool
		after time.Duration
		want  bool
	}{
		{"nothing to wait for", key, false, 0, false},
		{"ahead for the first time", key, true, 0, true},
		{"another one is", other, true, settle / 2, true},
		{"still ahead", key, true, settle - 1, true},
		{"for too long", key, true, settle, false},
		{"ahead again", key, true, settle, true},
		{"the mirrors are there", key, false, settle, false},
		{"ahead once more", key, true, 2 * settle, true},
		{"the other for too long", other, true, 2 * settle, false},
	} {
		if got := w.holds(step.key, step.ahead, now.Add(step.after)); got != step.want {
			t.Errorf("%s: waits %t, want %t", step.what, got, step.want)
		}
	}
}
