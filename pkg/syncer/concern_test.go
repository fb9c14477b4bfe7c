package syncer

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/moves"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
)

// forged gives an object below the marks of one above, as whoever administers the cluster can.
func forged[T projection.Object](live T, above projection.Object, change ...func(map[string]string)) T {
	annotations := map[string]string{
		v1alpha1.AnnotationNamespace: above.GetNamespace(), v1alpha1.AnnotationName: above.GetName(), v1alpha1.AnnotationUID: string(above.GetUID()),
		v1alpha1.AnnotationProjection: "hash",
	}
	for _, c := range change {
		c(annotations)
	}
	live.SetAnnotations(annotations)
	live.SetLabels(map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster})
	return live
}

func breakdown(text string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Annotations[v1alpha1.AnnotationStatus] = text }
}

func TestWhatAClusterHoldsCountsWhereTheLogicalClusterHasIt(t *testing.T) {
	toEast, toBoth := `{"east":{"replicas":3}}`, `{"east":{"replicas":2},"west":{"replicas":1}}`
	for name, test := range map[string]struct {
		above *appsv1.Deployment
		marks func(map[string]string)
		told  bool // by this process
		want  bool
	}{
		"a share":                      {above: deployment("web", toBoth), want: true},
		"a share that is leaving":      {above: deployment("web", toEast, breakdown(`{"west":{"replicas":1}}`)), want: true},
		"what this process gave it":    {above: deployment("web", toEast), told: true, want: true},
		"nothing":                      {above: deployment("web", toEast)},
		"nothing, of one not placed":   {above: deployment("web", "")},
		"what another cluster leaves":  {above: deployment("web", toEast, breakdown(`{"southwest":{"replicas":1},"x":{"problem":"\"west\""}}`))},
		"a share of an earlier object": {above: deployment("web", toBoth), marks: func(a map[string]string) { a[v1alpha1.AnnotationUID] = "another" }},
		"a share under another name":   {above: deployment("web", toBoth), marks: func(a map[string]string) { a[v1alpha1.AnnotationName] = "another" }},
		"a share of another namespace": {above: deployment("web", toBoth), marks: func(a map[string]string) { a[v1alpha1.AnnotationNamespace] = "another" }},
	} {
		t.Run(name, func(t *testing.T) {
			live := projected(test.above, 1000, 1000)
			if test.marks != nil {
				test.marks(live.Annotations)
			}
			s := attachFound(t, newUpstream(t, namespace("shop"), test.above), "west", live)
			key := keyOfKind(t, test.above)
			if test.told {
				s.states.Set(key, states.State{UID: test.above.UID, Hash: "hash", Told: 1000, Most: 1000})
			}
			report, known := s.reports.Report(key, test.above)
			if !known || (report.Live != nil) != test.want {
				t.Errorf("it reports %v, known %t, want a report: %t", report.Live, known, test.want)
			}
			kind, _ := projection.ForResource(key.Resource)
			fleet := s.Upstream.Fleets.Observe(identity.Workload{Kind: kind, Object: test.above})
			if got := fleet.Members["west"]; got.Holds != test.want {
				t.Errorf("in moves it counts as %+v, want it to hold any: %t", got, test.want)
			}
			_, decided := identity.DecisionOf(test.above)["west"]
			if got := s.Upstream.Demand.Runs(identity.Workload{Kind: kind, Object: test.above}, "west"); got != (test.want || decided) {
				t.Errorf("it is sent what the workload needs: %t, want %t", got, test.want || decided)
			}
		})
	}
}

func keyOfKind(t *testing.T, obj projection.Object) identity.Key {
	t.Helper()
	kind, ok := projection.KindOf(obj)
	if !ok {
		t.Fatalf("no kind of %T", obj)
	}
	return identity.KeyOf(kind, obj)
}

