package views

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/server/views"
)

const allViews, carried = v1alpha1.AnnotationViews, v1alpha1.AnnotationViewContents

// rights are what somebody may do, by verb.
type rights map[string]bool

func (r rights) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if r[a.GetVerb()] && a.GetNamespace() == "shop" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// seenBy returns a context of a user's request through the view of a cluster, or for "" on the plain path.
func seenBy(t *testing.T, cluster string) context.Context {
	t.Helper()
	ctx := request.WithNamespace(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}), "shop")
	if cluster == "" {
		return ctx
	}
	return views.With(ctx, cluster)
}

// both clusters hold a Deployment, each with replicas and an image of its own.
func shared(t *testing.T) (*store, *memory) {
	t.Helper()
	s, m := stored(t, "deployments")
	s.authorizer = rights{"update": true}
	for _, of := range []struct {
		cluster, image string
		replicas       int32
	}{{"east", "web:1", 2}, {"west", "web:9", 5}} {
		d := deployment("web", of.replicas, "kubectl.kubernetes.io/last-applied-configuration", of.cluster)
		d.Spec.Template.Spec.Containers[0].Image, d.Labels = of.image, map[string]string{"tier": of.cluster}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: of.cluster}}
		if _, err := s.Create(seenBy(t, of.cluster), d, all, nil); err != nil {
			t.Fatalf("made through the view of %s: %v", of.cluster, err)
		}
	}
	return s, m
}

// shows returns what a view shows of a Deployment, in short.
func shows(t *testing.T, s *store, cluster string) string {
	t.Helper()
	obj, err := s.Get(seenBy(t, cluster), "web", &metav1.GetOptions{})
	if err != nil {
		return "nothing"
	}
	d := obj.(*apps.Deployment)
	managers := ""
	for _, entry := range d.ManagedFields {
		managers += entry.Manager
	}
	return fmt.Sprintf("%d %s %s %s %s %s", d.Spec.Replicas, strings.TrimPrefix(d.Spec.Template.Spec.Containers[0].Image, "registry.east/"), d.Labels["tier"],
		d.Annotations["kubectl.kubernetes.io/last-applied-configuration"], managers, d.Annotations[pin])
}

