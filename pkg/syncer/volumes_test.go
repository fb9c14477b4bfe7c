package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/mirror"
	"github.com/manifold-dev/manifold/pkg/projection"
)

var claimName = cache.NewObjectName("shop", "data-db-0")

// estate is a StatefulSet above, its projection, and the claim that a cluster made of its template.
type estate struct {
	above, projected *appsv1.StatefulSet
	claim            *corev1.PersistentVolumeClaim
}

func newEstate(decision string) *estate {
	e := &estate{above: &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}}
	e.above.Annotations = map[string]string{v1alpha1.AnnotationPlacement: decision}
	e.above.Spec.Replicas = ptr.To[int32](2)
	e.above.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	e.above.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	e.projected = e.above.DeepCopy()
	e.projected.UID = "uid-below"
	e.projected.Labels = map[string]string{v1alpha1.LabelLogicalCluster: logicalCluster}
	e.projected.Annotations = map[string]string{
		v1alpha1.AnnotationNamespace: "shop", v1alpha1.AnnotationName: "db", v1alpha1.AnnotationUID: string(e.above.UID),
	}
	e.claim = &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta("data-db-0")}
	e.claim.Labels = map[string]string{"app": "db"}
	e.claim.Finalizers = []string{mirror.InUse}
	e.claim.Spec.VolumeName = "pv-1"
	e.claim.Status.Phase = corev1.ClaimBound
	return e
}

// shown is the mirror as the logical cluster stores it.
func (e *estate) shown(cluster string) *corev1.PersistentVolumeClaim {
	m := e.claim.DeepCopy()
	m.Finalizers = append(m.Finalizers, v1alpha1.FinalizerProjection)
	m.Annotations = map[string]string{v1alpha1.AnnotationCluster: cluster}
	return m
}

