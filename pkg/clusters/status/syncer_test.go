package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSyncerCondition(t *testing.T) {
	many := make([]string, 15)
	for i := range many {
		many[i] = fmt.Sprintf("get things%d", i)
	}
	bounds, failed := errors.New("more than 100 objects"), errors.New("a\x1b[2J\nb")
	for name, test := range map[string]struct {
		of   Syncer
		want string // status, reason and a part of the message; "" for no condition
	}{
		"nothing is known of a cluster that was never heard": {},
		"a cluster that was heard and is not connected":      {of: Syncer{Heard: true}, want: "False NotConnected see the condition Ready"},
		"one that is connected and has yet to be read":       {of: Syncer{Heard: true, Connected: true}},
		"one that works":                        {of: Syncer{Connected: true, Current: true}, want: "True SyncerRunning the syncer is running"},
		"one that works but for some rights":    {of: Syncer{Connected: true, Current: true, Missing: []string{"get pods"}, Exceeded: bounds}, want: "True RightsMissing running, but the credential may not get pods; to grant it, join again: join"},
		"one that works but with some things":   {of: Syncer{Connected: true, Current: true, Exceeded: bounds, Surplus: "x"}, want: "True BoundsExceeded but not with all: more than 100 objects"},
		"one that works with too many rights":   {of: Syncer{Connected: true, Current: true, Surplus: "delete nodes", Untold: "x"}, want: "True RightsExcess it may delete nodes; to take it away, join again: join"},
		"one that works and is not told of":     {of: Syncer{Connected: true, Current: true, Untold: "impersonate"}, want: "True SyncerRunning but the cluster's audit log cannot name the users behind requests: the credential may not impersonate"},
		"one that waits for rights":             {of: Syncer{Connected: true, Missing: []string{"get pods"}, Failed: failed}, want: "False RightsMissing waits for rights: the credential may not get pods"},
		"many rights are counted":               {of: Syncer{Connected: true, Missing: many}, want: "False RightsMissing get things11 and 3 more; to grant it"},
		"one that is kept from it by a bound":   {of: Syncer{Connected: true, Exceeded: bounds, Failed: failed}, want: "False BoundsExceeded tries again every minute: more than 100 objects"},
		"one that has failed, told in one line": {of: Syncer{Connected: true, Failed: failed}, want: "False SyncerFailed will be started again: a"},
	} {
		t.Run(name, func(t *testing.T) {
			test.of.JoinAgain = "join"
			got := test.of.Condition()
			if test.want == "" || got == nil {
				if got != nil || test.want != "" {
					t.Errorf("it is %+v, want %q", got, test.want)
				}
				return
			}
			want := strings.SplitN(test.want, " ", 3)
			if string(got.Status) != want[0] || got.Reason != want[1] || !strings.Contains(got.Message, want[2]) || strings.ContainsAny(got.Message, "\n\x1b") {
				t.Errorf("it is %+v, want %q", got, want)
			}
		})
	}
}
