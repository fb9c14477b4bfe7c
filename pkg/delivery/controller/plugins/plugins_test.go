package plugins

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	ourfake "github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/host"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/targets"
)

// fakeHost is told what to run, and says what a test has it say.
type fakeHost struct {
	specs   map[string]host.Spec
	seen    map[string]host.Seen
	removed []string
	kept    []string
	keeps   func()
	says    map[string]host.Status
	changed func(string)
}

func (f *fakeHost) Set(name string, spec host.Spec, seen host.Seen) {
	f.specs[name], f.seen[name] = spec, seen
}
func (f *fakeHost) Remove(name string) { f.removed = append(f.removed, name) }
func (f *fakeHost) Keep(names, checksums []string) error {
	f.kept = append(names, checksums...)
	f.keeps()
	return nil
}
func (f *fakeHost) Status(name string) (host.Status, bool) {
	out, known := f.says[name]
	return out, known
}
func (f *fakeHost) Changed(changed func(string)) { f.changed = changed }
func (f *fakeHost) Folder(name string) string    { return "/homes/" + name }

type world struct {
	*testing.T
	*Controller
	host   *fakeHost
	api    *ourfake.Clientset
	events *record.FakeRecorder
	own    externalversions.SharedInformerFactory
	kube   *fake.Clientset
	// kubeInformers are those of what Kubernetes itself has.
	kubeInformers informers.SharedInformerFactory
	clock         *testclock.FakePassiveClock
}