func TestSyncClaim(t *testing.T) {
	type objects = []projection.Object
	const eastHasBoth, westHasBoth = `{"east":{"replicas":2}}`, `{"west":{"replicas":2}}`
	everything := func(e *estate, more ...projection.Object) (above, below objects) {
		return append(objects{namespace("shop"), e.above}, more...), objects{e.projected, e.claim}
	}
	for name, test := range map[string]struct {
		decision string // eastHasBoth if empty
		prepare  func(e *estate) (above, below objects)
		want     []string
		wantErr  error
	}{
		"a new claim is shown": {
			prepare: func(e *estate) (above, below objects) { return everything(e) }, want: []string{"create"},
		},
		"one that is made as its StatefulSet goes is shown too": {
			prepare: func(e *estate) (above, below objects) {
				above, _ = everything(e)
				e.above.DeletionTimestamp = &metav1.Time{}
				return above, objects{e.claim}
			}, want: []string{"create"},
		},
		"one that is there before its StatefulSet comes is somebody else's": {
			prepare: func(e *estate) (above, below objects) {
				above, _ = everything(e)
				return above, objects{e.claim}
			},
		},
		"what is shown well is left alone": {
			prepare: func(e *estate) (above, below objects) { return everything(e, e.shown("east")) },
		},
		"what has changed is updated": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				e.claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
				return everything(e, shown)
			},
			want: []string{"update"},
		},
		"whether pods use it is known better above": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				e.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimUnused}}
				return everything(e, shown)
			},
		},
		"owners that only the logical cluster knows stay": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				shown.OwnerReferences = []metav1.OwnerReference{{APIVersion: "db.example.com/v1", Kind: "Database", Name: "db", UID: "y"}}
				return everything(e, shown)
			},
		},
		"an owner that the cluster knows no more goes": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				shown.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "uid-of-db"}}
				return everything(e, shown)
			},
			want: []string{"update"},
		},
		"somebody else's claim is not shown": {
			prepare: func(e *estate) (above, below objects) {
				e.claim.Labels = nil
				return everything(e)
			},
		},
		"nor is one of no template": {
			prepare: func(e *estate) (above, below objects) {
				e.projected.Spec.VolumeClaimTemplates = nil
				return everything(e)
			},
		},
		"nor is a projected one": {
			prepare: func(e *estate) (above, below objects) {
				e.claim.Labels[v1alpha1.LabelLogicalCluster] = logicalCluster
				return everything(e)
			},
		},
		"the user's own claim is left alone": {
			prepare: func(e *estate) (above, below objects) {
				own := e.claim.DeepCopy()
				own.Annotations = nil
				return everything(e, own)
			},
		},
		"a claim outlives its StatefulSet": {
			prepare: func(e *estate) (above, below objects) {
				return objects{namespace("shop"), e.shown("east")}, objects{e.claim}
			},
		},
		"what is gone below goes": {
			prepare: func(e *estate) (above, below objects) {
				return objects{namespace("shop"), e.above, e.shown("east")}, objects{e.projected}
			},
			want: []string{"delete", "patch"},
		},
		"the mirror of an earlier claim of that name goes": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				shown.UID = "earlier"
				return everything(e, shown)
			},
			want: []string{"delete", "patch"},
		},
		"a claim that is being deleted is shown as such": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				e.claim.DeletionTimestamp = &metav1.Time{}
				return everything(e, shown)
			},
			want: []string{"delete"},
		},
		"a mirror that is being deleted while its claim is not is made anew": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				shown.DeletionTimestamp = &metav1.Time{}
				return everything(e, shown)
			},
			want: []string{"patch"},
		},
		"nothing is shown in a namespace that goes": {
			prepare: func(e *estate) (above, below objects) {
				going := namespace("shop")
				going.DeletionTimestamp = &metav1.Time{}
				return objects{going, e.above}, objects{e.projected, e.claim}
			},
		},
		"a claim that the pod has left behind is not shown": {
			decision: westHasBoth,
			prepare:  func(e *estate) (above, below objects) { return everything(e) },
		},
		"but stays shown until the other is": {
			decision: westHasBoth,
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				e.claim.Spec.VolumeName = "pv-2"
				return everything(e, shown)
			},
			want: []string{"update"},
		},
		"labels that the cluster gives a claim are not shown": {
			prepare: func(e *estate) (above, below objects) {
				shown := e.shown("east")
				e.claim.Labels["new"] = "label"
				return everything(e, shown)
			},
		},
		"a claim of a template that the one above does not have is not shown": {
			prepare: func(e *estate) (above, below objects) {
				e.above.Spec.VolumeClaimTemplates = nil
				return everything(e)
			},
			wantErr: errNotYet,
		},
		"the claim that the pod uses now takes the place of the other": {
			prepare: func(e *estate) (above, below objects) { return everything(e, e.shown("west")) },
			want:    []string{"delete", "patch"},
		},
		"another cluster's mirror is not ours to delete": {
			decision: westHasBoth,
			prepare:  func(e *estate) (above, below objects) { return everything(e, e.shown("west")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.decision == "" {
				test.decision = eastHasBoth
			}
			above, below := test.prepare(newEstate(test.decision))
			s := attach(t, newUpstream(t, above...), "east", below...)
			for _, obj := range above {
				if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
					if err := s.above.Tracker().Add(claim); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.claims.Sync(t.Context(), claimName); err != test.wantErr {
				t.Fatalf("error %v, want %v", err, test.wantErr)
			}
			var got []string
			for _, action := range s.above.Actions() {
				got = append(got, action.GetVerb())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("writes %v, want %v", got, test.want)
			}
			if asked := s.client.(*fake.Clientset).Actions(); len(asked) > 0 {
				t.Errorf("the cluster was asked for %v", asked)
			}
		})
	}
}

