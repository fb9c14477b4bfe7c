package syncer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/podhooks"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// newPod is the pod of a family as its cluster asks about it.
func (f *family) newPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := f.pod.DeepCopy()
	p.UID, p.ResourceVersion, p.CreationTimestamp, p.ManagedFields, p.Spec.NodeName = "", "", metav1.Time{}, nil, ""
	p.Status = corev1.PodStatus{}
	p.Labels["cluster-says"] = "so"
	p.Annotations = map[string]string{v1alpha1.AnnotationAPIAuthority: "PEM", "inject": "evil:1", "note": "x"}
	for _, c := range change {
		c(p)
	}
	return p
}

func TestWhatWebhooksAreAskedAboutIsWhatWillBeShown(t *testing.T) {
	f := newFamily()
	f.mirrored.Spec.Template.Annotations = map[string]string{"inject": "proxy:1", v1alpha1.AnnotationAPI: v1alpha1.APICluster}
	u := newUpstream(t, f.above, f.mirrored, namespace("shop"))
	s := attach(t, u, "east", held(namespace("shop")), f.projected, f.replicaSet)
	got, err := s.Newcomer(t.Context(), f.newPod(func(p *corev1.Pod) {
		p.Spec.HostPID, p.Spec.Containers[0].Image = true, "evil:1"
		p.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}))
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	shown := got.Shown
	if got.Controller.Kind != "ReplicaSet" || len(shown.OwnerReferences) != 1 || shown.OwnerReferences[0].UID != f.mirrored.UID {
		t.Errorf("its controller is a %s, its owners are %v", got.Controller.Kind, shown.OwnerReferences)
	}
	if shown.Labels["cluster-says"] != "" || shown.Labels["app"] != "web" || shown.Annotations["inject"] != "proxy:1" || len(shown.Annotations) != 1 || len(shown.Finalizers) > 0 {
		t.Errorf("it has labels %v, annotations %v, finalizers %v", shown.Labels, shown.Annotations, shown.Finalizers)
	}
	if shown.Spec.HostPID || shown.Spec.Containers[0].Image != "" || len(shown.Spec.Volumes) > 0 || shown.Spec.NodeName != "" {
		t.Errorf("it is %+v", shown.Spec)
	}
}

// held is a namespace as a cluster has it for the one above.
func held(n *corev1.Namespace) *corev1.Namespace {
	out := n.DeepCopy()
	out.UID += "-below"
	out.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	out.Annotations = map[string]string{v1alpha1.AnnotationName: n.Name, v1alpha1.AnnotationUID: string(n.UID)}
	return out
}