// newWorld has a host, or none.
func newWorld(t *testing.T, runs bool, plugins ...*v1alpha1.Plugin) *world {
	t.Helper()
	w := &world{T: t, events: record.NewFakeRecorder(100), host: &fakeHost{specs: map[string]host.Spec{}, seen: map[string]host.Seen{}, says: map[string]host.Status{}}}
	w.api = ourfake.NewClientset()
	w.own = externalversions.NewSharedInformerFactory(w.api, 0)
	w.kube, w.clock = fake.NewClientset(), testclock.NewFakePassiveClock(now)
	w.kubeInformers = informers.NewSharedInformerFactory(w.kube, 0)
	o := Options{
		Accounts: w.kubeInformers.Core().V1().ServiceAccounts(), Secrets: w.kubeInformers.Core().V1().Secrets(), Tokens: w.kube,
		Access:  targets.Access{Server: "https://127.0.0.1:6443", Authority: []byte("an authority"), Duration: time.Hour},
		Plugins: w.own.Delivery().V1alpha1().Plugins(), Clusters: w.own.Manifold().V1alpha1().Clusters(), Client: w.api.DeliveryV1alpha1(),
		Recorder: w.events, Clock: w.clock,
	}
	if runs {
		o.Host = w.host
	}
	var err error
	if w.Controller, err = New(o); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range plugins {
		if err := w.api.Tracker().Add(plugin); err != nil {
			t.Fatal(err)
		}
		if err := w.own.Delivery().V1alpha1().Plugins().Informer().GetIndexer().Add(plugin); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// step looks at a plugin, and returns what it shows then, which the caches see.
func (w *world) step(name string) v1alpha1.PluginStatus {
	w.Helper()
	if err := w.sync(w.Context(), name); err != nil {
		w.Fatal(err)
	}
	stored, err := w.api.DeliveryV1alpha1().Plugins().Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.own.Delivery().V1alpha1().Plugins().Informer().GetIndexer().Update(stored); err != nil {
		w.Fatal(err)
	}
	return stored.Status
}

// written counts the writes of statuses.
func (w *world) written() (n int) {
	for _, action := range w.api.Actions() {
		if action.GetVerb() == "update" && action.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

func (w *world) told() (out []string) {
	for {
		select {
		case event := <-w.events.Events:
			out = append(out, event)
		default:
			return out
		}
	}
}

func plugin(name string) *v1alpha1.Plugin {
	return &v1alpha1.Plugin{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}, Spec: v1alpha1.PluginSpec{URL: "file:///" + name, Sha256: strings.Repeat("a", 64)}}
}

func wantCondition(t *testing.T, of v1alpha1.PluginStatus, kind string, status metav1.ConditionStatus, reason, says string) {
	t.Helper()
	got := meta.FindStatusCondition(of.Conditions, kind)
	if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, says) {
		t.Errorf("condition %s is %+v, want %s, %s: %s", kind, got, status, reason, says)
	}
}

func TestAPluginShowsWhatTheHostSays(t *testing.T) {
	w := newWorld(t, true, plugin("a"))
	w.host.says["a"] = host.Status{Generation: 3, Reason: v1alpha1.PluginReasonStarting, Message: "the process has started"}
	wantCondition(t, w.step("a"), v1alpha1.PluginReady, metav1.ConditionFalse, v1alpha1.PluginReasonStarting, "the process has started")
	w.host.says["a"] = host.Status{
		Ready: true, Generation: 3, Reason: v1alpha1.PluginReasonAnswering, Message: "process 7 answers", Stages: []string{"A_SYNC"}, Services: []string{"Deployment"},
		Targets: []string{"east"}, Sha256: "aa", Started: now.Add(-time.Minute), Incarnation: 4, Restarts: 0, User: 59000,
	}
	got := w.step("a")
	wantCondition(t, got, v1alpha1.PluginReady, metav1.ConditionTrue, v1alpha1.PluginReasonAnswering, "process 7")
	wantCondition(t, got, v1alpha1.PluginIsolated, metav1.ConditionTrue, v1alpha1.PluginReasonOwnUser, "59000")
	wantCondition(t, got, v1alpha1.PluginStagesDistinct, metav1.ConditionTrue, v1alpha1.PluginReasonDistinct, "no other")
	if got.ObservedGeneration != 3 || got.Incarnation != 4 || !slices.Equal(got.Stages, []string{"A_SYNC"}) || !slices.Equal(got.Targets, []string{"east"}) || !got.StartTime.Time.Equal(now.Add(-time.Minute)) {
		t.Errorf("status %+v", got)
	}
	if events := w.told(); len(events) != 1 || !strings.Contains(events[0], "Normal Answering start 4 answers, and offers A_SYNC") {
		t.Errorf("told %q", events)
	}
	before := w.written()
	w.step("a")
	if w.written() != before || len(w.told()) > 0 {
		t.Error("what shows already is written again")
	}
	w.host.says["a"] = host.Status{
		Generation: 3, Reason: v1alpha1.PluginReasonExited, Message: "the process exited with code 0", Stages: []string{"A_SYNC"}, Started: now, Incarnation: 4, Restarts: 1,
		LastError: "the process exited with code 0", LastErrorAt: now,
	}
	got = w.step("a")
	wantCondition(t, got, v1alpha1.PluginIsolated, metav1.ConditionFalse, v1alpha1.PluginReasonServersUser, "start the server as root")
	if got.Restarts != 1 || got.LastError == "" || !got.LastErrorTime.Time.Equal(now) {
		t.Errorf("status %+v", got)
	}
	if events := w.told(); len(events) != 1 || !strings.Contains(events[0], "Warning Restarted start 4 failed or ended: the process exited with code 0") {
		t.Errorf("told %q", events)
	}
}

// What is known of a plugin survives a restart of the server, whose host begins with nothing.
func TestAPluginKeepsWhatIsKnownOfIt(t *testing.T) {
	of := plugin("a")
	of.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "x", v1alpha1.AnnotationRefetchAt: "y"}
	of.Status = v1alpha1.PluginStatus{Incarnation: 7, Restarts: 2, Stages: []string{"A"}, LastError: "it broke", LastErrorTime: ptr.To(metav1.NewTime(now)), RestartedFor: "x", RefetchedFor: "y"}
	w := newWorld(t, true, of)
	w.host.says["a"] = host.Status{Reason: v1alpha1.PluginReasonFetching, Incarnation: 7, Restarts: 2, Stages: []string{"A"}, RefetchedFor: "y"}
	got := w.step("a")
	if got.LastError != "it broke" || got.LastErrorTime == nil || got.RestartedFor != "x" || got.Restarts != 2 {
		t.Errorf("status %+v", got)
	}
	if seen := w.host.seen["a"]; seen.Incarnation != 7 || seen.Restarts != 2 || seen.RefetchedFor != "y" || !slices.Equal(seen.Stages, []string{"A"}) {
		t.Errorf("the host is told %+v", seen)
	}
	if spec := w.host.specs["a"]; spec.RestartFor != "x" || spec.RefetchFor != "y" {
		t.Errorf("the host is to run %+v", spec)
	}
	if events := w.told(); len(events) > 0 {
		t.Errorf("told %q", events)
	}
}

func TestWhereNoPluginsRunTheySaySo(t *testing.T) {
	of := plugin("a")
	of.Status = v1alpha1.PluginStatus{Stages: []string{"A"}, Services: []string{"Deployment"}, Conditions: []metav1.Condition{
		{Type: v1alpha1.PluginReady, Status: metav1.ConditionTrue, Reason: v1alpha1.PluginReasonAnswering}, {Type: v1alpha1.PluginStagesDistinct, Status: metav1.ConditionTrue},
	}}
	w := newWorld(t, false, of)
	got := w.step("a")
	wantCondition(t, got, v1alpha1.PluginReady, metav1.ConditionFalse, v1alpha1.PluginReasonHostDisabled, "--plugins-dir")
	if len(got.Conditions) != 1 || len(got.Stages) > 0 || len(got.Services) > 0 {
		t.Errorf("status %+v", got)
	}
}

func TestStagesThatOthersHaveAreTold(t *testing.T) {
	w := newWorld(t, true, plugin("a"))
	w.host.says["a"] = host.Status{Ready: true, Stages: []string{"WAIT", "X"}, Shared: []host.Shared{{Stage: "X", Plugins: []string{"b", "c"}}}}
	wantCondition(t, w.step("a"), v1alpha1.PluginStagesDistinct, metav1.ConditionFalse, v1alpha1.PluginReasonOfferedTwice, "X is also offered by b, c")
	w.host.says["a"] = host.Status{Ready: true, Stages: []string{"K8S_MULTI_SYNC", "WAIT", "X"}}
	wantCondition(t, w.step("a"), v1alpha1.PluginStagesDistinct, metav1.ConditionTrue, v1alpha1.PluginReasonAlsoBuiltIn, "K8S_MULTI_SYNC, WAIT: there are built-in stages")
}

func TestADeletedPluginIsRemoved(t *testing.T) {
	w := newWorld(t, true)
	if err := w.sync(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.host.removed, []string{"a"}) {
		t.Errorf("removed %v", w.host.removed)
	}
}

// What was deleted while no server ran, nobody tells of.
func TestAStartKeepsWhatThereIs(t *testing.T) {
	w := newWorld(t, true, plugin("a"))
	w.own.StartWithContext(t.Context())
	w.kubeInformers.StartWithContext(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	w.host.keeps = cancel
	if err := w.Controller.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", strings.Repeat("a", 64)}; !slices.Equal(w.host.kept, want) {
		t.Errorf("kept %v, want %v", w.host.kept, want)
	}
}

func TestWhatTheHostTellsOfOneConcernsAll(t *testing.T) {
	w := newWorld(t, true, plugin("a"), plugin("b"))
	w.host.changed("a")
	if got := w.queue.Len(); got != 2 {
		t.Errorf("%d plugins are looked at, want 2", got)
	}
}

func TestASpecIsWhatThePluginSays(t *testing.T) {
	of := plugin("a")
	got := specOf(of)
	if got.Generation != 3 || got.URL != "file:///a" || got.Grace != 30*time.Second || got.LogLevel != "info" || got.Limits.Memory != 1<<30 || got.Limits.Files != 1024 || got.Limits.Processes != 512 || got.Config != nil {
		t.Errorf("by default %+v", got)
	}
	of.Spec = v1alpha1.PluginSpec{
		URL: "oci://r/p:1", Sha256: "bb", Config: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}, Port: 7000, LogLevel: "debug", Suspend: true, GracePeriodSeconds: ptr.To(int32(5)),
		Limits: v1alpha1.PluginLimits{Memory: ptr.To(resource.MustParse("64Mi")), Files: ptr.To(int64(100)), Processes: ptr.To(int64(20))},
	}
	got = specOf(of)
	if string(got.Config) != `{"a":1}` || got.Port != 7000 || got.LogLevel != "debug" || !got.Suspend || got.Grace != 5*time.Second || got.Limits.Memory != 64<<20 || got.Limits.Files != 100 || got.Limits.Processes != 20 {
		t.Errorf("spec %+v", got)
	}
}

