package syncer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	heldversions "github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	atSeven = `{"west":{"replicas":2,"revision":"web-v7","target":"eu"}}`
	atEight = `{"west":{"replicas":2,"revision":"web-v8","target":"eu"}}`
)

// released is a logical cluster with revisions of applications.
type released struct {
	*Upstream
	revisions cache.Indexer
}

func newReleased(t *testing.T, objects ...projection.Object) *released {
	t.Helper()
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	revisions := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	secrets := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	reader := contents.New(deliverylisters.NewApplicationRevisionLister(revisions), corelisters.NewSecretLister(secrets))
	u := newUpstreamOf(t, informers.NewSharedInformerFactory(fake.NewClientset(), 0), objects...)
	u.Versions.Versions = heldversions.New(reader, nil)
	return &released{u, revisions}
}

// release makes a revision that has these objects for target eu.
func (r *released) release(t *testing.T, name string, objects ...projection.Object) *delivery.ApplicationRevision {
	t.Helper()
	application, number, _ := delivery.ParseRevisionName(name)
	out := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: delivery.ApplicationRevisionSpec{Application: application, Number: number}}
	target := delivery.RevisionTarget{Name: "eu"}
	for _, object := range objects {
		kind, _ := projection.KindOf(object)
		object = object.DeepCopyObject().(projection.Object)
		object.GetObjectKind().SetGroupVersionKind(kind.GVK)
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetAnnotations(nil)
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := delivery.HashManifest(raw)
		if err != nil {
			t.Fatal(err)
		}
		out.Spec.Objects = append(out.Spec.Objects, delivery.RevisionObject{Hash: hash, Manifest: &runtime.RawExtension{Raw: raw}})
		target.Objects = append(target.Objects, hash)
	}
	target.Hash = delivery.HashObjects(target.Objects)
	out.Spec.Targets = []delivery.RevisionTarget{target}
	out.Spec.Hash = delivery.HashRevision(out.Spec.Targets)
	if err := r.revisions.Add(out); err != nil {
		t.Fatal(err)
	}
	return out
}

func running(image string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	}
}

func ofReplicas(n int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(n) }
}

// imageOf is the image of a projection of a Deployment.
func imageOf(t *testing.T, obj projection.Object) string {
	t.Helper()
	if obj == nil {
		return "none"
	}
	return obj.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image
}

func TestAClusterHoldsTheRevisionOfItsShare(t *testing.T) {
	workloads, _ := projection.ForResource(deploymentResource)
	for name, test := range map[string]struct {
		decision, status string
		image            string
		replicas         int32
		revision         string
	}{
		"the one that it is held at, although the object is newer": {decision: atSeven, image: "web:7", replicas: 2, revision: "web-v7"},
		"the next one, once its share names that":                  {decision: atEight, image: "web:8", replicas: 2, revision: "web-v8"},
		"with its share of the replicas, whatever that is":         {decision: strings.Replace(atSeven, "2", "5", 1), image: "web:7", replicas: 5, revision: "web-v7"},
		"the object as it stands, if its share names none":         {decision: `{"west":{"replicas":2}}`, image: "web:9", replicas: 2},
		"also when others hold another one": {
			decision: `{"east":{"replicas":1,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`,
			image:    "web:7", replicas: 1, revision: "web-v7"},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", test.decision, running("web:9"), ofReplicas(2))
			r := newReleased(t, namespace("shop"), above)
			r.release(t, "web-v7", deployment("web", "", running("web:7")))
			r.release(t, "web-v8", deployment("web", "", running("web:8")))
			s := attach(t, r.Upstream, "west")
			desired, _, err := s.desired(workloads, above, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := imageOf(t, desired); got != test.image {
				t.Errorf("image %s, want %s", got, test.image)
			}
			if got := workloads.Demand(desired).Replicas; got != test.replicas {
				t.Errorf("%d replicas, want %d", got, test.replicas)
			}
			if got, _ := projection.MarkedRevision(desired); got != test.revision {
				t.Errorf("marked as %q, want %q", got, test.revision)
			}
			if origin, _ := projection.OriginOf(desired); origin.UID != above.UID {
				t.Errorf("it comes of %q, want the object above", origin.UID)
			}
		})
	}
}