func TestWhosePodsWebhooksAreAskedAbout(t *testing.T) {
	stranger := &appsv1.ReplicaSet{ObjectMeta: objectMeta("theirs")}
	for name, test := range map[string]struct {
		prepare func(f *family)
		change  func(f *family, p *corev1.Pod)
		refused string // by a NotPlacedError
		passed  bool
	}{
		"those of a workload that is placed there": {passed: false},
		"not those that nobody controls":           {change: func(_ *family, p *corev1.Pod) { p.OwnerReferences = nil }, passed: true},
		"not those of others":                      {change: func(_ *family, p *corev1.Pod) { p.OwnerReferences = controlledBy(stranger, "ReplicaSet") }, passed: true},
		"not those of kinds that are none of ours": {change: func(_ *family, p *corev1.Pod) { p.OwnerReferences = controlledBy(stranger, "Widget") }, passed: true},
		"not those of other namespaces":            {change: func(_ *family, p *corev1.Pod) { p.Namespace = "elsewhere" }, passed: true},
		"and none of what is placed elsewhere":     {prepare: func(f *family) { f.above.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":2}}` }, refused: `not placed in cluster "east"`},
		"and none that takes a replica's name":     {change: func(_ *family, p *corev1.Pod) { p.Name = "db-1" }, refused: "that of a replica of StatefulSet db"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			if test.prepare != nil {
				test.prepare(f)
			}
			set := &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}
			set.Spec.Replicas = new(int32)
			*set.Spec.Replicas = 3
			u := newUpstream(t, f.above, f.mirrored, set, namespace("shop"))
			s := attach(t, u, "east", held(namespace("shop")), f.projected, f.replicaSet, stranger)
			got, err := s.Newcomer(t.Context(), f.newPod(func(p *corev1.Pod) {
				if test.change != nil {
					test.change(f, p)
				}
			}))
			var misplaced *NotPlacedError
			switch {
			case test.refused != "" && (!errors.As(err, &misplaced) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("refused with %v, want %q", err, test.refused)
			case test.refused == "" && (err != nil || (got == nil) != test.passed):
				t.Errorf("%v, %v; want it passed: %t", got, err, test.passed)
			}
		})
	}
}

// The webhook in a cluster is called before any watch has shown the ReplicaSet, let alone its mirror.
func TestNobodyCanSayBeforeTheControllerIsKnown(t *testing.T) {
	f := newFamily()
	for name, test := range map[string]struct {
		above, below []projection.Object
	}{
		"the ReplicaSet has not been seen": {[]projection.Object{f.above, f.mirrored}, []projection.Object{f.projected}},
		"the Deployment has not been seen": {[]projection.Object{f.above, f.mirrored}, []projection.Object{withMark(f.replicaSet)}},
		"the ReplicaSet is not shown yet":  {[]projection.Object{f.above}, []projection.Object{f.projected, f.replicaSet}},
	} {
		t.Run(name, func(t *testing.T) {
			s := attach(t, newUpstream(t, append(test.above, namespace("shop"))...), "east", append(test.below, held(namespace("shop")))...)
			if got, settled, err := s.newcomer(f.newPod()); got != nil || settled || err == nil {
				t.Errorf("%v, settled %t, %v", got, settled, err)
			}
		})
	}
}

// It is looked at again when any of these is seen.
func TestAPodWaitsForWhatIsAboutToBeSeen(t *testing.T) {
	f := newFamily()
	untold := f.replicaSet.DeepCopy()
	delete(untold.Annotations, v1alpha1.AnnotationTemplate)
	for name, test := range map[string]struct {
		above, below []projection.Object
		seen         func(*testing.T, *testSyncer)
	}{
		"its ReplicaSet": {[]projection.Object{f.above, f.mirrored}, []projection.Object{f.projected}, func(t *testing.T, s *testSyncer) {
			hold(t, map[schema.GroupVersionResource]cache.Store{replicaSetResource: s.below.ReplicaSets.GetStore()}, []projection.Object{f.replicaSet})
			s.handlers.OfReplicaSets().OnAdd(f.replicaSet, false)
		}},
		"the template of that": {[]projection.Object{f.above, f.mirrored}, []projection.Object{f.projected, untold}, func(t *testing.T, s *testSyncer) {
			hold(t, map[schema.GroupVersionResource]cache.Store{replicaSetResource: s.below.ReplicaSets.GetStore()}, []projection.Object{f.replicaSet})
			s.handlers.OfReplicaSets().OnUpdate(untold, f.replicaSet)
		}},
		"the Deployment": {[]projection.Object{f.above, f.mirrored}, []projection.Object{withMark(f.replicaSet)}, func(t *testing.T, s *testSyncer) {
			hold(t, map[schema.GroupVersionResource]cache.Store{deploymentResource: s.below.Stores[deploymentResource]}, []projection.Object{f.projected})
			s.handlers.OfObjects(deployments).OnAdd(f.projected, false)
		}},
		"the Deployment above": {[]projection.Object{f.mirrored}, []projection.Object{f.projected, withMark(f.replicaSet)}, func(t *testing.T, s *testSyncer) {
			hold(t, map[schema.GroupVersionResource]cache.Store{deploymentResource: s.Upstream.Stores[deploymentResource]}, []projection.Object{f.above})
			s.Upstream.router.Objects(deployments).OnAdd(f.above, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := attach(t, newUpstream(t, append(test.above, namespace("shop"))...), "east", append(test.below, held(namespace("shop")))...)
				var got *Newcomer
				result := make(chan error, 1)
				go func() {
					var err error
					got, err = s.Newcomer(t.Context(), f.newPod())
					result <- err
				}()
				synctest.Wait()
				select {
				case err := <-result:
					t.Fatalf("it does not wait: %v", err)
				default:
				}
				test.seen(t, s)
				if err := <-result; err != nil || got == nil {
					t.Errorf("%v, %v", got, err)
				}
			})
		})
	}
}

