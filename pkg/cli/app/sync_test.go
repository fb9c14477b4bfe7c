package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

// released is a release of the application web that began so many hours ago, and has ended if its phase is one.
func released(name, revision string, phase v1alpha1.ReleasePhase, hours time.Duration) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, CreationTimestamp: ago(hours * time.Hour), Labels: map[string]string{v1alpha1.LabelApplication: "web"},
		},
		Spec: v1alpha1.ReleaseSpec{Application: "web", Revision: revision}, Status: v1alpha1.ReleaseStatus{Phase: phase},
	}
}

// at is an application whose newest revision is web-v8, and whose live one is this.
func at(live string) *v1alpha1.Application {
	return application(v1alpha1.ApplicationSpec{}, v1alpha1.ApplicationStatus{LatestRevision: "web-v8", LiveRevision: live})
}

// naming gives what is created with a generated name a name, and a release that is made the phase in which it ends.
func naming(client *fake.Clientset, ends v1alpha1.ReleasePhase) {
	client.PrependReactor("create", "releases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(clienttesting.CreateActionImpl); ok && create.Subresource == "" {
			release := create.Object.(*v1alpha1.Release)
			release.Name, release.Status.Phase = release.GenerateName+"new", ends
		}
		return false, nil, nil
	})
}

func TestSync(t *testing.T) {
	suspended := at("web-v7")
	suspended.Spec.Suspend = true
	fresh := at("")
	fresh.Status.LatestRevision = ""
	fresh.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ApplicationRendered, Status: metav1.ConditionFalse, Reason: "NotAllowed", Message: "a ClusterRole"}}
	for name, test := range map[string]struct {
		application *v1alpha1.Application
		options     SyncOptions
		ends        v1alpha1.ReleasePhase
		want        v1alpha1.ReleaseSpec
		wantOut     string
		wantErrOut  string
		wantError   string
	}{
		"the newest revision": {
			application: at("web-v7"), want: v1alpha1.ReleaseSpec{Revision: "web-v8"}, wantOut: "release/web-new created: web-v8 of application web\n",
		},
		"another one, by its number": {
			application: at("web-v7"), options: SyncOptions{Revision: "v7", Targets: []string{"eu"}, Strategy: "QuickSync", Message: "again"},
			want: v1alpha1.ReleaseSpec{
				Revision: "web-v7", Targets: []string{"eu"}, Strategy: v1alpha1.StrategyQuickSync, TriggeredBy: v1alpha1.ReleaseTrigger{Message: "again"},
			},
			wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"one that waits": {
			application: suspended, want: v1alpha1.ReleaseSpec{Revision: "web-v8"}, wantOut: "release/web-new created: web-v8 of application web\n",
			wantErrOut: "Warning: application \"web\" is suspended: the release waits until spec.suspend is unset\n",
		},
		"to its end": {
			application: at("web-v7"), options: SyncOptions{patience: patience{Wait: true}}, ends: v1alpha1.ReleaseSucceeded,
			want: v1alpha1.ReleaseSpec{Revision: "web-v8"}, wantOut: "application/web runs web-v8\n",
			wantErrOut: "release/web-new created\nrelease web-new Succeeded\n",
		},
		"to a bad end": {
			application: at("web-v7"), options: SyncOptions{patience: patience{Wait: true}}, ends: v1alpha1.ReleaseFailed,
			want: v1alpha1.ReleaseSpec{Revision: "web-v8"}, wantErrOut: "release/web-new created\nrelease web-new Failed\n",
			wantError: "release web-new of web-v8: Failed",
		},
		"for as long as one likes to wait": {
			application: at("web-v7"), options: SyncOptions{patience: patience{Wait: true, Timeout: time.Millisecond}}, ends: v1alpha1.ReleaseRunning,
			want: v1alpha1.ReleaseSpec{Revision: "web-v8"}, wantError: "release web-new has not ended after 1ms and goes on, it is Running: manifold release get web-new -n shop",
		},
		"an unknown target":   {application: at(""), options: SyncOptions{Targets: []string{"mars"}}, wantError: `revision "web-v8" has no target "mars"; it has hoge, eu`},
		"an unknown revision": {application: at(""), options: SyncOptions{Revision: "web-v99"}, wantError: `revision "web-v99" of application "web" is not kept; "manifold app history web"`},
		"another's revision":  {application: at(""), options: SyncOptions{Revision: "other-v1"}, wantError: `"other-v1" is no revision of application "web"`},
		"none yet":            {application: fresh, wantError: `application "web" has no revision yet: Rendered=False (NotAllowed): a ClusterRole`},
	} {
		t.Run(name, func(t *testing.T) {
			targets := []string{"hoge", "eu"}
			client := fake.NewSimpleClientset(test.application, holding(t, revision("web", 7), targets, nil, nil), holding(t, revision("web", 8), targets, nil, nil))
			naming(client, test.ends)
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			o := test.options
			o.IOStreams, o.subject = streams, subject{Namespace: "shop", Name: "web", client: client}
			err := o.Run(t.Context())
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Fatalf("error %v, want %q", err, test.wantError)
			}
			if out.String() != test.wantOut || test.wantErrOut != "" && errOut.String() != test.wantErrOut {
				t.Errorf("printed %q and %q, want %q and %q", out.String(), errOut.String(), test.wantOut, test.wantErrOut)
			}
			checkMade(t, client, test.want)
		})
	}
}

