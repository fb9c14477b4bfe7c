package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/internal/outbound"
)

var begin = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func at(minutes int) *metav1.Time {
	return &metav1.Time{Time: begin.Add(time.Duration(minutes) * time.Minute)}
}

func keys(notices []notice) []string {
	var out []string
	for _, n := range notices {
		out = append(out, strings.TrimSpace(n.key()+" "+n.message))
	}
	return out
}

func TestNoticesOfAReleaseFollowFromItsStatus(t *testing.T) {
	agree := v1alpha1.Stage{ID: "agree", Name: v1alpha1.StageWaitApproval, With: &runtime.RawExtension{Raw: []byte(`{"approvers":["group:sre","ann"],"minApproverNum":2}`)}}
	for name, test := range map[string]struct {
		status v1alpha1.ReleaseStatus
		want   []string
	}{
		"it has not begun": {status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleasePending}},
		"it waits for approval": {
			status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRunning, StartTime: at(0), Plan: &v1alpha1.ReleasePlan{Stages: []v1alpha1.Stage{agree}}, Stages: []v1alpha1.StageStatus{
				{ID: "agree", Name: v1alpha1.StageWaitApproval, Phase: v1alpha1.StageRunning, StartTime: at(1)}, {ID: "later", Name: v1alpha1.StageWaitApproval},
			}},
			want: []string{"ReleaseStarted@1767322800", "ApprovalRequired/agree@1767322860 2 of group:sre, ann"},
		},
		"it was approved, and has succeeded": {
			status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSucceeded, StartTime: at(0), EndTime: at(3), Stages: []v1alpha1.StageStatus{
				{ID: "agree", Name: v1alpha1.StageWaitApproval, Phase: v1alpha1.StageSucceeded, StartTime: at(1), EndTime: at(2), Approvers: []string{"ann", "bob"}},
			}},
			want: []string{"ReleaseStarted@1767322800", "Approved/agree@1767322920 approved by ann, bob", "ReleaseSucceeded@1767322980"},
		},
		"it has failed": {
			status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseFailed, StartTime: at(0), EndTime: at(3), Message: "no \x1b[31mway"},
			want:   []string{"ReleaseStarted@1767322800", "ReleaseFailed@1767322980 no ^[[31mway"},
		},
		"it has failed and was taken back": {
			status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRolledBack, EndsAs: v1alpha1.ReleaseFailed, StartTime: at(0), EndTime: at(3), Stages: []v1alpha1.StageStatus{
				{ID: "rollback", Name: v1alpha1.StageRollback, Phase: v1alpha1.StageSucceeded, StartTime: at(2)},
			}},
			want: []string{"ReleaseStarted@1767322800", "ReleaseFailed/rollback@1767322920 it is being taken back:", "ReleaseRolledBack@1767322980"},
		},
		"somebody has taken it back": {
			status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseRolledBack, EndsAs: v1alpha1.ReleaseCancelled, StartTime: at(0), EndTime: at(3), Stages: []v1alpha1.StageStatus{
				{ID: "rollback", Name: v1alpha1.StageRollback, Phase: v1alpha1.StageSucceeded, StartTime: at(2)},
			}},
			want: []string{"ReleaseStarted@1767322800", "ReleaseRolledBack@1767322980"},
		},
		"it was cancelled":  {status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseCancelled, EndTime: at(3)}, want: []string{"ReleaseCancelled@1767322980"}},
		"it was superseded": {status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseSuperseded, EndTime: at(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, keys(ofRelease(&v1alpha1.Release{Status: test.status}))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNoticesOfAnApplicationFollowFromItsTargets(t *testing.T) {
	app := &v1alpha1.Application{Status: v1alpha1.ApplicationStatus{Targets: []v1alpha1.TargetStatus{
		{Name: "eu", Sync: v1alpha1.OutOfSync, Health: v1alpha1.Degraded, Message: "a field"}, {Name: "us", Sync: v1alpha1.Synced, Health: v1alpha1.Healthy}, {Name: "asia", Sync: v1alpha1.SyncUnknown},
	}}}
	for phase, want := range map[v1alpha1.ReleasePhase][]string{
		v1alpha1.ReleaseSucceeded: {"OutOfSync/eu a field", "Degraded/eu a field"}, v1alpha1.ReleaseRunning: {"Degraded/eu a field"}, "": {"OutOfSync/eu a field", "Degraded/eu a field"},
	} {
		app.Status.ReleasePhase = phase
		if diff := cmp.Diff(want, keys(ofApplication(app))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", phase, diff)
		}
	}
}

// A change in the logical cluster that reaches no target is told by the application itself.
func TestAChangeAboveIsToldOnce(t *testing.T) {
	for sync, want := range map[v1alpha1.SyncStatus][]string{v1alpha1.Synced: {"OutOfSync a field"}, v1alpha1.OutOfSync: {"OutOfSync/eu a field in eu"}} {
		app := &v1alpha1.Application{Status: v1alpha1.ApplicationStatus{
			Targets:    []v1alpha1.TargetStatus{{Name: "eu", Sync: sync, Message: "a field in eu"}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ApplicationInSync, Status: metav1.ConditionFalse, Message: "a field"}},
		}}
		if diff := cmp.Diff(want, keys(ofApplication(app))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sync, diff)
		}
		app.Status.ReleasePhase = v1alpha1.ReleaseRunning
		if got := keys(ofApplication(app)); len(got) > 0 {
			t.Errorf("while a release is on its way it tells %v", got)
		}
	}
}