var deployer = &v1alpha1.PluginServiceAccountRef{Namespace: "shop", Name: "deployer"}

func TestTargetsStandForClusters(t *testing.T) {
	cluster := func(name, region string) *manifold.Cluster {
		return &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}}}
	}
	leaves := cluster("south", "us")
	leaves.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	clusters := []*manifold.Cluster{cluster("west", "us"), cluster("east", "us"), cluster("north", "eu"), leaves}
	us := &metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}
	config := &runtime.RawExtension{Raw: []byte(`{"x":1}`)}
	for name, test := range map[string]struct {
		said    []v1alpha1.PluginTarget
		want    []string
		problem string
	}{
		"none":                        {},
		"those that are written":      {said: []v1alpha1.PluginTarget{{Name: "b"}, {Name: "a"}}, want: []string{"b", "a"}},
		"those that are selected":     {said: []v1alpha1.PluginTarget{{Name: "us", ClusterSelector: us, ServiceAccountRef: deployer, Config: config}, {Name: "a"}}, want: []string{"east", "west", "a"}},
		"all clusters":                {said: []v1alpha1.PluginTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}, ServiceAccountRef: deployer}}, want: []string{"east", "north", "west"}},
		"none that is selected":       {said: []v1alpha1.PluginTarget{{Name: "x", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "asia"}}, ServiceAccountRef: deployer}}},
		"one twice, by two groups":    {said: []v1alpha1.PluginTarget{{Name: "us", ClusterSelector: us, ServiceAccountRef: deployer}, {Name: "all", ClusterSelector: &metav1.LabelSelector{}, ServiceAccountRef: deployer}}, problem: `spec.deployTargets[1] makes a target named "east", and so does spec.deployTargets[0]`},
		"one twice, once by itself":   {said: []v1alpha1.PluginTarget{{Name: "west"}, {Name: "us", ClusterSelector: us, ServiceAccountRef: deployer}}, problem: `spec.deployTargets[1] makes a target named "west"`},
		"clusters by nobody's rights": {said: []v1alpha1.PluginTarget{{Name: "a"}, {Name: "all", ClusterSelector: us}}, problem: "spec.deployTargets[1].serviceAccountRef: say by the rights"},
		"rights that nobody is given": {
			said:    []v1alpha1.PluginTarget{{Name: "all", ClusterSelector: us, ServiceAccountRef: &v1alpha1.PluginServiceAccountRef{Namespace: "kube-system", Name: "default"}}},
			problem: "spec.deployTargets[0].serviceAccountRef.namespace: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := targetsOf(test.said, clusters)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			var names []string
			for _, target := range got {
				names = append(names, target.Name)
				if (target.cluster != nil) != (target.account == *deployer) || target.cluster != nil && target.cluster.Name != target.Name {
					t.Errorf("target %+v", target)
				}
			}
			if !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") || !slices.Equal(names, test.want) {
				t.Errorf("targets %v, problem %q", names, problem)
			}
			if name == "those that are selected" && string(got[0].Config) != `{"x":1}` {
				t.Errorf("target %+v", got[0])
			}
		})
	}
}

