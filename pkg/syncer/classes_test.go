package syncer

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

var (
	priorityClasses = schedulingv1.SchemeGroupVersion.WithResource("priorityclasses")
	ingressClasses  = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")
	storageClasses  = storagev1.SchemeGroupVersion.WithResource("storageclasses")
)

func important(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "high" }

func ofClass(name string) *networkingv1.Ingress {
	in := ingress("site", "web")
	in.Spec.IngressClassName = ptr.To(name)
	return in
}

func ofStorage(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta("data"), Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(name)}}
}

// addClass makes an API have a class.
func addClass(t *testing.T, c classes, resource schema.GroupVersionResource, name string) {
	t.Helper()
	meta := objectMeta(name)
	meta.Namespace = ""
	var obj any = &schedulingv1.PriorityClass{ObjectMeta: meta}
	switch resource {
	case ingressClasses:
		obj = &networkingv1.IngressClass{ObjectMeta: meta}
	case storageClasses:
		obj = &storagev1.StorageClass{ObjectMeta: meta}
	}
	if err := c[resource].GetStore().Add(obj); err != nil {
		t.Fatal(err)
	}
}

func TestAClassThatIsMissingIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		of           projection.Object
		resource     schema.GroupVersionResource
		class        string
		above, below bool
		wantRefusal  string
		wantNote     string
	}{
		"a class of pods": {
			of: deployment("web", toEast, important), resource: priorityClasses, class: "high", above: true,
			wantRefusal: `it has no PriorityClass "high", without which it makes no pod of this: create it there, or name another one`,
		},
		"a class of pods that is there":             {of: deployment("web", toEast, important), resource: priorityClasses, class: "high", above: true, below: true},
		"a class of pods that is nowhere":           {of: deployment("web", toEast, important), resource: priorityClasses, class: "low", above: true},
		"a class of pods that is only in a cluster": {of: deployment("web", toEast, important), resource: priorityClasses, class: "high", below: true},
		"a class of an Ingress": {
			of: ofClass("nginx"), resource: ingressClasses, class: "nginx", above: true,
			wantNote: `it has no IngressClass "nginx", so nothing there acts on this: install what serves it, or name another one`,
		},
		"a class of volumes": {
			of: ofStorage("fast"), resource: storageClasses, class: "fast", above: true,
			wantNote: `it has no StorageClass "fast", so no volume is made there for this: install what serves it, or name another one`,
		},
		"a class of volumes that is there":             {of: ofStorage("fast"), resource: storageClasses, class: "fast", above: true, below: true},
		"a class of volumes that is only in a cluster": {of: ofStorage("fast"), resource: storageClasses, class: "fast", below: true},
		"a class of an Ingress that is there":          {of: ofClass("nginx"), resource: ingressClasses, class: "nginx", above: true, below: true},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t, test.of)
			s := attach(t, u, "east")
			if test.above {
				addClass(t, u.classes, test.resource, test.class)
			}
			if test.below {
				addClass(t, s.below.classes, test.resource, test.class)
			}
			kind, _ := projection.KindOf(test.of)
			missing := s.missing(kind, test.of)
			if got := refusal(missing); got != test.wantRefusal {
				t.Errorf("refused for %q, want %q", got, test.wantRefusal)
			}
			if got := note(missing); got != test.wantNote {
				t.Errorf("noted %q, want %q", got, test.wantNote)
			}
		})
	}
}

func TestAWorkloadWaitsForTheClassOfItsPods(t *testing.T) {
	web := deployment("web", toEast, important)
	u := newUpstream(t, web, namespace("shop"))
	s := attach(t, u, "east", namespace("shop"))
	addClass(t, u.classes, priorityClasses, "high")
	if err := s.sync(t.Context(), identity.KeyOf(deployments, web)); err != nil {
		t.Fatal(err)
	}
	const problem = `it has no PriorityClass "high", without which it makes no pod of this: create it there, or name another one`
	if got := s.stateOf(identity.KeyOf(deployments, web)).problem; got != problem {
		t.Errorf("problem %q, want %q", got, problem)
	}
	if got, want := <-s.events.Events, `Warning ClassMissing cluster "east": `+problem; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	addClass(t, s.below.classes, priorityClasses, "high")
	s.classHandler().OnAdd(nil, false)
	if got := s.enqueued(); !slices.Equal(got, []string{"deployments shop/web"}) {
		t.Errorf("%v are looked at once the class is there, want the Deployment", got)
	}
}

func TestANoteIsToldOnce(t *testing.T) {
	site := ofClass("nginx")
	kind, _ := projection.KindOf(site)
	s := attach(t, newUpstream(t, site), "east")
	for range 2 {
		s.tellNote(identity.KeyOf(kind, site), site, "nothing acts on it")
		s.setState(identity.KeyOf(kind, site), state{note: "nothing acts on it"})
	}
	if len(s.events.Events) != 1 {
		t.Errorf("%d events, want one", len(s.events.Events))
	}
}

func TestAProblemThatHasPassedIsToldOnTheWorkloads(t *testing.T) {
	web := deployment("web", toEast, usingSecret("key"))
	u := newUpstream(t, web, secret("key"))
	s := attach(t, u, "east")
	kind, _ := projection.KindOf(secret("key"))
	key := identity.KeyOf(kind, secret("key"))
	s.fail(key, secret("key"), steps.ReasonNotApplied, "no room")
	s.changes = nil
	s.done(key, kind, state{hash: "1"})
	s.done(key, kind, state{hash: "2"})
	if want := []change{{identity.KeyOf(deployments, web), false}}; !slices.Equal(s.changes, want) {
		t.Errorf("told of %+v, want %+v", s.changes, want)
	}
}

func TestTheClassesOfAClusterAreTold(t *testing.T) {
	s := attach(t, newUpstream(t), "east")
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	ours := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelLogicalCluster: s.target.LogicalCluster}}}
	for _, obj := range []metav1.Object{
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}}, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}}, ours,
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "not\na name"}},
	} {
		if err := s.below.classes[priorityClasses].GetStore().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: map[string]string{defaultStorage: "true"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: &wait},
	} {
		if err := s.below.classes[storageClasses].GetStore().Add(class); err != nil {
			t.Fatal(err)
		}
	}
	want := &v1alpha1.ClusterClasses{
		PriorityClasses: []string{"high", "low"},
		StorageClasses:  []v1alpha1.ClusterStorageClass{{Name: "fast", WaitForFirstConsumer: true}, {Name: "slow", Default: true}},
	}
	if got := s.below.classes.offered(s.target.LogicalCluster); !reflect.DeepEqual(got, want) {
		t.Errorf("classes %+v, want %+v", got, want)
	}
	for i := range mostClasses {
		addClass(t, s.below.classes, priorityClasses, fmt.Sprint("class-", i))
	}
	if got := s.below.classes.offered(s.target.LogicalCluster); got != nil {
		t.Errorf("more than can be told are told: %d", len(got.PriorityClasses))
	}
}