// receiver is a server that is told, and may be told to fail.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	fail bool
	got  []*http.Request
	body []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, _ := io.ReadAll(request.Body)
		r.got, r.body = append(r.got, request), append(r.body, string(body))
		if r.fail {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// events are those that were sent, and forgets them.
func (r *receiver) events(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, body := range r.body {
		var p payload
		if err := json.Unmarshal([]byte(body), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(p.Event+" "+p.Release+p.Target))
	}
	r.body, r.got = nil, nil
	slices.Sort(out)
	return out
}

// world is what outlives controllers. Its cache shows what was written only when it catches up.
type world struct {
	client  *fake.Clientset
	factory externalversions.SharedInformerFactory
	secrets cache.Indexer
	clock   *clocktesting.FakeClock
	events  *record.FakeRecorder
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{
		client: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(begin.Add(5 * time.Minute)), events: record.NewFakeRecorder(100),
		secrets: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
	w.factory = externalversions.NewSharedInformerFactory(w.client, 0)
	w.catchUp(t)
	return w
}

func (w *world) secret(t *testing.T, name, url, key string) {
	t.Helper()
	if err := w.secrets.Update(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name}, Data: map[string][]byte{"url": []byte(url + "\n"), "hmac-key": []byte(key)}}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) catchUp(t *testing.T) {
	t.Helper()
	apps, err := w.client.DeliveryV1alpha1().Applications("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range apps.Items {
		if err := w.factory.Delivery().V1alpha1().Applications().Informer().GetIndexer().Update(&apps.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	releases, err := w.client.DeliveryV1alpha1().Releases("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range releases.Items {
		if err := w.factory.Delivery().V1alpha1().Releases().Informer().GetIndexer().Update(&releases.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) change(t *testing.T, change func(*v1alpha1.Application)) {
	t.Helper()
	app, err := w.client.DeliveryV1alpha1().Applications("web").Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(app)
	if _, err := w.client.DeliveryV1alpha1().Applications("web").Update(t.Context(), app, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.catchUp(t)
}

func (w *world) controller(t *testing.T, policy outbound.Policy) *Controller {
	t.Helper()
	c, err := New(Options{
		Informers: w.factory, Secrets: corelisters.NewSecretLister(w.secrets), SecretsSynced: func() bool { return true }, Client: w.client, Recorder: w.events,
		Policy: policy, Clock: w.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) writes() (n int) {
	for _, action := range w.client.Actions() {
		if _, is := action.(clienttesting.PatchAction); is {
			n++
		}
	}
	w.client.ClearActions()
	return n
}

var (
	anywhere = outbound.Policy{PlainHTTP: true, Allow: func(net.IP) bool { return true }}
	key      = types.NamespacedName{Namespace: "web", Name: "shop"}
)

func application(notifications ...v1alpha1.Notification) *v1alpha1.Application {
	return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shop", UID: "app"}, Spec: v1alpha1.ApplicationSpec{Notifications: notifications}}
}

func hook(name string, events ...v1alpha1.NotificationEvent) v1alpha1.Notification {
	return v1alpha1.Notification{Name: name, Type: v1alpha1.NotificationWebhook, Events: events, SecretRef: v1alpha1.SecretReference{Name: name}}
}

func failed(name string) *v1alpha1.Release {
	return &v1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name, UID: types.UID(name)}, Spec: v1alpha1.ReleaseSpec{Application: "shop", Revision: "shop-v2"},
		Status: v1alpha1.ReleaseStatus{Phase: v1alpha1.ReleaseFailed, StartTime: at(0), EndTime: at(3), Message: "<!channel> & more"},
	}
}

func TestEachIsToldOnceOfWhatItWants(t *testing.T) {
	all, some := newReceiver(t), newReceiver(t)
	other := failed("mail-1")
	other.Spec.Application = "mail"
	w := newWorld(t, application(hook("all"), hook("some", v1alpha1.EventReleaseFailed)), failed("shop-1"), other)
	w.secret(t, "all", all.URL, "")
	w.secret(t, "some", some.URL, "")
	c := w.controller(t, anywhere)
	for range 3 { // before a cache shows what was written
		if err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.writes(); got > 3 {
		t.Errorf("%d writes", got)
	}
	w.catchUp(t)
	for _, c := range []*Controller{c, w.controller(t, anywhere)} { // and after a restart
		if err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"ReleaseFailed shop-1", "ReleaseStarted shop-1"}, all.events(t)); diff != "" {
		t.Errorf("all (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ReleaseFailed shop-1"}, some.events(t)); diff != "" {
		t.Errorf("some (-want +got)\n%s", diff)
	}
	if got := w.writes(); got != 0 {
		t.Errorf("%d writes though nothing is new", got)
	}
}

func TestOneThatFailsIsTriedAgainAndTheOthersAreNot(t *testing.T) {
	good, bad := newReceiver(t), newReceiver(t)
	bad.fail = true
	w := newWorld(t, application(hook("bad", v1alpha1.EventReleaseFailed), hook("good", v1alpha1.EventReleaseFailed)), failed("shop-1"))
	w.secret(t, "good", good.URL, "")
	c := w.controller(t, anywhere)
	for _, says := range []string{"there is no Secret web/bad", "status 502"} {
		if err := c.sync(t.Context(), key); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one that says %q", err, says)
		}
		if event := <-w.events.Events; !strings.Contains(event, "NotificationFailed") || !strings.Contains(event, says) || strings.Contains(event, bad.URL) {
			t.Errorf("the event is %q", event)
		}
		// Whatever happens meanwhile, it is left alone for a time.
		if err := c.sync(t.Context(), key); err == nil || !strings.Contains(err.Error(), "later") {
			t.Errorf("error %v, want it to be left alone", err)
		}
		w.secret(t, "bad", bad.URL, "")
		w.clock.Step(time.Minute)
		w.catchUp(t)
	}
	if got := len(bad.events(t)); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
	bad.fail = false
	if err := c.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ReleaseFailed shop-1"}, bad.events(t)); diff != "" {
		t.Errorf("bad (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ReleaseFailed shop-1"}, good.events(t)); diff != "" {
		t.Errorf("good (-want +got)\n%s", diff)
	}
}

func TestAConditionTellsThatANoticeCannotBeSent(t *testing.T) {
	says := func(w *world) string {
		t.Helper()
		app, err := w.client.DeliveryV1alpha1().Applications("web").Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationNotified)
		if found == nil {
			return ""
		}
		return string(found.Status) + " " + found.Message
	}
	r := newReceiver(t)
	w := newWorld(t, application(hook("ops", v1alpha1.EventReleaseFailed)), failed("shop-1"))
	w.secret(t, "ops", r.URL, "")
	nowhere := outbound.Policy{PlainHTTP: true, Allow: func(net.IP) bool { return false }}
	c := w.controller(t, nowhere)
	for range 2 { // it is left alone the second time
		if err := c.sync(t.Context(), key); err == nil {
			t.Error("no error")
		}
		if got := says(w); !strings.HasPrefix(got, `False notification "ops" of ReleaseFailed`) || strings.Contains(got, r.URL) {
			t.Errorf("says %q", got)
		}
		w.catchUp(t)
	}
	c = w.controller(t, anywhere) // as after a restart with another flag
	if err := c.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := says(w); !strings.HasPrefix(got, "True ") || len(r.events(t)) != 1 {
		t.Errorf("says %q after the notice has arrived", got)
	}
	w.catchUp(t)
	w.writes()
	if err := c.sync(t.Context(), key); err != nil || w.writes() != 0 {
		t.Errorf("error %v, and writes though nothing is new", err)
	}
}

func TestANoticeThatCannotBeSentIsGivenUp(t *testing.T) {
	bad := newReceiver(t)
	bad.fail = true
	w := newWorld(t, application(hook("bad", v1alpha1.EventReleaseFailed)), failed("shop-1"))
	w.secret(t, "bad", bad.URL, "")
	c := w.controller(t, anywhere)
	if err := c.sync(t.Context(), key); err == nil {
		t.Error("no error")
	}
	<-w.events.Events
	w.clock.Step(2 * time.Hour)
	if err := c.sync(t.Context(), key); err != nil {
		t.Error(err)
	}
	if event := <-w.events.Events; !strings.Contains(event, "NotificationGivenUp") {
		t.Errorf("the event is %q", event)
	}
	w.catchUp(t)
	if err := c.sync(t.Context(), key); err != nil || len(bad.events(t)) != 2 {
		t.Errorf("error %v, want no more attempts", err)
	}
}

func TestWhatIsLongPastIsNotTold(t *testing.T) {
	all := newReceiver(t)
	w := newWorld(t, application(hook("all")), failed("shop-1"))
	w.secret(t, "all", all.URL, "")
	w.clock.Step(time.Hour)
	if err := w.controller(t, anywhere).sync(t.Context(), key); err != nil || len(all.events(t)) != 0 {
		t.Errorf("error %v, want nothing to be told", err)
	}
}

func TestWhatComesAndGoesIsToldWhenItComes(t *testing.T) {
	all := newReceiver(t)
	w := newWorld(t, application(hook("all")))
	w.secret(t, "all", all.URL, "")
	c := w.controller(t, anywhere)
	sync := v1alpha1.OutOfSync
	step := func(now v1alpha1.SyncStatus, later time.Duration, want ...string) {
		t.Helper()
		sync = now
		w.change(t, func(app *v1alpha1.Application) {
			app.Status.Targets = []v1alpha1.TargetStatus{{Name: "eu", Sync: sync}}
		})
		if err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, all.events(t)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", now, diff)
		}
		w.clock.Step(later)
		w.catchUp(t)
	}
	step(v1alpha1.OutOfSync, time.Minute, "OutOfSync eu")
	step(v1alpha1.OutOfSync, time.Minute)
	step(v1alpha1.Synced, time.Minute)
	step(v1alpha1.OutOfSync, time.Minute) // so soon that it tells nothing new
	step(v1alpha1.Synced, 10*time.Minute)
	step(v1alpha1.Synced, time.Minute)
	step(v1alpha1.OutOfSync, time.Minute, "OutOfSync eu")
}

func TestFormsOfNotices(t *testing.T) {
	r := newReceiver(t)
	slack := hook("slack", v1alpha1.EventReleaseFailed)
	slack.Type = v1alpha1.NotificationSlack
	for name, test := range map[string]struct {
		to        v1alpha1.Notification
		want      string
		signature string
	}{
		"webhook": {
			to: hook("hook", v1alpha1.EventReleaseFailed), signature: "sha256=",
			want: `{"id":"%s","event":"ReleaseFailed","time":"2026-01-02T03:03:00Z","namespace":"web","application":"shop","release":"shop-1","revision":"shop-v2","phase":"Failed","message":"\u003c!channel\u003e \u0026 more"}`,
		},
		"slack": {
			to: slack,
			want: `{"text":"ReleaseFailed web/shop","attachments":[{"color":"danger","fallback":"ReleaseFailed web/shop","text":"\u0026lt;!channel\u0026gt; \u0026amp; more",` +
				`"fields":[{"title":"Release","value":"shop-1","short":true},{"title":"Revision","value":"shop-v2","short":true}],"blocks":null,"ts":1767322980}],` +
				`"replace_original":false,"delete_original":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, application(test.to), failed("shop-1"))
			w.secret(t, test.to.Name, r.URL+"/services/T0", "key")
			if err := w.controller(t, anywhere).sync(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if len(r.got) != 1 || r.got[0].Method != http.MethodPost || r.got[0].URL.Path != "/services/T0" {
				t.Fatalf("got %+v", r.got)
			}
			headers, body := r.got[0].Header, r.body[0]
			r.got, r.body = nil, nil
			want := test.want
			if strings.Contains(want, "%s") {
				want = fmt.Sprintf(want, headers.Get(HeaderID))
			}
			if body != want {
				t.Errorf("the body is\n%s, want\n%s", body, want)
			}
			if got := headers.Get(HeaderSignature); test.signature != "" && got != signature([]byte("key"), []byte(body)) || test.signature == "" && got != "" {
				t.Errorf("the signature is %q", got)
			}
		})
	}
	// As openssl dgst -sha256 -hmac key has it.
	if got := signature([]byte("key"), []byte("The quick brown fox jumps over the lazy dog")); got != "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8" {
		t.Errorf("the signature is %q", got)
	}
}

func TestOurOwnMachineIsNotCalledNorWhereAnAnswerLeads(t *testing.T) {
	inside := newReceiver(t)
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	for name, test := range map[string]struct {
		url    string
		policy outbound.Policy
		says   string
	}{
		"loopback":          {url: inside.URL, policy: outbound.Policy{PlainHTTP: true}, says: "may not be called"},
		"http":              {url: inside.URL, says: "use https"},
		"a redirect":        {url: outside.URL, policy: anywhere, says: "status 307"},
		"a file":            {url: "file:///etc/passwd", policy: anywhere, says: "must begin with"},
		"nothing":           {url: "", policy: anywhere, says: "has no url"},
		"what is no URL":    {url: "https://\x7f", policy: anywhere, says: "control characters"},
		"nobody that hears": {url: "http://127.0.0.1:1/s3cret", policy: anywhere, says: "refused"},
	} {
		for _, form := range []v1alpha1.NotificationType{v1alpha1.NotificationWebhook, v1alpha1.NotificationSlack} {
			t.Run(name+" by "+string(form), func(t *testing.T) {
				to := hook("a", v1alpha1.EventReleaseFailed)
				to.Type = form
				w := newWorld(t, application(to), failed("shop-1"))
				w.secret(t, "a", test.url, "")
				err := w.controller(t, test.policy).sync(t.Context(), key)
				if err == nil || !strings.Contains(err.Error(), test.says) || len(inside.events(t)) != 0 || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error %v, want one that says %q, and no call", err, test.says)
				}
			})
		}
	}
}

func TestMarksThatAreNoneCountForNothing(t *testing.T) {
	for _, written := range []string{"", "null", "[]", `{"a":1}`, "{"} {
		if got := readMarks(written); len(got) != 0 || got == nil {
			t.Errorf("%q is read as %v", written, got)
		}
	}
}
