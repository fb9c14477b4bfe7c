package explain

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

func TestStateOf(t *testing.T) {
	for name, test := range map[string]struct {
		member moves.Member
		live   bool
		want   string
	}{
		"nothing special":                   {want: "-"},
		"one that does not answer":          {member: moves.Member{Silent: true}, want: "silent"},
		"one that has been given up":        {member: moves.Member{Silent: true, Lost: true}, want: "lost"},
		"one that goes":                     {member: moves.Member{Leaving: true}, want: "being removed"},
		"one that goes and does not answer": {member: moves.Member{Leaving: true, Silent: true}, want: "being removed, silent"},
		"one that nobody waits for":         {member: moves.Member{Leaving: true, Forgotten: true, Silent: true}, want: "removed by force"},
		"one that cannot hold it":           {member: moves.Member{Failed: true}, want: "failed"},
		"one that is seen now":              {live: true, member: moves.Member{Connected: true, Synced: true}, want: "-"},
		"one that is not connected":         {live: true, want: "not connected"},
		"one of which that says nothing":    {live: true, member: moves.Member{Silent: true}, want: "silent"},
		"one that has just connected":       {live: true, member: moves.Member{Connected: true}, want: "being read"},
		"one that is about to change":       {live: true, member: moves.Member{Connected: true, Synced: true, Writing: &moves.Writing{}}, want: "being told"},
		"one that is about to get ordinals": {live: true, member: moves.Member{Connected: true, Synced: true, Reserved: placement.Range{End: 1}}, want: "being told"},
		"one that could not hold it before": {member: moves.Member{Silent: true, Failed: true}, want: "silent, failed"},
	} {
		if got := (&Report{Live: test.live}).stateOf(test.member); got != test.want {
			t.Errorf("%s is %q, want %q", name, got, test.want)
		}
	}
}

// A cluster that words a problem draws no rows, writes over none, and fills no screen.
func TestWhatAClusterSaysStaysInItsRow(t *testing.T) {
	for name, member := range map[string]*moves.Member{"in the row of a member": {Failed: true}, "in the row of a cluster": nil} {
		t.Run(name, func(t *testing.T) {
			print := func(said string) string {
				report := &Report{Kind: "Deployment", Replicas: new(int32), Clusters: []Cluster{{
					Name: "east", Member: member, Share: &placement.Share{Replicas: 1}, Status: &summary.ClusterStatus{Problem: said, Waits: said},
				}}}
				var out strings.Builder
				if err := report.text(&out, now); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			harmless, got := print("denied"), print("denied\x1b[2J\r\nwest\t9\t9\t\u202e9 \u2028all is well"+strings.Repeat("!", 2*longestMessage))
			if strings.ContainsAny(got, "\x1b\r\t\u202e\u2028") {
				t.Errorf("it moves the cursor of who reads it:\n%q", got)
			}
			if rows, want := strings.Count(got, "\n"), strings.Count(harmless, "\n"); rows != want {
				t.Errorf("%d rows, want %d:\n%s", rows, want, got)
			}
			if most := len(harmless) + 2*longestMessage; len(got) > most {
				t.Errorf("%d characters, want %d at most", len(got), most)
			}
		})
	}
}

// What a server says that is newer than this command is no reason to say nothing.
func TestStandingIsAskedOfTheServer(t *testing.T) {
	kind, _ := projection.ForResource(identity.StatefulSets)
	db := identity.Workload{Kind: kind, Object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}}
	pod, _ := projection.ForResource(identity.Pods)
	for want, w := range map[string]identity.Workload{
		"/apis/apps/v1/namespaces/shop/statefulsets/db/fleet": db,
		"/api/v1/namespaces/shop/pods/web/fleet":              {Kind: pod, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}},
	} {
		if got := fleetPath(w); got != want {
			t.Errorf("asks %s, want %s", got, want)
		}
	}
	told := `{"fleet":{"replicas":3,"members":{"east":{"told":2,"more":1}}},"steps":{"east":{"held":true,"reason":"keeps 2 replicas"}}}`
	for name, test := range map[string]struct {
		answer string
		err    error
		want   *moves.Standing
		fails  bool
	}{
		"a server that tells": {answer: told, want: &moves.Standing{
			Fleet: moves.Fleet{Replicas: 3, Members: map[string]moves.Member{"east": {Told: 2}}},
			Steps: map[string]moves.Step{"east": {Held: true, Reason: "keeps 2 replicas"}},
		}},
		"an older server":          {err: apierrors.NewNotFound(appsv1.Resource("statefulsets/fleet"), "db")},
		"a user without the right": {err: apierrors.NewForbidden(appsv1.Resource("statefulsets/fleet"), "db", nil)},
		"a server in trouble":      {err: apierrors.NewInternalError(errors.New("no leader")), fails: true},
		"no answer that is one":    {answer: "<html>", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := gatherer{fleet: func(context.Context, identity.Workload) ([]byte, error) { return []byte(test.answer), test.err }}
			got, err := g.standing(t.Context(), db)
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
