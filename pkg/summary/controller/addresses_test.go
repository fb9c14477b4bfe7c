package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
	"github.com/manifold-dev/manifold/pkg/summary/reports"
)

// telling are clusters that tell these things of the one object that there is.
type telling map[string]summary.Report

func (c telling) Reporter(cluster string) (reports.Reporter, bool) {
	report, connected := c[cluster]
	return teller{report: report}, connected
}
func (telling) Reporters() []reports.Reporter                        { return nil }
func (telling) HasSynced() bool                                      { return true }
func (telling) Goes(identity.Key) bool                               { return false }
func (telling) MayHave(identity.Key, projection.Object, string) bool { return true }

type teller struct {
	reports.Reporter
	report summary.Report
}

func (r teller) Report(identity.Key, projection.Object) (summary.Report, bool) { return r.report, true }

func TestAddressesLeaveTheStatusAndReturn(t *testing.T) {
	points := func(ip string) corev1.LoadBalancerStatus {
		return corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip}}}
	}
	says := func(ip string) summary.Report {
		return summary.Report{Live: &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: points(ip)}}}
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", ResourceVersion: "1"}}
	key := identity.Key{Resource: identity.Services, Namespace: "shop", Name: "web"}
	h := start(t, cluster("east", metav1.ConditionTrue), cluster("west", metav1.ConditionTrue), web)
	events := record.NewFakeRecorder(10)
	clock := testingclock.NewFakePassiveClock(now)
	h.Recorder, h.Clock = events, clock
	queue := &noting{TypedRateLimitingInterface: h.queue.TypedRateLimitingInterface}
	h.queue.TypedRateLimitingInterface = queue
	for _, step := range []struct {
		what       string
		after      time.Duration
		east, west summary.Report
		want       string // addresses
		status     string // the annotation
		event      string
		again      bool // it is looked at again by itself
	}{
		{what: "both have an address", east: says("192.0.2.1"), west: says("192.0.2.2"), want: "192.0.2.1 192.0.2.2"},
		{
			what: "its last replicas are about to leave east",
			east: leaving(says("192.0.2.1"), true), west: says("192.0.2.2"), want: "192.0.2.2",
			status: `{"east":{"withdrawn":"2026-11-20T12:00:00Z"}}`, event: `Normal AddressWithdrawn cluster "east": 192.0.2.1 left the status`,
		},
		{
			what: "some time passes", after: 20 * time.Second,
			east: leaving(says("192.0.2.1"), true), west: says("192.0.2.2"), want: "192.0.2.2", status: `{"east":{"withdrawn":"2026-11-20T12:00:00Z"}}`,
		},
		{
			what: "they are to stay after all",
			east: says("192.0.2.1"), west: says("192.0.2.2"), want: "192.0.2.1 192.0.2.2",
			event: `Normal AddressReturned cluster "east": 192.0.2.1 is in the status again`,
		},
		{
			what: "they are to leave, and west has no address",
			east: leaving(says("192.0.2.1"), true), west: summary.Report{Live: &corev1.Service{}}, want: "192.0.2.1",
			status: `{"east":{"alone":"2026-11-20T12:00:20Z"}}`, again: true,
		},
		{
			what: "west gets none for long", after: summary.Successor,
			east: leaving(says("192.0.2.1"), true), west: summary.Report{Live: &corev1.Service{}},
			status: `{"east":{"withdrawn":"2026-11-20T12:05:20Z"}}`, event: `Normal AddressWithdrawn`,
		},
		{what: "east has nothing any more", east: summary.Report{}, west: says("192.0.2.2"), want: "192.0.2.2"},
		{what: "east has an address before anything is ready there", east: unserved(says("192.0.2.1")), west: says("192.0.2.2"), want: "192.0.2.2", again: true},
		{what: "something is", east: says("192.0.2.1"), west: says("192.0.2.2"), want: "192.0.2.1 192.0.2.2"},
		{what: "nothing is any more, which is for health checks to tell", east: unserved(says("192.0.2.1")), west: says("192.0.2.2"), want: "192.0.2.1 192.0.2.2"},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		h.Reports = telling{"east": step.east, "west": step.west}
		queue.after = nil
		if err := h.sync(t.Context(), task{Key: key}); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		got, err := h.kube.CoreV1().Services("shop").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var addresses []string
		for _, point := range got.Status.LoadBalancer.Ingress {
			addresses = append(addresses, point.IP)
		}
		if strings.Join(addresses, " ") != step.want {
			t.Errorf("%s: the status has %q, want %q", step.what, addresses, step.want)
		}
		if status := got.Annotations[v1alpha1.AnnotationStatus]; status != step.status {
			t.Errorf("%s: recorded is %s, want %s", step.what, status, step.status)
		}
		if again := len(queue.after) > 0; again != step.again {
			t.Errorf("%s: looked at again by itself: %t, want %t", step.what, again, step.again)
		}
		select {
		case event := <-events.Events:
			if step.event == "" || !strings.HasPrefix(event, step.event) {
				t.Errorf("%s: event %q, want %q", step.what, event, step.event)
			}
		default:
			if step.event != "" {
				t.Errorf("%s: no event, want %q", step.what, step.event)
			}
		}
		h.shows(t, got)
	}
}