func TestAClusterThatLeavesKeepsItsRevision(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":2,"revision":"web-v8","target":"eu"}}`, running("web:9"), ofReplicas(2))
	above.Annotations[v1alpha1.AnnotationStatus] = `{"west":{"replicas":2,"revision":"web-v7","target":"eu"}}`
	r := newReleased(t, namespace("shop"), above)
	seven := deployment("web", "", running("web:7"))
	r.release(t, "web-v7", seven)
	r.release(t, "web-v8", deployment("web", "", running("web:8")))
	live := projected(deployment("web", "", running("web:7")), 2, 2)
	s := attach(t, r.Upstream, "west", live)
	attach(t, r.Upstream, "east")
	kind, _ := projection.ForResource(deploymentResource)
	desired, _, err := s.desired(kind, above, live)
	if err != nil {
		t.Fatal(err)
	}
	if got := imageOf(t, desired); got != "web:7" {
		t.Errorf("image %s, want what it has until others have the replicas", got)
	}
}

func TestNothingChangesAsLongAsARevisionCannotBeRead(t *testing.T) {
	key := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
	above := deployment("web", atSeven, running("web:9"), ofReplicas(2))
	live := projected(deployment("web", "", running("web:6")), 2, 2)
	r := newReleased(t, namespace("shop"), above)
	s := attach(t, r.Upstream, "west", live)
	for range 10 {
		if err := s.sync(context.Background(), key); err != nil {
			s.queue.AddRateLimited(key)
		}
	}
	if writes := s.client.(*fake.Clientset).Actions(); len(writes) > 0 {
		t.Errorf("wrote %v, want nothing", writes)
	}
	reason := s.states.Of(key).Reason
	for _, want := range []string{"keeps what it has", `"west"`, `"web-v7"`, `Application "web"`, "is not there"} {
		if !strings.Contains(reason, want) {
			t.Errorf("it waits for %q, which does not say %q", reason, want)
		}
	}
	report, known := s.reports.Report(key, above)
	if !known || report.Generation != 0 || !strings.Contains(report.Waits, "web-v7") {
		t.Errorf("report %+v (%t), want one that waits and answers for no generation", report, known)
	}
	s.enqueued()
	r.router.Revisions().OnAdd(r.release(t, "web-v7", deployment("web", "", running("web:7"))), false)
	if got := s.enqueued(); !strings.Contains(strings.Join(got, " "), key.String()) {
		t.Errorf("the revision wakes %q, want what names it", got)
	}
	if desired, _, err := s.desired(kindOf(t, key), above, live); err != nil || imageOf(t, desired) != "web:7" {
		t.Errorf("image %s (%v), want that of the revision", imageOf(t, desired), err)
	}
}

func TestAChunkWakesWhatItsRevisionIsNamedBy(t *testing.T) {
	r := newReleased(t, namespace("shop"), deployment("web", atSeven), deployment("api", atEight))
	s := attach(t, r.Upstream, "west")
	chunk := &delivery.ApplicationRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-v7-1"}, Spec: delivery.ApplicationRevisionSpec{ChunkOf: "web-v7"}}
	r.router.Revisions().OnAdd(chunk, false)
	if got := strings.Join(s.enqueued(), " "); !strings.Contains(got, "deployments shop/web") || strings.Contains(got, "shop/api") {
		t.Errorf("it wakes %q, want the Deployment of that revision alone", got)
	}
}

func TestWhatAHeldTemplateNamesIsWantedWhereItIsHeld(t *testing.T) {
	above := deployment("web", `{"east":{"replicas":1,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"revision":"web-v7","target":"eu"}}`,
		usingSecret("new"), ofReplicas(2))
	r := newReleased(t, namespace("shop"), above, secret("old"), secret("new"), secret("other"))
	r.release(t, "web-v7", deployment("web", "", usingSecret("old")))
	r.release(t, "web-v8", deployment("web", "", usingSecret("new")))
	attach(t, r.Upstream, "east")
	attach(t, r.Upstream, "west")
	kind, _ := projection.ForResource(secretResource)
	for secretName, want := range map[string]string{"old": "west", "new": "east", "other": ""} {
		got := ""
		for _, cluster := range []string{"east", "west"} {
			if r.Demand.Wanted(kind, secret(secretName), cluster) {
				got += cluster
			}
		}
		if got != want {
			t.Errorf("Secret %s is wanted in %q, want %q", secretName, got, want)
		}
	}
	if got := len(r.Demand.Needing(identity.KeyOf(kind, secret("old")))); got != 1 {
		t.Errorf("%d workloads need the Secret of the old template, want the one that is held at it", got)
	}
}

