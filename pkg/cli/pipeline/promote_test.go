package pipeline

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

func TestWaitingForAPromotion(t *testing.T) {
	promotion := func(revision string, phase weave.PromotionPhase, before time.Duration) *weave.EnvironmentStatus {
		return &weave.EnvironmentStatus{Promotion: &weave.PromotionStatus{Revision: revision, Phase: phase, Message: "why", At: ago(before)}}
	}
	for name, test := range map[string]struct {
		is   *weave.EnvironmentStatus
		done bool
		fail string
		line string
	}{
		"nothing is known yet":                    {},
		"nothing has come of it yet":              {is: &weave.EnvironmentStatus{}},
		"it waits":                                {is: promotion("2", weave.PromotionWaiting, 0), line: "2 is Waiting in prod: why"},
		"it has begun":                            {is: promotion("2", weave.PromotionStarted, 0), line: "2 is Started in prod: why"},
		"it has failed, and is tried again":       {is: promotion("2", weave.PromotionFailed, 0), line: "2 is Failed in prod: why"},
		"it has come":                             {is: promotion("2", weave.PromotionVerified, 0), done: true, line: "2 is Verified in prod: why"},
		"it was there all the time":               {is: promotion("2", weave.PromotionVerified, time.Hour), done: true, line: "2 is Verified in prod: why"},
		"it is revoked":                           {is: promotion("2", weave.PromotionRevoked, 0), done: true, line: "2 is Revoked in prod: why", fail: "the promotion of 2 to prod is revoked: why"},
		"it was revoked before it was asked for":  {is: promotion("2", weave.PromotionRevoked, time.Hour)},
		"another one was promoted before":         {is: promotion("1", weave.PromotionVerified, time.Hour)},
		"another one is promoted since":           {is: promotion("3", weave.PromotionStarted, -time.Second), done: true, fail: "3 is promoted to prod instead"},
		"somebody has asked for another one":      {is: &weave.EnvironmentStatus{Asked: &weave.Ask{Revision: "3", By: "bob", At: ago(0)}}, done: true, fail: "3 is asked for in prod instead, by bob"},
		"somebody had asked for another one once": {is: &weave.EnvironmentStatus{Asked: &weave.Ask{Revision: "3", By: "bob", At: ago(time.Hour)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiter{environment: "prod", revision: "2", since: metav1.NewTime(noon)}
			p := podinfo()
			p.Status.Environments["prod"] = test.is
			done, line, err := w.look(p)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if done != test.done || line != test.line || said != test.fail {
				t.Errorf("done %t with %q and %q, want %t with %q and %q", done, line, said, test.done, test.line, test.fail)
			}
			if _, again, _ := w.look(p); again != "" {
				t.Errorf("the same is told twice: %q", again)
			}
		})
	}
}
