package classes

import (
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/physical"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/trust"
)

var (
	ingressClasses = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")
	storageClasses = storagev1.SchemeGroupVersion.WithResource("storageclasses")
)

// having are the classes of an API that has these.
func having(t *testing.T, all ...metav1.Object) Set {
	t.Helper()
	set, err := Of(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range all {
		resource := identity.Priorities
		switch class.(type) {
		case *networkingv1.IngressClass:
			resource = ingressClasses
		case *storagev1.StorageClass:
			resource = storageClasses
		}
		if err := set[resource].GetStore().Add(class); err != nil {
			t.Fatal(err)
		}
	}
	return set
}

func priority(name string) metav1.Object {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func ofPriority(name string) projection.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	d.Spec.Template.Spec.PriorityClassName = name
	return d
}

func ofClass(name string) projection.Object {
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site"}, Spec: networkingv1.IngressSpec{IngressClassName: ptr.To(name)}}
}

func ofStorage(name string) projection.Object {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(name)},
	}
}

func ofEphemeral(name string) projection.Object {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(name)}},
	}}}}
	return d
}

func TestAClassThatIsMissingIsTold(t *testing.T) {
	manual := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "manual"}, Provisioner: noProvisioner}
	for name, test := range map[string]struct {
		of           projection.Object
		class        metav1.Object
		above, below bool
		byHand       string // the class, and in which namespace claims get volumes of it that were made by hand
		bound        bool   // the cluster has bound the claim
		wantRefusal  string
		wantNote     string
	}{
		"a class of pods": {
			of: ofPriority("high"), class: priority("high"), above: true,
			wantRefusal: `it has no PriorityClass "high", without which it makes no pod of this: create it there, or name another one`,
		},
		"a class of pods that is there":             {of: ofPriority("high"), class: priority("high"), above: true, below: true},
		"a class of pods that is nowhere":           {of: ofPriority("high"), class: priority("low"), above: true},
		"a class of pods that is only in a cluster": {of: ofPriority("high"), class: priority("high"), below: true},
		"a class of an Ingress": {
			of: ofClass("nginx"), class: &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}, above: true,
			wantNote: `it has no IngressClass "nginx", so nothing there acts on this: install what serves it, or name another one`,
		},
		"a class of volumes": {
			of: ofStorage("fast"), class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, above: true,
			wantNote: `it has no StorageClass "fast", so no volume is made there for this: install what serves it, or name another one`,
		},
		"a class of volumes that is there":             {of: ofStorage("fast"), class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, above: true, below: true},
		"a class of volumes that is only in a cluster": {of: ofStorage("fast"), class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}, below: true},
		"a class of an Ingress that is there":          {of: ofClass("nginx"), class: &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}, above: true, below: true},

		"a class by which a claim finds a volume that was made by hand": {of: ofStorage("manual"), class: manual, above: true, byHand: "manual in shop"},
		"a class by which only others find one": {
			of: ofStorage("manual"), class: manual, above: true, byHand: "manual in bank",
			wantNote: `it has no StorageClass "manual", so no volume is made there for this: install what serves it, or name another one`,
		},
		"a class of a claim that has got a volume there": {of: ofStorage("manual"), class: manual, above: true, bound: true},
		"a class of volumes that pods have made for themselves": {
			of: ofEphemeral("manual"), class: manual, above: true, byHand: "manual in shop",
			wantNote: `it has no StorageClass "manual", so no volume is made there for this: install what serves it, or name another one`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, _ := projection.KindOf(test.of)
			c := New(Options{
				Cluster: clusterWith(t, kind, test.of, test.bound), Above: having(t), Here: having(t),
				ByHand: func(class, namespace string) bool { return class+" in "+namespace == test.byHand },
			})
			if test.above {
				c.Above = having(t, test.class)
			}
			if test.below {
				c.Here = having(t, test.class)
			}
			missing := c.Missing(kind, test.of)
			if got := refusal(missing); got != test.wantRefusal {
				t.Errorf("refused for %q, want %q", got, test.wantRefusal)
			}
			if got := Note(missing); got != test.wantNote {
				t.Errorf("noted %q, want %q", got, test.wantNote)
			}
		})
	}
}

// clusterWith is a cluster that has the projection of an object: a claim that is bound, or waits.
func clusterWith(t *testing.T, kind projection.Kind, above projection.Object, bound bool) *trust.Cluster {
	t.Helper()
	out := &trust.Cluster{
		Name: "east", LogicalCluster: "logical", Below: physical.New(), Wanted: func(projection.Kind, projection.Object, string) bool { return true },
	}
	live, err := kind.Project(above, projection.Part{}, out.Target())
	if err != nil {
		t.Fatal(err)
	}
	if claim, is := live.(*corev1.PersistentVolumeClaim); is && bound {
		claim.Status.Phase = corev1.ClaimBound
	}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := store.Add(live); err != nil {
		t.Fatal(err)
	}
	out.Below.Stores[kind.Resource] = store
	return out
}

func TestANoteIsToldOnce(t *testing.T) {
	site := ofClass("nginx")
	kind, _ := projection.KindOf(site)
	events := record.NewFakeRecorder(100)
	c := New(Options{
		Cluster: &trust.Cluster{Name: "east", States: states.New(func(identity.Key) {}, func(identity.Key) {})}, Recorder: events,
	})
	for range 2 {
		c.TellNote(identity.KeyOf(kind, site), site, "nothing acts on it")
		c.States.Set(identity.KeyOf(kind, site), states.State{Note: "nothing acts on it"})
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events, want one", len(events.Events))
	}
}

func TestTheClassesOfAClusterAreTold(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	ours := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.LabelLogicalCluster: "logical"}}}
	has := having(t, priority("low"), priority("high"), ours, priority("not\na name"),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "slow", Annotations: map[string]string{defaultStorage: "true"}}},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: &wait},
	)
	want := &v1alpha1.ClusterClasses{
		PriorityClasses: []string{"high", "low"},
		StorageClasses:  []v1alpha1.ClusterStorageClass{{Name: "fast", WaitForFirstConsumer: true}, {Name: "slow", Default: true}},
	}
	if got := has.OfferedTo("logical"); !reflect.DeepEqual(got, want) {
		t.Errorf("classes %+v, want %+v", got, want)
	}
	var many []metav1.Object
	for i := range mostClasses + 1 {
		many = append(many, priority(fmt.Sprint("class-", i)))
	}
	has = having(t, many...)
	if got := has.OfferedTo("logical"); got != nil {
		t.Errorf("more than can be told are told: %d", len(got.PriorityClasses))
	}
}