func withMark(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	out := rs.DeepCopy()
	out.Annotations[v1alpha1.AnnotationUID] = "uid-of-web"
	return out
}

func TestAMirrorShowsWhatWebhooksHaveChanged(t *testing.T) {
	key, err := podhooks.DeriveKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	const change = `{"metadata":{"labels":{"admitted":"yes"}},"spec":{"containers":[{"name":"app","image":"registry/app:1"}]}}`
	of := podhooks.Subject{Cluster: "east", Namespace: "shop", Name: "web-1", Workload: "uid-of-web"}
	for name, test := range map[string]struct {
		sealed string
		shown  bool
	}{
		"proven":                   {key.Seal(of, []byte(change)), true},
		"not without a proof":      {"x:" + change, false},
		"nor that of another pod":  {key.Seal(podhooks.Subject{Cluster: "east", Namespace: "shop", Name: "web-2", Workload: "uid-of-web"}, []byte(change)), false},
		"nor of another cluster":   {key.Seal(podhooks.Subject{Cluster: "west", Namespace: "shop", Name: "web-1", Workload: "uid-of-web"}, []byte(change)), false},
		"nor of another workload":  {key.Seal(podhooks.Subject{Cluster: "east", Namespace: "shop", Name: "web-1", Workload: "uid-of-db"}, []byte(change)), false},
		"nor of one of that name":  {key.Seal(podhooks.Subject{Cluster: "east", Namespace: "bank", Name: "web-1", Workload: "uid-of-web"}, []byte(change)), false},
		"nor with another content": {strings.Replace(key.Seal(of, []byte(change)), "registry", "elsewhere", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			f.pod.Labels["admitted"], f.pod.Spec.Containers[0].Image = "yes", "registry/app:1"
			f.pod.Annotations = map[string]string{v1alpha1.AnnotationAdmitted: test.sealed}
			u := newUpstream(t, f.above, f.mirrored, namespace("shop"))
			u.synced, u.PodKey = nil, key // what is read is there
			g := u.Guard(nil)
			s := attach(t, u, "east", held(namespace("shop")), f.projected, f.replicaSet)
			owner := s.owners.OfMirror(f.pod)
			shown, err := s.pods.Showable(f.pod, *owner, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, proof := shown.Annotations[v1alpha1.AnnotationAdmitted]; proof != test.shown || (shown.Labels["admitted"] == "yes") != test.shown ||
				(shown.Spec.Containers[0].Image == "registry/app:1") != test.shown {
				t.Errorf("shown is %+v", shown)
			}
			asStored := func(p *corev1.Pod) *corev1.Pod { // as the storage makes it of what a syncer writes
				p = p.DeepCopy()
				p.UID = f.pod.UID
				for _, key := range []string{v1alpha1.AnnotationUID, v1alpha1.AnnotationCreated, v1alpha1.AnnotationGeneration} {
					delete(p.Annotations, key)
				}
				return p
			}
			if err := g.CreatePod("east", asStored(shown)); err != nil {
				t.Errorf("what the syncer shows is refused: %v", err)
			}
			forged := asStored(shown)
			forged.Labels["admitted"], forged.Spec.Containers[0].Image = "yes", "registry/app:1"
			forged.Annotations[v1alpha1.AnnotationAdmitted] = test.sealed
			if err := g.CreatePod("east", forged); (err == nil) != test.shown {
				t.Errorf("what is changed is refused with %v", err)
			}
			delete(forged.Annotations, v1alpha1.AnnotationAdmitted)
			if g.CreatePod("east", forged) == nil {
				t.Error("what is changed is let be shown without a proof")
			}
			// Once it is stored, nothing has to be proven, and nothing can be.
			stored := asStored(shown)
			delete(stored.Annotations, v1alpha1.AnnotationAdmitted)
			again, err := s.pods.Showable(f.pod, *owner, stored)
			if err != nil || !mirror.SamePod(again, stored) {
				t.Errorf("once it is stored, it is shown as %+v: %v", again, err)
			}
			late := stored.DeepCopy()
			late.Annotations[v1alpha1.AnnotationAdmitted] = test.sealed
			if g.UpdatePod("east", late, stored) == nil {
				t.Error("a mirror is given a proof")
			}
		})
	}
}

func TestTheTokenOfAClusterIsNotShown(t *testing.T) {
	url := podhooks.URL("https://manifold.example", "east", "secret")
	event := mirror.FitEvent(&corev1.Event{Message: `Post "` + url + `?timeout=20s": dial tcp: connection refused`})
	for _, shown := range []string{event.Message, summary.Text("failed calling webhook: " + url)} {
		if strings.Contains(shown, "secret") || !strings.Contains(shown, "manifold.example") {
			t.Errorf("shown is %q", shown)
		}
	}
}

func TestNamespacesAreLabelledWhereTheClusterIsToAsk(t *testing.T) {
	forPods := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mesh"}, Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "a.b.c", Rules: []admissionregistrationv1.RuleWithOperations{forPods}}},
	}
	above, web := namespace("shop"), deployment("web", toEast)
	u := newUpstream(t, above, web)
	s := attach(t, u, "east", held(above))
	allows := v1alpha1.ClusterAllows{PodWebhooks: true}
	s.Allows = func(string) v1alpha1.ClusterAllows { return allows }
	key := identity.Key{Resource: namespaceResource, Name: "shop"}
	labelled := func() string {
		t.Helper()
		kind, _ := projection.ForResource(namespaceResource)
		desired, _, err := s.desired(kind, above, s.below.Get(key))
		if err != nil || desired == nil {
			t.Fatalf("%v, %v", desired, err)
		}
		return desired.GetLabels()[v1alpha1.LabelPodWebhooks]
	}
	if got := labelled(); got != "" || !s.asksAbove("shop") {
		t.Errorf("without a webhook the label is %q", got)
	}
	if err := u.Webhooks[0].Add(configuration); err != nil {
		t.Fatal(err)
	}
	u.router.Webhooks().OnAdd(configuration, false)
	if got := s.enqueued(); !slices.Equal(got, []string{key.String()}) {
		t.Errorf("looked at is %v", got)
	}
	if got := labelled(); got != v1alpha1.PodWebhooksFail {
		t.Errorf("the label is %q", got)
	}
	if s.asksAbove("shop") || !s.asksAbove(metav1.NamespaceDefault) {
		t.Error("pods are made before the cluster knows that it is to ask")
	}
	if got := s.enqueued(); !slices.Equal(got, []string{key.String()}) {
		t.Errorf("looked at is %v", got)
	}
	s.below.Get(key).GetLabels()[v1alpha1.LabelPodWebhooks] = v1alpha1.PodWebhooksFail
	if !s.asksAbove("shop") {
		t.Error("no pods are made although the cluster knows that it is to ask")
	}
	allows.PodWebhooks = false
	if got := labelled(); got != "" || !s.asksAbove("shop") {
		t.Errorf("in a cluster that does not ask, the label is %q", got)
	}
	u.router.ClusterChanged(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1alpha1.ClusterSpec{Allows: v1alpha1.ClusterAllows{PodWebhooks: true}}},
		&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}})
	if got := s.enqueued(); !slices.Contains(got, key.String()) {
		t.Errorf("looked at is %v", got)
	}
	u.router.Webhooks().OnAdd(&admissionregistrationv1.MutatingWebhookConfiguration{}, false)
	if got := s.enqueued(); len(got) > 0 {
		t.Errorf("for a webhook that sees no pods, %v is looked at", got)
	}
}
