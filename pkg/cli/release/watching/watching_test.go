package watching

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/release/progress"
)

func in(phase v1alpha1.ReleasePhase, message string) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x2f", UID: "1"},
		Spec:       v1alpha1.ReleaseSpec{Application: "web", Revision: "web-v8"},
		Status:     v1alpha1.ReleaseStatus{Phase: phase, Message: message},
	}
}

// waiting is a release whose stage waits for somebody to agree.
func waiting(message string) *v1alpha1.Release {
	out := in(v1alpha1.ReleaseRunning, "")
	out.Status.Plan = &v1alpha1.ReleasePlan{Stages: []v1alpha1.Stage{{ID: "agree", Name: v1alpha1.StageWaitApproval}}}
	out.Status.Stages = []v1alpha1.StageStatus{{ID: "agree", Name: v1alpha1.StageWaitApproval, Phase: v1alpha1.StageRunning, Message: message}}
	return out
}

// step is told of every line that is written, and changes the world then.
type step struct {
	bytes.Buffer
	then func(line string)
}

func (s *step) Write(p []byte) (int, error) {
	s.then(string(p))
	return s.Buffer.Write(p)
}

func TestReleasesAreFollowedToTheirEnd(t *testing.T) {
	other := in(v1alpha1.ReleaseRunning, "")
	other.UID = "2"
	for name, test := range map[string]struct {
		at              []runtime.Object
		next            *v1alpha1.Release
		remove          bool
		want, wantError string
	}{
		"to success": {
			at: []runtime.Object{in(v1alpha1.ReleaseRunning, "")}, next: in(v1alpha1.ReleaseSucceeded, ""),
			want: "release web-x2f Running\nrelease web-x2f Succeeded\n",
		},
		"to a failure, which is an error": {
			at: []runtime.Object{in(v1alpha1.ReleaseRunning, "")}, next: in(v1alpha1.ReleaseFailed, "no cluster is left"),
			want: "release web-x2f Running\nrelease web-x2f Failed: no cluster is left\n", wantError: "Failed: no cluster is left",
		},
		"and they say once how to agree": {
			at: []runtime.Object{waiting("0 of 1")}, next: in(v1alpha1.ReleaseSucceeded, ""),
			want: "release web-x2f Running\n… stage agree WAIT_APPROVAL Running: 0 of 1\nTo agree that it goes on: manifold release approve web-x2f -n shop\nrelease web-x2f Succeeded\n",
		},
		"no further than one that has ended": {at: []runtime.Object{in(v1alpha1.ReleaseSucceeded, "")}, want: "release web-x2f Succeeded\n"},
		"not if there is none":               {wantError: `there is no release "web-x2f" in namespace "shop"`},
		"not if it is deleted": {
			at: []runtime.Object{in(v1alpha1.ReleaseRunning, "")}, remove: true, want: "release web-x2f Running\n",
			wantError: `release "web-x2f" has been deleted meanwhile; it was Running`,
		},
		"not if it has become another": {
			at: []runtime.Object{in(v1alpha1.ReleaseRunning, "")}, next: other, want: "release web-x2f Running\n",
			wantError: `release "web-x2f" has been deleted meanwhile`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(test.at...)
			releases := client.DeliveryV1alpha1().Releases("shop")
			out := &step{then: func(line string) {
				if line != "release web-x2f Running\n" {
					return
				}
				var err error
				if test.next != nil {
					_, err = releases.Update(t.Context(), test.next, metav1.UpdateOptions{})
				}
				if test.remove {
					err = releases.Delete(t.Context(), "web-x2f", metav1.DeleteOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := New(client, out).Follow(ctx, "shop", "web-x2f")
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Errorf("error %v, want %q", err, test.wantError)
			}
			if out.String() != test.want {
				t.Errorf("written is %q, want %q", out.String(), test.want)
			}
		})
	}
}

func TestFollowingEndsWhenItIsInterrupted(t *testing.T) {
	client := fake.NewSimpleClientset(in(v1alpha1.ReleaseRunning, ""))
	ctx, interrupt := context.WithCancel(t.Context())
	err := New(client, &step{then: func(string) { interrupt() }}).Follow(ctx, "shop", "web-x2f")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
}

func TestAScreenHasRoomForHowToAgree(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for rows, left := range map[int]int{0: 0, 40: 38, 2: 1} {
		want := append(progress.Lines(waiting("0 of 1"), now, left), "", "To agree that it goes on: manifold release approve web-x2f -n shop")
		if got := lines(waiting("0 of 1"), now, rows); !slices.Equal(got, want) {
			t.Errorf("in %d rows there are %q, want %q", rows, got, want)
		}
	}
	if got := strings.Join(lines(in(v1alpha1.ReleaseRunning, ""), now, 0), " "); strings.Contains(got, "approve") {
		t.Errorf("a release that waits for nobody has %q", got)
	}
}