func TestEachClusterHoldsWhatWasWrittenThroughItsOwnView(t *testing.T) {
	s, m := shared(t)
	for cluster, want := range map[string]string{
		"east": "2 web:1 east east east east", "west": "5 web:9 west west west west", "": "7 web:1 east east east east,west", "north": "nothing",
	} {
		if got := shows(t, s, cluster); got != want {
			t.Errorf("the view of %q shows %q, want %q", cluster, got, want)
		}
	}
	above := m.objects["web"].(*apps.Deployment)
	if len(m.objects) != 1 || above.UID != "uid" || above.Annotations[view] != "east,west" || strings.Contains(above.Annotations[carried], "web:9") {
		t.Errorf("stored with %v", above.Annotations)
	}
	w, err := s.kind.WorkloadOf(mustRead(t, s, above))
	if err != nil || !maps.Equal(w.Views, map[string]int32{"east": 2, "west": 5}) || w.Replicas != 7 {
		t.Errorf("placement is told %v of %d, %v", w.Views, w.Replicas, err)
	}

	if _, err := update(seenBy(t, "west"), s, "web", func(obj runtime.Object) {
		d := obj.(*apps.Deployment)
		d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image, d.Labels["tier"] = 6, "web:10", "far"
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := update(seenBy(t, "east"), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Spec.Replicas = 3 }); err != nil {
		t.Fatal(err)
	}
	for cluster, want := range map[string]string{"east": "3 web:1 east east east east", "west": "6 web:10 far west west west", "": "9 web:1 east east east east,west"} {
		if got := shows(t, s, cluster); got != want {
			t.Errorf("after changes the view of %q shows %q, want %q", cluster, got, want)
		}
	}
	// What is carried is what is held: earlier contents are dropped.
	contents, err := identity.ContentsOf(m.objects["web"].(metav1.Object))
	if err != nil || len(contents) != 1 {
		t.Errorf("%d contents are carried, %v", len(contents), err)
	}
	for cluster := range map[string]bool{"east": true, "west": true} {
		obj, _ := s.Get(seenBy(t, cluster), "web", &metav1.GetOptions{})
		for _, key := range hidden {
			if value, has := obj.(metav1.Object).GetAnnotations()[key]; has {
				t.Errorf("the view of %s shows %s: %s", cluster, key, value)
			}
		}
	}
}

func mustRead(t *testing.T, s *store, obj runtime.Object) (out interface {
	metav1.Object
	runtime.Object
}) {
	t.Helper()
	out, err := s.through(t.Context(), "").versioned(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAChangeOfNothingWritesNothingElse(t *testing.T) {
	s, m := shared(t)
	before := m.objects["web"].DeepCopyObject().(*apps.Deployment)
	for _, cluster := range []string{"east", "west"} {
		if _, err := update(seenBy(t, cluster), s, "web", func(runtime.Object) {}); err != nil {
			t.Fatal(err)
		}
	}
	after := m.objects["web"].DeepCopyObject().(*apps.Deployment)
	before.ResourceVersion, after.ResourceVersion = "", ""
	if !equality.Semantic.DeepEqual(before, after) {
		t.Errorf("stored\n%v, before\n%v", after, before)
	}
}

func TestAClusterLeavesAnObjectThatIsDeletedThroughItsView(t *testing.T) {
	for first, left := range map[string][2]string{"east": {"west", "5 web:9 west west west west"}, "west": {"east", "2 web:1 east east east east"}} {
		s, m := shared(t)
		if _, _, err := s.Delete(seenBy(t, first), "web", all, &metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil || !identity.Viewed(m.objects["web"].(metav1.Object)) {
			t.Fatalf("a dry run: %v", err)
		}
		orphan := metav1.DeletePropagationOrphan
		if _, _, err := s.Delete(seenBy(t, first), "web", all, &metav1.DeleteOptions{PropagationPolicy: &orphan}); !apierrors.IsBadRequest(err) {
			t.Errorf("orphaned: %v", err)
		}
		if _, _, err := s.Delete(seenBy(t, first), "web", func(context.Context, runtime.Object) error { return errors.New("no") }, nil); err == nil || shows(t, s, first) == "nothing" {
			t.Errorf("it leaves although admission says no: %v", err)
		}
		obj, gone, err := s.Delete(seenBy(t, first), "web", all, nil)
		if err != nil || !gone || obj.(*apps.Deployment).Annotations[pin] != first {
			t.Fatalf("%v %t %v", obj, gone, err)
		}
		above := m.objects["web"].(*apps.Deployment)
		if above.Annotations[pin] != left[0] || above.Annotations[view] != left[0] || above.Annotations[allViews]+above.Annotations[carried] != "" {
			t.Errorf("without %s it is stored with %v", first, above.Annotations)
		}
		for cluster, want := range map[string]string{first: "nothing", left[0]: left[1], "": left[1]} {
			if got := shows(t, s, cluster); got != want {
				t.Errorf("without %s the view of %q shows %q, want %q", first, cluster, got, want)
			}
		}
		if _, _, err := s.Delete(seenBy(t, first), "web", all, nil); !apierrors.IsNotFound(err) {
			t.Errorf("it leaves twice: %v", err)
		}
		// Now it is written at the logical cluster again, and moved by a pin as any other.
		if _, err := update(seenBy(t, ""), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Spec.MinReadySeconds = 1 }); err != nil || m.objects["web"].(metav1.Object).GetAnnotations()[view] != left[0] {
			t.Errorf("it is not written at the logical cluster: %v", err)
		}
		kept := m.objects["web"].DeepCopyObject()
		if _, err := update(seenBy(t, ""), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Annotations[pin] = "north" }); err != nil || m.objects["web"].(metav1.Object).GetAnnotations()[view] != "" {
			t.Errorf("it is not taken back: %v", err)
		}
		m.put(kept)
		if _, _, err := s.Delete(seenBy(t, left[0]), "web", all, nil); err != nil || len(m.objects) != 0 {
			t.Errorf("after the last one has left there is %v, %v", m.objects, err)
		}
	}
}

func TestWhatIsNotWrittenThroughAViewHasOneContent(t *testing.T) {
	controlled := configMap("applied", view, "west", pin, "west", decision, `{"west":{"replicas":0,"revision":"web-v7","target":"eu"}}`)
	going := configMap("going", view, "west", pin, "west")
	going.DeletionTimestamp = &metav1.Time{}
	s, m := stored(t, "configmaps", configMap("common"), configMap("pinned", pin, "west"), controlled, going)
	for _, name := range []string{"common", "applied", "going"} {
		if _, err := s.Create(seenBy(t, "east"), configMap(name), all, nil); !apierrors.IsAlreadyExists(err) || strings.Contains(err.Error(), "colour") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sets, _ := stored(t, "statefulsets")
	if l := sets.through(t.Context(), "east"); l.several() {
		t.Error("a StatefulSet of one name is another one in each cluster")
	}
	if m.version != 4 {
		t.Error("something was written")
	}
}

func TestWhoHasNoRightToChangeAnObjectDoesNotJoinIt(t *testing.T) {
	s, m := stored(t, "configmaps", configMap("web", view, "west", pin, "west"))
	for name, test := range map[string]struct {
		rights rights
		ctx    context.Context
	}{
		"who may make it alone":    {rights{"create": true, "patch": true}, seenBy(t, "east")},
		"who may change others":    {rights{"update": true}, request.WithNamespace(views.With(request.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"}), "east"), "bank")},
		"who is not known at all":  {rights{"update": true}, views.With(t.Context(), "east")},
		"who may not do anything ": {nil, seenBy(t, "east")},
	} {
		made := configMap("web")
		if name == "who may change others" {
			m.objects["web"].(*api.ConfigMap).Namespace = "bank"
		}
		s.authorizer = test.rights
		if _, err := s.Create(test.ctx, made, all, nil); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
		m.objects["web"].(*api.ConfigMap).Namespace = "shop"
	}
	s.authorizer = rights{"update": true}
	// Admission is asked about it as about one that is made.
	no := errors.New("admission says no")
	if _, err := s.Create(seenBy(t, "east"), configMap("web"), func(context.Context, runtime.Object) error { return no }, nil); !errors.Is(err, no) {
		t.Errorf("made although admission refuses it: %v", err)
	}
	// An apply asks for the right to make it by that.
	if _, _, err := s.Update(seenBy(t, "east"), "web", becomes(func(obj runtime.Object) { obj.(metav1.Object).SetName("web") }),
		func(context.Context, runtime.Object) error { return no }, allUpdates, true, nil); !errors.Is(err, no) {
		t.Errorf("applied although it may not be made: %v", err)
	}
	if _, _, err := s.Update(seenBy(t, "east"), "web", becomes(func(runtime.Object) {}), all, allUpdates, false, nil); !apierrors.IsNotFound(err) {
		t.Errorf("what the view does not show is changed: %v", err)
	}
	if m.version != 1 {
		t.Error("something was written")
	}
	_, made, err := s.Update(seenBy(t, "east"), "web", becomes(func(obj runtime.Object) {
		if obj.(metav1.Object).GetUID() != "" {
			t.Errorf("who applies it is shown %v", obj)
		}
		obj.(metav1.Object).SetName("web")
		obj.(*api.ConfigMap).Data = map[string]string{"colour": "red"}
	}), all, allUpdates, true, nil)
	if err != nil || !made {
		t.Fatalf("applied: made %t, %v", made, err)
	}
	if _, err := s.Create(seenBy(t, "east"), configMap("web"), all, nil); !apierrors.IsAlreadyExists(err) {
		t.Errorf("made twice: %v", err)
	}
	if got := m.objects["web"].(*api.ConfigMap); got.Data["colour"] != "web" || got.Annotations[view] != "east,west" || identity.ViewsOf(got).Index("west") != 0 {
		t.Errorf("stored %v", got)
	}
}

func TestNobodyWritesTheBookkeeping(t *testing.T) {
	forged := map[string]string{
		view: "east,north", allViews: `[{"cluster":"east"},{"cluster":"north","content":"beef"}]`, carried: `{"beef":"H4sI"}`,
	}
	for key, value := range forged {
		t.Run(key, func(t *testing.T) {
			s, m := shared(t)
			before := maps.Clone(m.objects["web"].(metav1.Object).GetAnnotations())
			forge := func(obj runtime.Object) { metav1.SetMetaDataAnnotation(&obj.(*apps.Deployment).ObjectMeta, key, value) }
			for _, cluster := range []string{"east", "west"} {
				if _, err := update(seenBy(t, cluster), s, "web", forge); !apierrors.IsForbidden(err) {
					t.Errorf("through the view of %s: %v", cluster, err)
				}
			}
			if _, err := s.Create(seenBy(t, "north"), deployment("web", 1, key, value), all, nil); !apierrors.IsForbidden(err) {
				t.Errorf("by one who joins: %v", err)
			}
			if _, err := s.Create(seenBy(t, "north"), deployment("new", 1, key, value), all, nil); !apierrors.IsForbidden(err) {
				t.Errorf("on one that is made: %v", err)
			}
			if _, err := update(seenBy(t, ""), s, "web", forge); err != nil { // whoever has read it may write it back
				t.Errorf("on the plain path: %v", err)
			}
			drop := func(obj runtime.Object) { delete(obj.(metav1.Object).GetAnnotations(), key) }
			if _, err := update(seenBy(t, ""), s, "web", drop); err != nil {
				t.Errorf("left out on the plain path: %v", err)
			}
			if got := m.objects["web"].(metav1.Object).GetAnnotations(); !maps.Equal(got, before) || m.objects["new"] != nil {
				t.Errorf("stored with %v, before %v", got, before)
			}
		})
	}
	// An object that no view has written does not become one.
	s, m := stored(t, "deployments", deployment("web", 2))
	if _, err := update(seenBy(t, ""), s, "web", func(obj runtime.Object) {
		for key, value := range forged {
			metav1.SetMetaDataAnnotation(&obj.(*apps.Deployment).ObjectMeta, key, value)
		}
	}); err != nil || len(m.objects["web"].(metav1.Object).GetAnnotations()) != 0 {
		t.Errorf("stored with %v, %v", m.objects["web"].(metav1.Object).GetAnnotations(), err)
	}
}

func TestAtTheLogicalClusterItIsNotWrittenUnlessItIsTakenBack(t *testing.T) {
	ctx := seenBy(t, "")
	for name, change := range map[string]func(d *apps.Deployment){
		"a template": func(d *apps.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:3" },
		"replicas":   func(d *apps.Deployment) { d.Spec.Replicas = 1 },
		"a label":    func(d *apps.Deployment) { d.Labels = nil },
		"what kubectl remembers": func(d *apps.Deployment) {
			d.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
		},
	} {
		s, m := shared(t)
		before := m.version
		if _, err := update(ctx, s, "web", func(obj runtime.Object) { change(obj.(*apps.Deployment)) }); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "clusters east, west hold it") || !strings.Contains(err.Error(), "/clusters/east") {
			t.Errorf("%s is changed: %v", name, err)
		}
		if m.version != before {
			t.Errorf("%s is stored", name)
		}
	}
	s, m := shared(t)
	if _, err := update(ctx, s, "web", func(obj runtime.Object) {
		d := obj.(*apps.Deployment)
		d.Finalizers, d.Status.Replicas, d.Annotations[pin], d.Annotations[v1alpha1.AnnotationDrainSeconds] = []string{"a/b"}, 4, "west, east", "3"
	}); err != nil || !identity.Viewed(m.objects["web"].(metav1.Object)) {
		t.Errorf("what is no cluster's content is not written: %v", err)
	}
	controller := request.WithUser(t.Context(), &user.DefaultInfo{Name: v1alpha1.PlacementUser})
	if _, err := update(controller, s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Annotations[decision] = both }); err != nil ||
		m.objects["web"].(metav1.Object).GetAnnotations()[decision] != both {
		t.Errorf("a decision is not written: %v", err)
	}
	label := func(obj runtime.Object) { obj.(*apps.Deployment).Labels["a"] = "b" }
	delivers := request.WithUser(t.Context(), &user.DefaultInfo{Name: v1alpha1.DeliveryUser})
	if _, err := update(delivers, s, "web", label); !apierrors.IsForbidden(err) {
		t.Errorf("an application changes it: %v", err)
	}
	if _, err := update(request.WithUser(t.Context(), &user.DefaultInfo{Name: v1alpha1.SummaryUser}), s, "web", label); err != nil {
		t.Errorf("a controller notes nothing on it: %v", err)
	}
	for name, change := range map[string]func(d *apps.Deployment){
		"with another pin":   func(d *apps.Deployment) { d.Annotations[pin] = "*" },
		"with fewer":         func(d *apps.Deployment) { d.Annotations[pin] = "west" },
		"without a pin":      func(d *apps.Deployment) { delete(d.Annotations, pin) },
		"together with more": func(d *apps.Deployment) { d.Annotations[pin], d.Spec.Replicas = "*", 9 },
	} {
		s, m := shared(t)
		if _, err := update(ctx, s, "web", func(obj runtime.Object) { change(obj.(*apps.Deployment)) }); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := m.objects["web"].(metav1.Object).GetAnnotations(); got[view]+got[allViews]+got[carried] != "" {
			t.Errorf("%s it is stored with %v", name, got)
		}
	}
}

func TestWhatSteersTheWholeIsNotChangedThroughOneView(t *testing.T) {
	s, m := shared(t)
	for name, change := range map[string]func(d *apps.Deployment){
		"owners": func(d *apps.Deployment) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u"}}
		},
		"finalizers":            func(d *apps.Deployment) { d.Finalizers = []string{"a/b"} },
		"where volumes may be":  func(d *apps.Deployment) { d.Annotations[v1alpha1.AnnotationVolumes] = v1alpha1.VolumesRecreate },
		"which application has": func(d *apps.Deployment) { d.Annotations["delivery.manifold.dev/content"] = "web-v1/x" },
	} {
		if _, err := update(seenBy(t, "west"), s, "web", func(obj runtime.Object) { change(obj.(*apps.Deployment)) }); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "metadata.") {
			t.Errorf("%s: %v", name, err)
		}
		d := deployment("web", 1)
		change(d)
		if _, err := s.Create(seenBy(t, "north"), d, all, nil); !apierrors.IsInvalid(err) {
			t.Errorf("%s by one who joins: %v", name, err)
		}
	}
	if m.version != 2 {
		t.Error("something was written")
	}
}

func TestWhatCannotBeChangedIsTheSameInAllClusters(t *testing.T) {
	s, m := shared(t)
	m.refuses = func(obj, old runtime.Object) error {
		if obj.(*apps.Deployment).Spec.Selector.MatchLabels["app"] != old.(*apps.Deployment).Spec.Selector.MatchLabels["app"] {
			return apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
		}
		return nil
	}
	other := deployment("web", 1)
	other.Spec.Selector.MatchLabels["app"] = "other"
	if _, err := s.Create(seenBy(t, "north"), other, all, nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the same in all clusters") {
		t.Errorf("it joins: %v", err)
	}
	if _, err := update(seenBy(t, "west"), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Spec.Selector.MatchLabels["app"] = "other" }); !apierrors.IsInvalid(err) {
		t.Errorf("it is changed: %v", err)
	}
	if m.version != 2 {
		t.Error("something was written")
	}
}

func TestAdmissionSeesWhatTheClusterIsToHoldAndTheWhole(t *testing.T) {
	s, _ := shared(t)
	var seen []string
	_, _, err := s.Update(seenBy(t, "west"), "web", becomes(func(obj runtime.Object) { obj.(*apps.Deployment).Spec.Template.Spec.Containers[0].Image = "web:10" }), all,
		func(_ context.Context, obj, old runtime.Object) error {
			is, was := obj.(*apps.Deployment), old.(*apps.Deployment)
			seen = append(seen, fmt.Sprintf("%d %s of %d %s", is.Spec.Replicas, is.Spec.Template.Spec.Containers[0].Image, was.Spec.Replicas, was.Spec.Template.Spec.Containers[0].Image))
			return nil
		}, false, &metav1.UpdateOptions{})
	if want := "[5 web:10 of 5 web:9 7 web:1 of 7 web:1]"; err != nil || fmt.Sprint(seen) != want {
		t.Errorf("asked about %v, %v, want %s", seen, err, want)
	}
	no := errors.New("no")
	if _, _, err := s.Update(seenBy(t, "west"), "web", becomes(func(obj runtime.Object) { obj.(*apps.Deployment).Spec.Replicas = 1 }), all,
		func(context.Context, runtime.Object, runtime.Object) error { return no }, false, &metav1.UpdateOptions{}); !errors.Is(err, no) || !strings.HasPrefix(shows(t, s, "west"), "5 web:10") {
		t.Errorf("written although admission refuses it: %v", err)
	}
}

func TestWhatOneHasSeenBeforeAnotherWroteIsAConflict(t *testing.T) {
	s, m := shared(t)
	m.compares = true
	obj, err := s.Get(seenBy(t, "west"), "web", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := update(seenBy(t, "east"), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Spec.Replicas = 3 }); err != nil {
		t.Fatal(err)
	}
	stale := rest.DefaultUpdatedObjectInfo(obj)
	if _, _, err := s.Update(seenBy(t, "west"), "web", stale, all, allUpdates, false, nil); !apierrors.IsConflict(err) {
		t.Errorf("what was seen before is written: %v", err)
	}
}

func TestTwoWhoMakeAnObjectAtOnceBothHoldIt(t *testing.T) {
	s, m := stored(t, "configmaps")
	s.authorizer = rights{"update": true}
	m.meanwhile = func() {
		m.meanwhile = nil
		if _, err := s.Create(seenBy(t, "west"), configMap("web"), all, nil); err != nil {
			t.Error(err)
		}
	}
	conflicts := 2
	m.refuses = func(obj, _ runtime.Object) error {
		if conflicts--; conflicts < 0 {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("another one joins"))
	}
	mine := configMap("web")
	mine.Data["colour"] = "red"
	made, err := s.Create(seenBy(t, "east"), mine, all, nil)
	if err != nil || made.(*api.ConfigMap).Data["colour"] != "red" {
		t.Fatalf("made %v, %v", made, err)
	}
	if got := m.objects["web"].(*api.ConfigMap); got.Data["colour"] != "web" || len(identity.ViewsOf(got)) != 2 {
		t.Errorf("stored %v", got)
	}
}

func TestWhatClustersHoldTogetherIsBounded(t *testing.T) {
	s, m := stored(t, "configmaps", configMap("web", view, "west", pin, "west"))
	s.authorizer = rights{"update": true}
	noise := strings.Builder{}
	for i := range 60000 {
		fmt.Fprintf(&noise, "%x.", i*i*7919)
	}
	large := configMap("web")
	large.Data["noise"] = noise.String()
	if _, err := s.Create(seenBy(t, "east"), large, all, nil); !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "another namespace") {
		t.Errorf("it is carried: %v", err)
	}
	if m.version != 1 {
		t.Error("something was written")
	}
}

func TestObjectsAreSelectedByTheLabelsThatTheViewShows(t *testing.T) {
	s, m := shared(t)
	options := &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"tier": "west"})}
	for cluster, want := range map[string]int{"east": 0, "west": 1} {
		list, err := s.List(seenBy(t, cluster), options)
		if err != nil || len(list.(*apps.DeploymentList).Items) != want {
			t.Errorf("the view of %s lists %v, %v", cluster, list, err)
		}
	}
	w, err := s.Watch(seenBy(t, "west"), options)
	if err != nil {
		t.Fatal(err)
	}
	with := m.objects["web"].DeepCopyObject()
	m.events.Add(with)
	if _, err := update(seenBy(t, "west"), s, "web", func(obj runtime.Object) { obj.(*apps.Deployment).Labels["tier"] = "far" }); err != nil {
		t.Fatal(err)
	}
	m.events.Modify(m.objects["web"])
	m.events.Modify(with)
	m.events.Stop()
	var got []watch.EventType
	for event := range w.ResultChan() {
		got = append(got, event.Type)
	}
	if fmt.Sprint(got) != "[ADDED DELETED ADDED]" {
		t.Errorf("told %v", got)
	}
}

