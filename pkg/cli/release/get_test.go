package release

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

func TestAReleaseIsShownWithWhatPeopleHaveAsked(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	release := &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f"},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v8", TriggeredBy: v1alpha1.ReleaseTrigger{User: "alice"}},
		Status: v1alpha1.ReleaseStatus{
			Phase:  v1alpha1.ReleaseRunning,
			Stages: []v1alpha1.StageStatus{{ID: "agree", Name: v1alpha1.StageWaitApproval, Phase: v1alpha1.StageRunning, Attempt: 1}},
			Requests: []v1alpha1.ReleaseRequest{
				{Type: v1alpha1.RequestSkip, Stage: "script", Targets: []string{"hoge", "eu"}, User: "bob", Time: metav1.NewTime(now.Add(-time.Hour))},
				{Type: v1alpha1.RequestCancel, Rollback: true, User: "mallory\x1b[2J", Comment: "a\nb\tc", Time: metav1.NewTime(now.Add(-time.Minute))},
			},
		},
	}
	var out strings.Builder
	if err := show(&out, release, now); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\n\nAGE")
	const want = `  REQUEST               BY            STAGE   COMMENT
60m  Skip hoge,eu          bob           script  -
60s  Cancel and roll back  mallory^[[2J  -       a b c

To agree that it goes on: manifold release approve web-x2f -n shop
`
	if got != want {
		t.Errorf("shown is\n%s\nwant\n%s", got, want)
	}
}
