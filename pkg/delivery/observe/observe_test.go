package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/copies"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	v2   = delivery.Part{Revision: delivery.Revision{Name: "web-v2", Hash: "b"}, Target: "eu", Traffic: 100}
)

// made is what a set of one Deployment in east stands for.
func made(t *testing.T, set delivery.Set) wanted.Wanted {
	t.Helper()
	out, err := wanted.Make(wanted.Application{Namespace: "shop", Name: "web", UID: "app", Pinned: true}, set, "web-v2", func(delivery.Part) ([]*unstructured.Unstructured, error) {
		return []*unstructured.Unstructured{{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
			"spec": map[string]any{"replicas": int64(3), "selector": map[string]any{}, "template": map[string]any{}},
		}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a cluster has proved is what is reported of the very thing that it is to run.
func TestWhatAClusterReports(t *testing.T) {
	const (
		told  = `{"east":{"replicas":3,"revision":"web-v2","target":"eu"}}`
		older = `{"east":{"replicas":3,"revision":"web-v1","target":"eu"}}`
	)
	for name, test := range map[string]struct {
		share, status string
		unapplied     bool
		absent        bool
		refused       string
		wantEdit      int64
		wantCurrent   bool
		wantReady     bool
		wantWaiting   string
	}{
		"all is proved": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"revision":"web-v2","target":"eu"}}`,
			wantEdit: 4, wantCurrent: true, wantReady: true,
		},
		"pods that are ready of another revision prove nothing": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"revision":"web-v1","target":"eu"}}`,
			wantEdit: 4, wantWaiting: "Deployment/web: the cluster has not taken it up yet",
		},
		"nor does a workload prove what the cluster lacks beside it": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"revision":"web-v2","target":"eu","lacks":"Service web of web-v2 is not there: taken"}}`,
			wantEdit: 4, wantWaiting: "Deployment/web: Service web of web-v2 is not there: taken",
		},
		"nor do those of another target": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"revision":"web-v2","target":"us"}}`,
			wantEdit: 4, wantWaiting: "has not taken it up",
		},
		"nor does a report without a revision": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3}}`, wantEdit: 4, wantWaiting: "has not taken it up",
		},
		"nor what a silent cluster said last": {
			share: told, status: `{"east":{"replicas":3,"ready":3,"available":3,"updated":3,"revision":"web-v2","target":"eu","stale":true}}`,
			wantEdit: 4, wantWaiting: "nothing is reported of it",
		},
		"nor what cannot be read": {share: told, status: `{"east":`, wantEdit: 4, wantWaiting: "nothing is reported of it"},
		"pods are on their way": {
			share: told, status: `{"east":{"replicas":4,"ready":3,"available":3,"updated":2,"revision":"web-v2","target":"eu"}}`,
			wantEdit: 4, wantCurrent: true, wantWaiting: "2 of 3 pods are updated, and 3 available",
		},
		"what keeps them is said, in one line": {
			share: told, status: `{"east":{"replicas":3,"updated":3,"revision":"web-v2","target":"eu","waits":"no\nroom"}}`,
			wantEdit: 4, wantCurrent: true, wantWaiting: "room",
		},
		"a share that names an older revision is not what was asked for": {share: older, wantEdit: 3},
		"nor is an object that was applied otherwise":                    {share: told, unapplied: true, wantEdit: 3},
		"nor one that is missing":                                        {absent: true, wantEdit: 3},
		"but a refusal is an answer":                                     {absent: true, refused: "no", wantEdit: 4},
	} {
		t.Run(name, func(t *testing.T) {
			set := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{"east": v2}}}
			w := World{
				Set: set, Edits: map[string]int64{"east": 4}, Wanted: made(t, set), Pinned: true, Now: noon, Failures: map[wanted.Key]string{},
				Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}, Silent: func(*manifold.Cluster) time.Time { return time.Time{} },
			}
			object := w.Wanted.Objects[0]
			if test.refused != "" {
				w.Failures[object.Key] = test.refused
			}
			hash := object.Hash
			if test.unapplied {
				hash = "another"
			}
			if !test.absent {
				w.Present = []Present{{Key: object.Key, Workload: true, Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{
					v1alpha1.AnnotationApplied: hash, v1alpha1.AnnotationVariant: delivery.Primary, manifold.AnnotationPlacement: test.share, manifold.AnnotationStatus: test.status,
				}}}}}
			}
			got := Clusters(w)["east"]
			if got.Edit != test.wantEdit || got.Heard != noon {
				t.Errorf("edit %d, heard %s, want %d", got.Edit, got.Heard, test.wantEdit)
			}
			report := got.Variants[delivery.Primary]
			if report.Failure != test.refused {
				t.Errorf("failure %q, want %q", report.Failure, test.refused)
			}
			if test.wantEdit < 4 || test.refused != "" {
				return
			}
			if report.Ready != test.wantReady || report.Current != test.wantCurrent || (report.Fingerprint == v2.Fingerprint()) != test.wantCurrent ||
				!strings.Contains(report.Waiting, test.wantWaiting) || strings.Contains(report.Waiting, "\n") {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestWhatAClusterReportsOfAnObjectOfACustomKind(t *testing.T) {
	const told = `{"east":{"replicas":1}}`
	for name, test := range map[string]struct {
		share, status string
		awaited       bool
		wantCurrent   bool
		wantReady     bool
		wantWaiting   string
	}{
		"all is proved":                               {share: told, status: `{"east":{"generation":2,"content":"web-v2/eu"}}`, wantCurrent: true, wantReady: true},
		"one that stays above proves nothing":         {wantCurrent: true, wantReady: true},
		"nor does one that is elsewhere":              {share: `{"west":{"replicas":1}}`, wantCurrent: true, wantReady: true},
		"nobody has decided yet where it goes":        {awaited: true, wantWaiting: "Gizmo/one: nothing is decided yet"},
		"the cluster has it as it was":                {share: told, status: `{"east":{"generation":2,"content":"web-v1/eu"}}`, wantWaiting: "has not taken it up yet"},
		"the cluster has that of another target":      {share: told, status: `{"east":{"generation":2,"content":"web-v2/us"}}`, wantWaiting: "has not taken it up yet"},
		"the cluster does not say what it has":        {share: told, status: `{"east":{"generation":2}}`, wantWaiting: "has not taken it up yet"},
		"the cluster refuses it":                      {share: told, status: `{"east":{"generation":2,"problem":"no\nright"}}`, wantWaiting: "right"},
		"the cluster is silent":                       {share: told, status: `{"east":{"generation":2,"stale":true}}`, wantWaiting: "nothing is reported of it"},
		"nothing is heard of it":                      {share: told, wantWaiting: "nothing is reported of it"},
		"what cannot be read is nothing":              {share: told, status: `{"east":`, wantWaiting: "nothing is reported of it"},
		"it is there, and says that it is not ready":  {share: told, status: `{"east":{"generation":2,"content":"web-v2/eu","unready":true,"state":"Ready=False"}}`, wantCurrent: true, wantWaiting: "Gizmo/one: Ready=False"},
		"it is there, and does not say why it is not": {share: told, status: `{"east":{"generation":2,"content":"web-v2/eu","unready":true}}`, wantCurrent: true, wantWaiting: "it is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			set := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{"east": v2}}}
			app := wanted.Application{Namespace: "shop", Name: "web", UID: "app", Pinned: true}
			made, err := wanted.Make(app, set, "web-v2", func(delivery.Part) ([]*unstructured.Unstructured, error) {
				return []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "one"}}}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			object := made.Objects[0]
			present := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 2, Annotations: map[string]string{
				v1alpha1.AnnotationApplied: object.Hash, v1alpha1.AnnotationVariant: delivery.Primary, manifold.AnnotationPlacement: test.share, manifold.AnnotationStatus: test.status,
			}}}
			report := Clusters(World{
				Set: set, Wanted: made, Pinned: true, Now: noon, Present: []Present{{Key: object.Key, Object: present, Custom: true, Awaited: test.awaited}},
				Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}, Silent: func(*manifold.Cluster) time.Time { return time.Time{} },
			})["east"].Variants[delivery.Primary]
			if report.Ready != test.wantReady || report.Current != test.wantCurrent || (report.Fingerprint == v2.Fingerprint()) != test.wantCurrent ||
				!strings.Contains(report.Waiting, test.wantWaiting) || strings.Contains(report.Waiting, "\n") {
				t.Errorf("%+v", report)
			}
		})
	}
}

func TestWhatIsNoLongerWantedIsThereUntilItIsGone(t *testing.T) {
	canary := Present{Key: wanted.Key{Group: "apps", Kind: "Deployment", Name: "web-canary"}, Workload: true, Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: "web-canary", Annotations: map[string]string{v1alpha1.AnnotationVariant: delivery.Canary, manifold.AnnotationStatus: `{"east":{"replicas":1}}`},
	}}}
	w := World{
		Set: delivery.Set{}, Present: []Present{canary}, Now: noon, Silent: func(c *manifold.Cluster) time.Time { return noon.Add(-time.Minute) },
		Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, {ObjectMeta: metav1.ObjectMeta{Name: "west"}}},
	}
	got := Clusters(w)
	if _, there := got["east"].Variants[delivery.Canary]; !there {
		t.Error("east reports pods of the canary, and counts as having none")
	}
	if _, there := got["west"].Variants[delivery.Canary]; there {
		t.Error("west has nothing of the canary")
	}
	if want := noon.Add(-time.Minute); got["east"].Heard != want {
		t.Errorf("heard %s, want %s", got["east"].Heard, want)
	}
}

func TestSharesAreInForceOnceTheClusterSaysSo(t *testing.T) {
	set := delivery.Set{delivery.Primary: {Clusters: map[string]delivery.Part{"east": v2}}}
	for name, test := range map[string]struct {
		routing    func(string) Routing
		weight     int32
		unroutable string
	}{
		"nobody shares out requests":    {nil, 100, ""},
		"it does as the set says":       {func(string) Routing { return Routing{InForce: true} }, 100, ""},
		"it does not yet":               {func(string) Routing { return Routing{} }, -1, ""},
		"it has nothing that could":     {func(string) Routing { return Routing{InForce: true, Problem: "no route"} }, 100, "no route"},
		"it goes on as it did, and why": {func(string) Routing { return Routing{Problem: "no right"} }, -1, "no right"},
	} {
		seen := Clusters(World{
			Set: set, Wanted: made(t, set), Pinned: true, Now: noon, Routing: test.routing, Silent: func(*manifold.Cluster) time.Time { return time.Time{} },
			Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}},
		})["east"]
		if got := seen.Variants[delivery.Primary].Weight; got != test.weight || seen.Unroutable != test.unroutable {
			t.Errorf("%s: weight %d, %q", name, got, seen.Unroutable)
		}
	}
}

// Requests move to what can answer them: pods that lie behind the Service in front, and of which something is heard.
func TestEndpointsAreReadyPodsBehindTheService(t *testing.T) {
	set := delivery.Set{
		delivery.Primary: {Clusters: map[string]delivery.Part{"east": v2}},
		delivery.Canary: {Suffix: "canary", Clusters: map[string]delivery.Part{
			"east": {Revision: v2.Revision, Target: v2.Target, Replicas: map[string]int32{"Deployment/web": 2, "Deployment/worker": 3}},
		}},
	}
	workload := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"replicas": int64(3), "selector": map[string]any{}, "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}}}},
		}}
	}
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"selector": map[string]any{"app": "web"}},
	}}
	app := wanted.Application{Namespace: "shop", Name: "web", UID: "app", Pinned: true, Traffic: v1alpha1.TrafficReplicas}
	made, err := wanted.Make(app, set, "web-v2", func(delivery.Part) ([]*unstructured.Unstructured, error) {
		return []*unstructured.Unstructured{service, workload("web"), workload("worker")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		routing         func(string) Routing
		stale           bool
		unproxied       int32
		pods, endpoints int32
	}{
		"requests get to one of two yet": {
			routing: func(string) Routing { return Routing{InForce: true} }, unproxied: 1, pods: 5, endpoints: 1,
		},
		"requests get to none yet": {
			routing: func(string) Routing { return Routing{InForce: true} }, unproxied: 2, pods: 5,
		},
		"requests are shared out":              {routing: func(string) Routing { return Routing{InForce: true} }, pods: 5, endpoints: 2},
		"what a silent cluster said is no pod": {routing: func(string) Routing { return Routing{InForce: true} }, stale: true},
		"nobody shares out requests":           {pods: 5, endpoints: 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{
				Set: set, Wanted: made, Pinned: true, Now: noon, Routing: test.routing, Silent: func(*manifold.Cluster) time.Time { return time.Time{} },
				Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}},
			}
			for _, object := range made.Objects {
				if object.Variant != delivery.Canary || !object.Workload {
					continue
				}
				n := *object.Clusters["east"].Replicas
				w.Present = append(w.Present, Present{Key: object.Key, Workload: true, Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Annotations: map[string]string{
					v1alpha1.AnnotationVariant: delivery.Canary, manifold.AnnotationPlacement: fmt.Sprintf(`{"east":{"replicas":%d}}`, n),
					manifold.AnnotationStatus: fmt.Sprintf(`{"east":{"replicas":%d,"ready":%d,"unproxied":%d,"stale":%t}}`, n, n, test.unproxied, test.stale),
				}}}})
			}
			seen := Clusters(w)["east"]
			if got := seen.Variants[delivery.Canary]; got.Pods != test.pods || got.Endpoints != test.endpoints {
				t.Errorf("%d pods and %d endpoints, want %d and %d", got.Pods, got.Endpoints, test.pods, test.endpoints)
			}
			if behind := strings.Join(seen.Behind, " "); test.routing != nil && behind != "Deployment/web" {
				t.Errorf("behind the Service are %q", behind)
			}
		})
	}
}

// Where it takes long until all is applied, it is told how far it is.
func TestHowMuchOfManyObjectsIsApplied(t *testing.T) {
	for name, test := range map[string]struct {
		objects, applied int
		missing, refused bool
		wantEdit         int64
		want             string
	}{
		"some of many":                    {objects: 250, applied: 100, wantEdit: 3, want: "100 of 250 objects are applied"},
		"all of many":                     {objects: 250, applied: 250, wantEdit: 4},
		"some of a few, which takes none": {objects: 9, applied: 3, wantEdit: 3},
		"of what is not there yet":        {objects: 250, applied: 100, missing: true, wantEdit: 3},
		"refused are no longer awaited":   {objects: 250, applied: 249, refused: true, wantEdit: 4},
	} {
		w := World{
			Edits: map[string]int64{"east": 4}, Missing: test.missing, Now: noon, Failures: map[wanted.Key]string{},
			Clusters: []*manifold.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}, Silent: func(*manifold.Cluster) time.Time { return time.Time{} },
		}
		for i := range test.objects {
			object := wanted.Object{Key: wanted.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)}, Hash: "h", Clusters: map[string]copies.Share{"east": {}}}
			w.Wanted.Objects = append(w.Wanted.Objects, object)
			if i < test.applied {
				w.Present = append(w.Present, Present{Key: object.Key, Object: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
					v1alpha1.AnnotationApplied: "h", manifold.AnnotationPlacement: `{"east":{"replicas":0}}`,
				}}}})
			} else if test.refused {
				w.Failures[object.Key] = "no"
			}
		}
		if got := Clusters(w)["east"]; got.Edit != test.wantEdit || got.Unapplied != test.want {
			t.Errorf("%s: edit %d, %q, want %d, %q", name, got.Edit, got.Unapplied, test.wantEdit, test.want)
		}
	}
}