func TestAChangeOfClustersConcernsPluginsThatSelectThem(t *testing.T) {
	selects := plugin("selects")
	selects.Spec.DeployTargets = []v1alpha1.PluginTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}
	w := newWorld(t, true, selects, plugin("b"))
	w.clustersChanged()
	if got, _ := w.queue.Get(); got != "selects" || w.queue.Len() != 0 {
		t.Errorf("%q is looked at, and %d more", got, w.queue.Len())
	}
}

func TestEventsTellWhatHasHappened(t *testing.T) {
	with := func(reason string, status metav1.ConditionStatus, restarts int64) *v1alpha1.PluginStatus {
		return &v1alpha1.PluginStatus{Restarts: restarts, LastError: "it broke", Conditions: []metav1.Condition{{Type: v1alpha1.PluginReady, Status: status, Reason: reason, Message: "m"}}}
	}
	for name, test := range map[string]struct {
		before, after *v1alpha1.PluginStatus
		want          []string
	}{
		"the first time":                 {&v1alpha1.PluginStatus{}, with(v1alpha1.PluginReasonFetching, metav1.ConditionFalse, 0), nil},
		"it is well":                     {with(v1alpha1.PluginReasonStarting, metav1.ConditionFalse, 0), with(v1alpha1.PluginReasonAnswering, metav1.ConditionTrue, 0), []string{"Answering"}},
		"it stays well":                  {with(v1alpha1.PluginReasonAnswering, metav1.ConditionTrue, 0), with(v1alpha1.PluginReasonAnswering, metav1.ConditionTrue, 0), nil},
		"another program":                {with(v1alpha1.PluginReasonFetching, metav1.ConditionFalse, 0), with(v1alpha1.PluginReasonChecksumDiffers, metav1.ConditionFalse, 0), []string{"ChecksumDiffers"}},
		"it hangs, and is started again": {with(v1alpha1.PluginReasonAnswering, metav1.ConditionTrue, 1), with(v1alpha1.PluginReasonNotAnswering, metav1.ConditionFalse, 2), []string{"Restarted", "NotAnswering"}},
		"somebody has suspended it":      {with(v1alpha1.PluginReasonAnswering, metav1.ConditionTrue, 1), with(v1alpha1.PluginReasonSuspended, metav1.ConditionFalse, 1), nil},
	} {
		var got []string
		for _, event := range eventsOf(test.before, test.after) {
			got = append(got, event.reason)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: told %v, want %v", name, got, test.want)
		}
	}
}