func unserved(report summary.Report) summary.Report {
	report.Unserved = true
	return report
}

// A cluster that cannot be asked may have addresses in the status. The others are drained all the same, and what it may have stays.
func TestAddressesLeaveAStatusThatIsKeptForAClusterWhichCannotBeAsked(t *testing.T) {
	says := func(ip string) summary.Report {
		return summary.Report{Live: &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: ip}}}}}}
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid", ResourceVersion: "1",
		Annotations: map[string]string{v1alpha1.AnnotationStatus: `{"north":{"routes":"1"}}`}}}
	for _, ip := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		web.Status.LoadBalancer.Ingress = append(web.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	key := identity.Key{Resource: identity.Services, Namespace: "shop", Name: "web"}
	h := start(t, cluster("east", metav1.ConditionTrue), cluster("north", metav1.ConditionTrue), cluster("west", metav1.ConditionTrue), web)
	h.Reports = telling{"east": leaving(says("192.0.2.1"), true), "west": says("192.0.2.2")}
	if err := h.sync(t.Context(), task{Key: key}); err != nil {
		t.Fatal(err)
	}
	got, err := h.kube.CoreV1().Services("shop").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for _, point := range got.Status.LoadBalancer.Ingress {
		addresses = append(addresses, point.IP)
	}
	if strings.Join(addresses, " ") != "192.0.2.2 192.0.2.3" {
		t.Errorf("the status has %q", addresses)
	}
	if got, want := got.Annotations[v1alpha1.AnnotationStatus], `{"east":{"withdrawn":"2026-11-20T12:00:00Z"},"north":{"routes":"1"}}`; got != want {
		t.Errorf("recorded is %s, want %s", got, want)
	}
}

// leaving has the replicas behind a report be about to leave.
func leaving(r summary.Report, asks bool) summary.Report {
	r.Leaves, r.Asks = true, asks
	return r
}

// shows waits until the watch has shown an object.
func (h *harness) shows(t *testing.T, want *corev1.Service) {
	t.Helper()
	if err := h.stores[identity.Services].Update(want); err != nil {
		t.Fatal(err)
	}
}

// A workload that is placed again where it was on its way out has the addresses there looked at, which no report of a cluster would.
func TestADecisionHasWithdrawnAddressesLookedAt(t *testing.T) {
	service := func(name, status string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		if status != "" {
			s.Annotations = map[string]string{v1alpha1.AnnotationStatus: status}
		}
		return s
	}
	h := start(t, cluster("east", ""), service("web", `{"east":{"withdrawn":"2026-11-20T12:00:00Z"}}`), service("api", ""))
	want := identity.Key{Resource: identity.Services, Namespace: "shop", Name: "web"}
	queue := &noting{TypedRateLimitingInterface: h.queue.TypedRateLimitingInterface}
	h.queue.TypedRateLimitingInterface = queue
	handler, west := h.workloadHandler(deploymentKind), deployment(`{"west":{"replicas":3}}`, "")
	east := deployment(`{"east":{"replicas":3}}`, "")
	for name, happens := range map[string]func(){
		"another decision": func() { handler.OnUpdate(west, east) },
		"one that is made": func() { handler.OnAdd(east, false) },
	} {
		queue.tasks = nil
		happens()
		found := false
		for _, woken := range queue.tasks {
			found = found || woken.Key == want
			if woken.Resource == identity.Services && woken.Key != want {
				t.Errorf("%s: %s is looked at", name, woken.Key)
			}
		}
		if !found {
			t.Errorf("%s: %s is not looked at", name, want)
		}
	}
}

// noting keeps what is added to a queue, and for when.
type noting struct {
	workqueue.TypedRateLimitingInterface[task]
	tasks []task
	after []time.Duration
}

func (q *noting) Add(t task)                           { q.tasks = append(q.tasks, t) }
func (q *noting) AddAfter(_ task, after time.Duration) { q.after = append(q.after, after) }
