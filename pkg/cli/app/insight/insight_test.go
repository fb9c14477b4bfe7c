package insight

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/output"
	"github.com/manifold-dev/manifold/pkg/delivery/insight"
)

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

func application(namespace, name, team string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"team": team}},
		Spec:       v1alpha1.ApplicationSpec{ReleaseHistoryLimit: ptr.To(int32(3))},
	}
}

func release(namespace, application, name, revision string, phase v1alpha1.ReleasePhase, ended time.Duration) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelApplication: application}},
		Spec:       v1alpha1.ReleaseSpec{Application: application, Revision: revision},
		Status:     v1alpha1.ReleaseStatus{Phase: phase, EndTime: ago(ended)},
	}
}

func revision(namespace, application, name string, committed time.Duration) *v1alpha1.ApplicationRevision {
	return &v1alpha1.ApplicationRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelApplication: application}},
		Spec:       v1alpha1.ApplicationRevisionSpec{Application: application, Origin: &v1alpha1.Origin{Time: ago(committed)}},
	}
}

const (
	day  = 24 * time.Hour
	hour = time.Hour
)

// shop has two applications in its namespace, and one in another.
func shop() []runtime.Object {
	return []runtime.Object{
		application("shop", "web", "front"), application("shop", "cart", "back"), application("other", "web", "front"),
		release("shop", "web", "web-1", "web-v1", v1alpha1.ReleaseSucceeded, 3*day), revision("shop", "web", "web-v1", 3*day+2*hour),
		release("shop", "web", "web-2", "web-v2", v1alpha1.ReleaseFailed, 2*day),
		release("shop", "web", "web-3", "web-v3", v1alpha1.ReleaseSucceeded, 2*day-hour), revision("shop", "web", "web-v3", 2*day+3*hour),
		release("shop", "cart", "cart-1", "cart-v1", v1alpha1.ReleaseFailed, day),
		release("other", "web", "web-1", "web-v1", v1alpha1.ReleaseSucceeded, 40*day),
	}
}

func run(t *testing.T, o *Options) string {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	o.IOStreams, o.client = streams, fake.NewSimpleClientset(shop()...)
	if o.Since == 0 {
		o.Since = age(30 * day)
	}
	if err := o.Run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(out.String(), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func TestFiguresOfApplicationsAndOfAllTogether(t *testing.T) {
	want := `APPLICATION DEPLOYMENTS PER DAY FAILED LEAD TIME TIME TO RESTORE
shop/cart 1 0.03 1 (100%) - -, 1 last
shop/web 3 0.10 1 (33%) 3h 60m
all 4 0.13 2 (50%) 3h 60m, 1 last

shop/web: releases that ended before 2026-03-07T12:00:00Z are not kept, as its spec.releaseHistoryLimit says; they are not counted.`
	if got := run(t, &Options{Namespace: "shop"}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestASelectorSelectsInAllNamespaces(t *testing.T) {
	got := run(t, &Options{Namespace: "shop", AllNamespaces: true, Selector: "team=front"})
	if !strings.Contains(got, "other/web 0 0.00 0 - -") || !strings.Contains(got, "shop/web 3 ") || strings.Contains(got, "cart") {
		t.Errorf("got:\n%s\nwant the two of the team, of which one had no release in the time", got)
	}
}

func TestPeriodsAreOfAllThatIsShown(t *testing.T) {
	want := `APPLICATION DEPLOYMENTS PER DAY FAILED LEAD TIME TIME TO RESTORE
shop/web 2 1.00 1 (50%) 4h 60m

BEGINS DEPLOYMENTS PER DAY FAILED LEAD TIME TIME TO RESTORE
2026-03-08 2 4.00 1 (50%) 4h 60m
2026-03-09 0 0.00 0 - -
2026-03-10 0 0.00 0 - -`
	if got := run(t, &Options{Namespace: "shop", Names: []string{"web", "web"}, Since: age(2 * day), By: unit(insight.Day)}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestAScriptReadsTheSameFigures(t *testing.T) {
	var got report
	if err := json.Unmarshal([]byte(run(t, &Options{Namespace: "shop", Names: []string{"web"}, Output: output.JSON, By: unit(insight.Month)})), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Applications) != 1 || got.Applications[0].Deployments != 3 || *got.Applications[0].LeadTimeSeconds != 3*3600 || got.Total.Failures != 1 || len(got.Periods) != 2 {
		t.Errorf("got %+v", got)
	}
	if got.Applications[0].KeptSince == nil || !got.Applications[0].KeptSince.Equal(now.Add(-3*day)) {
		t.Errorf("kept since %v, want the end of the oldest release", got.Applications[0].KeptSince)
	}
}

func TestNothingToShow(t *testing.T) {
	if got := run(t, &Options{Namespace: "empty"}); got != "No applications found." {
		t.Errorf("got %q", got)
	}
	o := &Options{Namespace: "shop", Names: []string{"absent"}, client: fake.NewSimpleClientset()}
	if err := o.Run(t.Context(), now); err == nil || !strings.Contains(err.Error(), `"absent" not found`) {
		t.Errorf("an application that is not there: %v", err)
	}
}

func TestFlagsRefuseWhatTheyCannotMean(t *testing.T) {
	for value, want := range map[string]string{"30d": "30d", "36h": "36h0m0s", "48h": "2d", "90m": "1h30m0s"} {
		var a age
		if err := a.Set(value); err != nil || a.String() != want {
			t.Errorf("--since %s: %s, %v, want %s", value, a.String(), err, want)
		}
	}
	for _, value := range []string{"", "d", "0d", "-3d", "0s", "-1h", "4000d", "99999999999d", "999999999999999999999d", "1y", "3", "1.5d"} {
		var a age
		if err := a.Set(value); err == nil {
			t.Errorf("--since %q is taken for %s", value, a.String())
		}
	}
	for value, ok := range map[string]bool{"day": true, "month": true, "": true, "week": false, "Day": false} {
		var u unit
		if err := u.Set(value); (err == nil) != ok {
			t.Errorf("--by %q: %v", value, err)
		}
	}
}