// A forged Deployment must not fetch the Secret that the one above names, nor keep a Service's addresses in the status.
func TestNothingFollowsWhatWasForged(t *testing.T) {
	web := deployment("web", `{"east":{"replicas":3}}`, usingSecret("password"))
	entry := service("web", map[string]string{"app": "web"})
	entry.Spec.Type = corev1.ServiceTypeLoadBalancer
	below := forged(entry.DeepCopy(), entry)
	below.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	u := newUpstream(t, namespace("shop"), web, entry, secret("password"))
	s := attachFound(t, u, "west", projected(web, 3, 3), below)
	kind, _ := projection.KindOf(secret("password"))
	if desired, _, err := s.desired(kind, u.Get(keyOfKind(t, secret("password"))), nil); desired != nil || err != nil {
		t.Errorf("the Secret is sent, or %v", err)
	}
	if report, known := s.reports.Report(keyOfKind(t, entry), entry); !known || report.Live != nil {
		t.Errorf("the Service reports %v, known %t", report.Live, known)
	}
	workloads, _ := projection.KindOf(web)
	if desired, _, err := s.desired(workloads, web, projected(web, 3, 3)); desired != nil || err != nil {
		t.Errorf("the Deployment is kept, or %v", err)
	}
	if s.planner.Lingers(workloads, deletedDeployment(web), projected(web, 3, 3)) {
		t.Error("the Deployment lingers")
	}
}

func deletedDeployment(d *appsv1.Deployment) *appsv1.Deployment {
	out := d.DeepCopy()
	out.DeletionTimestamp, out.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/held", v1alpha1.FinalizerProjection}
	return out
}

func TestAClusterTakesNoOrdinalsThatItWasNotGiven(t *testing.T) {
	const both = `{"east":{"replicas":2},"west":{"replicas":2,"start":2}}`
	for name, test := range map[string]struct {
		decision, breakdown string
		start, replicas     int32
		want                []placement.Range
	}{
		"those that it was given":             {decision: both, start: 2, replicas: 2, want: []placement.Range{{Start: 2, End: 4}}},
		"of all, those that it was given":     {decision: both, start: 0, replicas: 1000, want: []placement.Range{{Start: 2, End: 4}}},
		"those that it has and leaves":        {decision: `{"east":{"replicas":4}}`, breakdown: `{"west":{"replicas":2,"start":2}}`, start: 2, replicas: 2, want: []placement.Range{{Start: 2, End: 4}}},
		"none, where it was never given any":  {decision: `{"east":{"replicas":4}}`, start: 0, replicas: 4},
		"those of others, which it never had": {decision: both, start: 0, replicas: 2, want: []placement.Range{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			above := statefulSet("db", test.decision, 4)
			if test.breakdown != "" {
				above.Annotations[v1alpha1.AnnotationStatus] = test.breakdown
			}
			live := projectedSet(above, test.start, test.replicas)
			s := attachFound(t, newUpstream(t, above), "west", live, podBelow(live, "db-0", ""))
			kind, _ := projection.KindOf(above)
			got := s.holding.Holding(identity.Workload{Kind: kind, Object: above}, moves.RecordOf(identity.Workload{Kind: kind, Object: above})).Keeps
			if len(got) != len(test.want) || len(got) > 0 && got[0] != test.want[0] {
				t.Errorf("it keeps %v, want %v", got, test.want)
			}
		})
	}
}

func TestToldReplicasAreThoseThatWeTold(t *testing.T) {
	web := deployment("web", `{"east":{"replicas":2},"west":{"replicas":2}}`)
	kind, _ := projection.KindOf(web)
	w := identity.Workload{Kind: kind, Object: web}
	s := attachFound(t, newUpstream(t, web), "west", projected(web, 1000, 1000))
	if got := s.trust.Told(w, moves.RecordOf(w), 1000); got != 2 {
		t.Errorf("before anything is told it counts as %d, want 2", got)
	}
	s.states.Set(w.Key(), states.State{UID: web.UID, Hash: "hash", Told: 3})
	if got := s.trust.Told(w, moves.RecordOf(w), 1000); got != 3 {
		t.Errorf("it counts as %d, want 3", got)
	}
	if got := s.Upstream.Fleets.Observe(identity.Workload{Kind: kind, Object: web}).Members["west"]; got.Told != 3 {
		t.Errorf("in a move it counts as %d, want 3: others would be given up for it", got.Told)
	}
}