// scales is the scale of what is in memory.
type scales struct {
	stockScale
	of *memory
}

func (s scales) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	d := s.of.objects[name].(*apps.Deployment)
	return &autoscaling.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, UID: d.UID, ResourceVersion: d.ResourceVersion}, Spec: autoscaling.ScaleSpec{Replicas: d.Spec.Replicas}}, nil
}

func TestEachViewHasAScaleOfItsOwn(t *testing.T) {
	s, m := shared(t)
	storage := map[string]rest.Storage{"deployments/scale": scales{of: m}}
	if err := s.changeScale(storage); err != nil {
		t.Fatal(err)
	}
	scaled := storage["deployments/scale"].(*scale)
	for cluster, want := range map[string]int32{"east": 2, "west": 5, "": 7} {
		got, err := scaled.Get(seenBy(t, cluster), "web", &metav1.GetOptions{})
		if err != nil || got.(*autoscaling.Scale).Spec.Replicas != want {
			t.Errorf("the scale in the view of %q is %v, %v", cluster, got, err)
		}
	}
	to := func(n int32) rest.UpdatedObjectInfo {
		return becomes(func(obj runtime.Object) { obj.(*autoscaling.Scale).Spec.Replicas = n })
	}
	if obj, _, err := scaled.Update(seenBy(t, "west"), "web", to(1), all, allUpdates, false, nil); err != nil || obj.(*autoscaling.Scale).Spec.Replicas != 1 {
		t.Errorf("scaled to %v, %v", obj, err)
	}
	if _, _, err := scaled.Update(seenBy(t, ""), "web", to(4), all, allUpdates, false, nil); !apierrors.IsForbidden(err) {
		t.Errorf("scaled at the logical cluster: %v", err)
	}
	if _, _, err := scaled.Update(seenBy(t, "north"), "web", to(4), all, allUpdates, false, nil); !apierrors.IsNotFound(err) {
		t.Errorf("scaled through the view of a cluster that has none: %v", err)
	}
	if got := shows(t, s, "west") + "; " + shows(t, s, "east"); got != "1 web:9 west west west west; 2 web:1 east east east east" {
		t.Errorf("after scaling: %s", got)
	}
	v := &Viewed{stores: map[schema.GroupVersionResource]*store{s.kind.Resource: s}}
	if err := v.Check(seenBy(t, "west"), s.kind.Resource, "status", "web", true); !apierrors.IsForbidden(err) {
		t.Errorf("its status is written: %v", err)
	}
	if err := v.Check(seenBy(t, "west"), s.kind.Resource, "scale", "web", true); err != nil {
		t.Errorf("its scale is not written: %v", err)
	}
}