func TestWhatIsThereStaysAsLongAsNobodyKnowsWhetherItIsNeeded(t *testing.T) {
	above := deployment("web", atSeven, usingSecret("new"))
	r := newReleased(t, namespace("shop"), above, secret("old"))
	live := secret("old")
	live.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	attach(t, r.Upstream, "west", live)
	kind, _ := projection.ForResource(secretResource)
	if !r.Demand.Wanted(kind, secret("old"), "west") {
		t.Error("it is not wanted, although the revision may name it")
	}
	r.release(t, "web-v7", deployment("web", "", usingSecret("new")))
	if r.Demand.Wanted(kind, secret("old"), "west") {
		t.Error("it is wanted, although the revision does not name it")
	}
}

func TestARevisionIsReportedAsFarAsItWasGiven(t *testing.T) {
	key := identity.Key{Resource: deploymentResource, Namespace: "shop", Name: "web"}
	seven := deployment("web", "", running("web:7"))
	for name, test := range map[string]struct {
		decision, status, mark string // of the mark, HASH stands for that of the manifest
		behind                 bool
		want                   string
		doubt                  bool
	}{
		"the one that it is to hold":                       {decision: atSeven, mark: "web-v7@HASH", want: "web-v7"},
		"the one that it held before":                      {decision: atEight, status: `{"west":{"revision":"web-v7","target":"eu"}}`, mark: "web-v7@HASH", want: "web-v7"},
		"not before its controllers have seen it":          {decision: atSeven, mark: "web-v7@HASH", behind: true},
		"not another one":                                  {decision: atEight, mark: "web-v7@HASH", doubt: true},
		"not one that there is not":                        {decision: atSeven, mark: "web-v99@HASH", doubt: true},
		"not with other content":                           {decision: atSeven, mark: "web-v7@" + strings.Repeat("0", 64), doubt: true},
		"not without a hash":                               {decision: atSeven, mark: "web-v7", doubt: true},
		"not one although it is to hold what stands above": {decision: `{"west":{"replicas":2}}`, mark: "web-v7@HASH", doubt: true},
		"none if it names none":                            {decision: atSeven},
	} {
		t.Run(name, func(t *testing.T) {
			above := deployment("web", test.decision, running("web:9"), ofReplicas(2))
			if test.status != "" {
				above.Annotations[v1alpha1.AnnotationStatus] = test.status
			}
			r := newReleased(t, namespace("shop"), above)
			revision := r.release(t, "web-v7", seven)
			live := projected(seven, 2, 2)
			if test.mark != "" {
				live.Annotations[delivery.AnnotationRevision] = strings.Replace(test.mark, "HASH", revision.Spec.Objects[0].Hash, 1)
			}
			if test.behind {
				live.Generation++
			}
			s := attach(t, r.Upstream, "west", live)
			report, _ := s.reports.Report(key, above)
			if report.Revision != test.want || test.want != "" && report.Target != "eu" {
				t.Errorf("it reports revision %q of target %q, want %q of eu", report.Revision, report.Target, test.want)
			}
			if doubted := len(report.Doubts) > 0; doubted != test.doubt {
				t.Errorf("doubts %q, want some: %t", report.Doubts, test.doubt)
			}
		})
	}
}

func kindOf(t *testing.T, key identity.Key) projection.Kind {
	t.Helper()
	kind, ok := projection.ForResource(key.Resource)
	if !ok {
		t.Fatalf("no kind for %s", key)
	}
	return kind
}