// checkMade compares the one release that was made, none if want is empty.
func checkMade(t *testing.T, client *fake.Clientset, want v1alpha1.ReleaseSpec) {
	t.Helper()
	made, err := client.DeliveryV1alpha1().Releases("shop").Get(context.WithoutCancel(t.Context()), "web-new", metav1.GetOptions{})
	if want.Revision == "" {
		if err == nil {
			t.Errorf("a release was made: %+v", made.Spec)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want.Application, want.TriggeredBy.Cause = "web", v1alpha1.CauseCommand
	if diff := cmp.Diff(want, made.Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if owners := made.OwnerReferences; len(owners) != 1 || owners[0].UID != "web" || owners[0].Kind != "Application" {
		t.Errorf("it belongs to %+v, want the application", owners)
	}
}

func TestWhatMakesNoSenseIsNotReleased(t *testing.T) {
	for name, test := range map[string]struct {
		options SyncOptions
		want    string
	}{
		"an unknown strategy":   {SyncOptions{Strategy: "Slowly"}, `there is no strategy "Slowly"; use QuickSync or Pipeline`},
		"a negative time":       {SyncOptions{patience: patience{Wait: true, Timeout: -1}}, "--timeout must not be less than zero"},
		"a time without a wait": {SyncOptions{patience: patience{Timeout: 1}}, "--timeout is for --wait"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.options.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// partly is a release to one target alone.
func partly(release *v1alpha1.Release) *v1alpha1.Release {
	release.Spec.Targets = []string{"eu"}
	return release
}

func TestRollback(t *testing.T) {
	for name, test := range map[string]struct {
		live      string
		to        string
		releases  []runtime.Object
		want      v1alpha1.ReleaseSpec
		asked     string
		wantOut   string
		wantError string
	}{
		"to what ran before": {
			live: "web-v8", releases: []runtime.Object{
				released("web-c", "web-v8", v1alpha1.ReleaseSucceeded, 1), released("web-b", "web-v6", v1alpha1.ReleaseFailed, 2),
				released("web-a", "web-v7", v1alpha1.ReleaseSucceeded, 3),
			},
			want: v1alpha1.ReleaseSpec{Revision: "web-v7", RollbackOf: "web-c"}, wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"past what is not kept": {
			live: "web-v8", releases: []runtime.Object{
				released("web-c", "web-v8", v1alpha1.ReleaseSucceeded, 1), released("web-b", "web-v5", v1alpha1.ReleaseSucceeded, 2),
				released("web-a", "web-v7", v1alpha1.ReleaseSucceeded, 3),
			},
			want: v1alpha1.ReleaseSpec{Revision: "web-v7", RollbackOf: "web-c"}, wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"to what the others run, where some have got something since": {
			live: "web-v7", releases: []runtime.Object{
				partly(released("web-c", "web-v8", v1alpha1.ReleaseSucceeded, 1)), released("web-b", "web-v7", v1alpha1.ReleaseSucceeded, 2),
				released("web-a", "web-v6", v1alpha1.ReleaseSucceeded, 3),
			},
			want: v1alpha1.ReleaseSpec{Revision: "web-v7", RollbackOf: "web-c"}, wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"past what only some have got": {
			live: "web-v8", releases: []runtime.Object{
				partly(released("web-d", "web-v8", v1alpha1.ReleaseSucceeded, 1)), released("web-c", "web-v8", v1alpha1.ReleaseSucceeded, 2),
				partly(released("web-b", "web-v6", v1alpha1.ReleaseSucceeded, 3)), released("web-a", "web-v7", v1alpha1.ReleaseSucceeded, 4),
			},
			want: v1alpha1.ReleaseSpec{Revision: "web-v7", RollbackOf: "web-c"}, wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"to a revision by its name": {
			live: "web-v8", to: "web-v7", want: v1alpha1.ReleaseSpec{Revision: "web-v7"}, wantOut: "release/web-new created: web-v7 of application web\n",
		},
		"of what is on its way": {
			live: "web-v7", releases: []runtime.Object{released("web-c", "web-v8", v1alpha1.ReleaseRunning, 1)},
			asked: "web-c", wantOut: "release/web-c is being taken back\n",
		},
		"of what is being taken back already": {
			live: "web-v7", releases: []runtime.Object{released("web-c", "web-v8", v1alpha1.ReleaseRollingBack, 1)}, wantOut: "release/web-c is being taken back\n",
		},
		"to nothing": {
			live: "web-v8", releases: []runtime.Object{released("web-c", "web-v8", v1alpha1.ReleaseSucceeded, 1)},
			wantError: `no revision is kept that was released with success before web-v8; name one with --to`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewSimpleClientset(append(test.releases, at(test.live), revision("web", 6), revision("web", 7), revision("web", 8))...)
			naming(client, v1alpha1.ReleasePending)
			asked := ""
			client.PrependReactor("create", "releases/rollback", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked = action.(clienttesting.CreateActionImpl).Name
				return true, &v1alpha1.Release{}, nil
			})
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &RollbackOptions{IOStreams: streams, To: test.to, subject: subject{Namespace: "shop", Name: "web", client: client}}
			err := o.Run(t.Context())
			if (err == nil) != (test.wantError == "") || err != nil && !strings.Contains(err.Error(), test.wantError) {
				t.Fatalf("error %v, want %q", err, test.wantError)
			}
			if out.String() != test.wantOut || asked != test.asked {
				t.Errorf("printed %q and asked %q to be taken back, want %q and %q", out.String(), asked, test.wantOut, test.asked)
			}
			if test.want.Revision != "" {
				test.want.Strategy = v1alpha1.StrategyQuickSync
			}
			checkMade(t, client, test.want)
		})
	}
}