func TestAViewTellsOfARolloutWhateverOthersSay(t *testing.T) {
	s, m := shared(t)
	d := m.objects["web"].(*apps.Deployment)
	d.Generation, d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = 7, 5, 9, 1
	d.Annotations[decision] = `{"east":{"replicas":2},"west":{"replicas":5}}`
	for name, test := range map[string]struct {
		breakdown              string
		observed, updated, all int32
	}{
		"its cluster has seen it":               {`{"east":{"generation":5,"replicas":2},"west":{"generation":7,"replicas":5,"updated":5,"available":5}}`, 7, 5, 5},
		"its cluster alone has said anything":   {`{"west":{"generation":7,"replicas":5,"updated":4}}`, 7, 4, 5},
		"its cluster has not seen it":           {`{"east":{"generation":7,"replicas":2,"updated":2},"west":{"generation":6,"replicas":5,"updated":5}}`, 6, 5, 5},
		"its cluster has not said anything yet": {`{"east":{"generation":7,"replicas":2,"updated":2}}`, 0, 0, 0},
	} {
		d.Annotations[breakdown] = test.breakdown
		obj, err := s.Get(seenBy(t, "west"), "web", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := obj.(*apps.Deployment).Status; got.ObservedGeneration != int64(test.observed) || got.UpdatedReplicas != test.updated || got.Replicas != test.all {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