// setShowing is the ReplicaSet above of a template of a Deployment.
func setShowing(above *appsv1.Deployment, image string) identity.Workload {
	of := deployment(above.Name, "", running(image))
	kind, _ := projection.ForResource(replicaSetResource)
	rs := &appsv1.ReplicaSet{ObjectMeta: objectMeta("rs-" + image)}
	rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(above, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	rs.Spec.Template = of.Spec.Template
	return identity.Workload{Kind: kind, Object: rs}
}

func TestPodsOfRevisionsThatAClusterWasNotGivenAreNotShown(t *testing.T) {
	deployments, _ := projection.ForResource(deploymentResource)
	for name, test := range map[string]struct{ west, status, shown string }{
		"a held cluster has its own, and what it may still be replacing":     {west: "web-v7", shown: "web:6 web:7"},
		"one that was let go may have the next one, and what it had before":  {west: "web-v8", status: `{"west":{"revision":"web-v7","target":"eu"}}`, shown: "web:6 web:7 web:8"},
		"one without a revision has what stands above, and what was earlier": {shown: "web:6 web:7 web:9"},
	} {
		t.Run(name, func(t *testing.T) {
			share := `{"replicas":1}`
			if test.west != "" {
				share = `{"replicas":1,"revision":"` + test.west + `","target":"eu"}`
			}
			above := deployment("web", `{"east":{"replicas":1,"revision":"web-v8","target":"eu"},"west":`+share+`}`, running("web:9"))
			if test.status != "" {
				above.Annotations[v1alpha1.AnnotationStatus] = test.status
			}
			r := newReleased(t, namespace("shop"), above)
			r.release(t, "web-v7", deployment("web", "", running("web:7")))
			r.release(t, "web-v8", deployment("web", "", running("web:8")))
			var shown []string
			for _, image := range []string{"web:6", "web:7", "web:8", "web:9"} {
				if r.Versions.MayRun("west", setShowing(above, image), identity.Workload{Kind: deployments, Object: above}) == nil {
					shown = append(shown, image)
				}
			}
			if got := strings.Join(shown, " "); got != test.shown {
				t.Errorf("pods of %s are shown, want those of %s", got, test.shown)
			}
		})
	}
}

func TestPodsOfAHeldWorkloadAreComparedWithItsRevision(t *testing.T) {
	kind, _ := projection.ForResource(statefulSetResource)
	at := func(image string) *appsv1.StatefulSet {
		set := statefulSet("web", `{"east":{"replicas":1,"revision":"web-v8","target":"eu"},"west":{"replicas":1,"start":1,"revision":"web-v7","target":"eu"}}`, 2)
		set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		return set
	}
	above := at("web:9")
	r := newReleased(t, namespace("shop"), above)
	r.release(t, "web-v7", at("web:7"))
	r.release(t, "web-v8", at("web:8"))
	w := identity.Workload{Kind: kind, Object: above}
	for cluster, want := range map[string]string{"east": "web:8", "west": "web:7"} {
		owner := r.OwnerOf(w, w, cluster, "", true)
		if got := owner.Template.Spec.Containers[0].Image; got != want {
			t.Errorf("pods of %s are compared with %s, want %s", cluster, got, want)
		}
	}
}

// Replicas with ordinals are updated one after another, and one that is held is not waited for.
func TestNobodyWaitsForAClusterThatIsHeld(t *testing.T) {
	above := statefulSet("db", `{"east":{"replicas":2,"revision":"db-v8","target":"eu"},"west":{"replicas":2,"start":2,"revision":"db-v7","target":"eu"}}`, 4)
	above.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	at := func(image string) *appsv1.StatefulSet {
		out := above.DeepCopy()
		out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
		return out
	}
	above = at("db:8")
	seven := at("db:7")
	part := func(start int32) *appsv1.StatefulSet {
		set := projectedSet(seven, start, 2)
		set.Annotations[v1alpha1.AnnotationTemplate] = projection.TemplateHash(&seven.Spec.Template)
		set.Status.UpdatedReplicas, set.Status.AvailableReplicas = 2, 2
		set.Status.CurrentRevision, set.Status.UpdateRevision = "seven", "seven"
		return set
	}
	for name, test := range map[string]struct {
		west  string
		waits bool
	}{
		"one that is held":                        {west: "db-v7"},
		"but one that is to have the revision is": {west: "db-v8", waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			above := above.DeepCopy()
			above.Annotations[v1alpha1.AnnotationPlacement] = strings.Replace(above.Annotations[v1alpha1.AnnotationPlacement], "db-v7", test.west, 1)
			r := newReleased(t, namespace("shop"), above)
			r.release(t, "db-v7", seven)
			r.release(t, "db-v8", at("db:8"))
			live := part(0)
			s := attach(t, r.Upstream, "east", live)
			attach(t, r.Upstream, "west", part(2))
			_, waits, err := s.desired(kindOf(t, identity.Key{Resource: statefulSetResource}), above, live)
			if err != nil || waits.Paced != test.waits {
				t.Errorf("it waits: %+v (%v), want that it does: %t", waits, err, test.waits)
			}
		})
	}
}