func TestClaimOwnersAreThoseAbove(t *testing.T) {
	for name, test := range map[string]struct {
		kind, name, uid string
		change          func(e *estate)
		want            string // the UID of the owner above; "" for none
	}{
		"the StatefulSet":            {kind: "StatefulSet", name: "db", uid: "uid-below", want: "uid-of-db"},
		"another one of that name":   {kind: "StatefulSet", name: "db", uid: "earlier"},
		"one that goes above":        {kind: "StatefulSet", name: "db", uid: "uid-below", change: func(e *estate) { e.above.DeletionTimestamp = &metav1.Time{} }},
		"one that was made anew":     {kind: "StatefulSet", name: "db", uid: "uid-below", change: func(e *estate) { e.above.UID = "another" }},
		"a mirrored pod":             {kind: "Pod", name: "db-1", uid: "uid-of-db-1", want: "uid-of-db-1"},
		"a pod of the user's own":    {kind: "Pod", name: "own", uid: "own-below", want: "uid-of-own"},
		"a pod that is not shown":    {kind: "Pod", name: "db-7", uid: "uid-of-db-7"},
		"something of its cluster's": {kind: "Operator", name: "db", uid: "uid-of-db"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(`{"east":{"replicas":2}}`)
			if test.change != nil {
				test.change(e)
			}
			mirrored, own := &corev1.Pod{ObjectMeta: objectMeta("db-1")}, &corev1.Pod{ObjectMeta: objectMeta("own")}
			mirrored.Annotations = map[string]string{v1alpha1.AnnotationCluster: "east"}
			own.Annotations = map[string]string{v1alpha1.AnnotationPodUID: "own-below"}
			s := attach(t, newUpstream(t, e.above, mirrored, own), "east", e.projected)
			version := "apps/v1"
			if test.kind == "Pod" {
				version = "v1"
			}
			e.claim.Name = "scratch"
			e.claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: test.kind, Name: test.name, UID: types.UID(test.uid)}}
			owners, ours := s.claims.OwnersOf(e.claim)
			if got := len(owners) == 1 && string(owners[0].UID) == test.want; got != (test.want != "") || ours != (test.want != "") {
				t.Errorf("owners %v, ours %t; want %q", owners, ours, test.want)
			}
			if test.want != "" && (owners[0].Name != test.name || owners[0].Kind != test.kind) {
				t.Errorf("owner %v", owners[0])
			}
		})
	}
}

func TestPreparedClaimsGoWhereTheirReplicaGoes(t *testing.T) {
	kind, _ := projection.ForResource(claimResource)
	prepared := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(name)}
	}
	e := newEstate(`{"east":{"replicas":1},"west":{"replicas":1,"start":1}}`)
	claims := []projection.Object{prepared("data-db-0"), prepared("data-db-1"), prepared("data-db-2"), prepared("log-db-0")}
	u := newUpstream(t, append(claims, e.above, namespace("shop"))...)
	for cluster, want := range map[string][]string{"east": {"data-db-0"}, "west": {"data-db-1"}} {
		var got []string
		for _, claim := range claims {
			if u.Demand.Wanted(kind, claim, cluster) {
				got = append(got, claim.GetName())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s gets %v, want %v", cluster, got, want)
		}
	}
	var dependents []string
	for _, key := range u.Demand.Dependents(identity.Workload{Kind: setKind, Object: e.above}) {
		if key.Resource == claimResource {
			dependents = append(dependents, key.Name)
		}
	}
	if slices.Sort(dependents); !slices.Equal(dependents, []string{"data-db-0", "data-db-1", "data-db-2"}) {
		t.Errorf("looked at with their StatefulSet are %v", dependents)
	}
}

func TestAStatefulSetWaitsForPreparedClaims(t *testing.T) {
	e := newEstate(`{"east":{"replicas":2}}`)
	prepared := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta("data-db-0")}
	u := newUpstream(t, e.above, prepared, namespace("shop"))
	s := attach(t, u, "east")
	if s.bounded(identity.Workload{Kind: setKind, Object: e.above}) {
		t.Error("its controller may make the claim that the user has made")
	}
	kind, _ := projection.ForResource(claimResource)
	there, err := kind.Project(prepared, projection.Part{}, s.target)
	if err != nil {
		t.Fatal(err)
	}
	hold(t, map[schema.GroupVersionResource]cache.Store{claimResource: s.below.Stores[claimResource]}, []projection.Object{there})
	if !s.bounded(identity.Workload{Kind: setKind, Object: e.above}) {
		t.Error("it waits although the claim is there")
	}
}

func TestAControllersClaimYieldsToTheUsersOwn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(claim *corev1.PersistentVolumeClaim)
		want   bool
	}{
		"one that was made for our StatefulSet": {func(*corev1.PersistentVolumeClaim) {}, true},
		"not somebody else's":                   {func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }, false},
		"not that of another logical cluster":   {func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelLogicalCluster] = "another" }, false},
		"not one that goes":                     {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(`{"east":{"replicas":2}}`)
			test.change(e.claim)
			if got := attach(t, newUpstream(t, e.above), "east", e.projected).claims.Yields(e.claim); got != test.want {
				t.Errorf("yields: %t, want %t", got, test.want)
			}
		})
	}
}
