package workloads

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/apps"
	replicasetstrategy "k8s.io/kubernetes/pkg/registry/apps/replicaset"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// keeping decides as decide.Place does: the last decision's revisions stay, and all replicas go to one cluster.
type keeping struct {
	placer
	cluster string
}

func (k *keeping) Place(w placement.Workload, current placement.Decision) (placement.Result, bool) {
	result, ready := k.placer.Place(w, current)
	if len(result.Decision) > 0 {
		result.Decision = placement.Decision{k.cluster: {Replicas: w.Replicas}}.Holding(current)
	}
	return result, ready
}

func at(cluster string, replicas int32, revision string) string {
	return fmt.Sprintf(`{"%s":{"replicas":%d,"revision":"%s","target":"eu"}}`, cluster, replicas, revision)
}

func governed(replicas int32, annotation string) *apps.Deployment {
	d := stored(replicas)
	d.Annotations[v1alpha1.AnnotationPlacement] = annotation
	if annotation == "" {
		delete(d.Annotations, v1alpha1.AnnotationPlacement)
	}
	return d
}

func TestRevisionsOfAWorkload(t *testing.T) {
	const jane, us = "jane", v1alpha1.DeliveryUser
	pinned := governed(3, at("east", 3, "web-v7"))
	pinned.Annotations[v1alpha1.AnnotationClusters] = "west"
	both := governed(3, at("west", 0, "web-v8"))
	both.Annotations[v1alpha1.AnnotationClusters] = "west"
	image := governed(3, "")
	image.Spec.Template.Spec.Containers[0].Image = "new"
	going := governed(3, at("east", 3, "web-v7"))
	going.DeletionTimestamp = &metav1.Time{}
	for name, test := range map[string]struct {
		who         string
		old, object *apps.Deployment // old is nil for a new object
		cluster     string           // where placement wants it; east by default
		want        string
		wantWarning string
	}{
		"delivery makes one": {who: us, object: governed(3, at("east", 0, "web-v7")), want: at("east", 3, "web-v7")},
		"delivery makes one that goes elsewhere than it says": {
			who: us, object: governed(3, at("east", 0, "web-v7")), cluster: "west", want: `{"west":{"replicas":3}}`,
		},
		"a user makes one with a revision": {
			who: jane, object: governed(3, at("east", 3, "web-v7")), want: onEast(3), wantWarning: "manifold.dev/placement",
		},
		"a ServiceAccount of delivery is a user": {
			who: "system:serviceaccount:shop:deployer", object: governed(3, at("east", 3, "web-v7")), want: onEast(3), wantWarning: "manifold.dev/placement",
		},
		"delivery takes over what runs": {who: us, old: stored(3), object: governed(3, at("east", 99, "web-v7")), want: at("east", 3, "web-v7")},
		"delivery lets go":              {who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(3, at("east", 0, "web-v8")), want: at("east", 3, "web-v8")},
		"delivery lets go and scales":   {who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(5, at("east", 0, "web-v8")), want: at("east", 5, "web-v8")},
		"delivery moves and lets go": {
			who: us, old: governed(3, at("east", 3, "web-v7")), object: both, cluster: "west", want: at("west", 3, "web-v8"),
		},
		"delivery speaks of another cluster": {
			who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(3, at("west", 9, "web-v8")), want: at("east", 3, "web-v7"),
		},
		"delivery says nothing": {who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(3, ""), want: at("east", 3, "web-v7")},
		"delivery governs no more": {
			who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(3, `{"east":{"replicas":0}}`), want: onEast(3),
		},
		"delivery says what cannot be read": {
			who: us, old: governed(3, at("east", 3, "web-v7")), object: governed(3, "web-v8"), want: at("east", 3, "web-v7"),
		},
		"what is being deleted may be let go": {
			who: us, old: going, object: func() *apps.Deployment {
				d := going.DeepCopy()
				d.Annotations[v1alpha1.AnnotationPlacement] = `{"east":{}}`
				return d
			}(),
			want: onEast(3),
		},
		"a user applies a new image":   {who: jane, old: governed(3, at("east", 3, "web-v7")), object: image, want: at("east", 3, "web-v7")},
		"a user scales":                {who: jane, old: governed(3, at("east", 3, "web-v7")), object: governed(5, at("east", 3, "web-v7")), want: at("east", 5, "web-v7")},
		"a user moves it":              {who: jane, old: governed(3, at("east", 3, "web-v7")), object: pinned, cluster: "west", want: at("west", 3, "web-v7")},
		"a user lets go":               {who: jane, old: governed(3, at("east", 3, "web-v7")), object: governed(3, at("east", 3, "web-v8")), want: at("east", 3, "web-v7"), wantWarning: "manifold.dev/placement"},
		"a user governs no more":       {who: jane, old: governed(3, at("east", 3, "web-v7")), object: governed(3, onEast(3)), want: at("east", 3, "web-v7"), wantWarning: "manifold.dev/placement"},
		"a user lets go while scaling": {who: jane, old: governed(3, at("east", 3, "web-v7")), object: governed(5, at("east", 5, "web-v8")), want: at("east", 5, "web-v7"), wantWarning: "manifold.dev/placement"},
		"another controller of ours that stores no decisions": {
			who: v1alpha1.DrainUser, old: governed(3, at("east", 3, "web-v7")), object: governed(3, at("east", 3, "web-v8")), want: at("east", 3, "web-v7"),
			wantWarning: "manifold.dev/placement",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, seen := storagetest.As(t, test.who)
			p := &keeping{cluster: "east"}
			if test.cluster != "" {
				p.cluster = test.cluster
			}
			s := placing(nil)
			s.placer = p
			if test.old == nil {
				s.PrepareForCreate(ctx, test.object)
			} else {
				before := test.old.Annotations[v1alpha1.AnnotationPlacement]
				s.PrepareForUpdate(ctx, test.object, test.old)
				if test.old.Annotations[v1alpha1.AnnotationPlacement] != before {
					t.Error("the old object was changed")
				}
			}
			if got := test.object.Annotations[v1alpha1.AnnotationPlacement]; got != test.want {
				t.Errorf("decision %s, want %s", got, test.want)
			}
			if got := strings.Join(seen.Texts, "; "); !strings.Contains(got, test.wantWarning) || (got == "") != (test.wantWarning == "") {
				t.Errorf("warnings %q, want %q", got, test.wantWarning)
			}
		})
	}
}

// The generation is what rollout status waits for: another revision is a change, though what is above may be the same.
func TestAnotherRevisionIsANewGeneration(t *testing.T) {
	ctx, _ := storagetest.As(t, v1alpha1.DeliveryUser)
	object := governed(3, at("east", 3, "web-v8"))
	placing(&placer{}).PrepareForUpdate(ctx, object, governed(3, at("east", 3, "web-v7")))
	if object.Generation != 2 {
		t.Errorf("generation %d, want 2", object.Generation)
	}
	same := governed(3, at("east", 0, "web-v7"))
	placing(&placer{}).PrepareForUpdate(ctx, same, governed(3, at("east", 3, "web-v7")))
	if same.Generation != 1 {
		t.Errorf("generation %d of what is as it was, want 1", same.Generation)
	}
}

// What shows ReplicaSets of clusters is for Manifold to write, whoever delivers.
func TestMirrorsHoldNoRevision(t *testing.T) {
	ctx, _ := storagetest.As(t, v1alpha1.DeliveryUser)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: new(true)}
	mirror := func(annotation string) *apps.ReplicaSet {
		return &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", OwnerReferences: []metav1.OwnerReference{owner}, Annotations: map[string]string{v1alpha1.AnnotationPlacement: annotation},
		}}
	}
	kind, _ := projection.ForGVK(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	s := placedStrategy{Strategy: replicasetstrategy.Strategy, reader: reader{kind}, placer: &placer{}}
	object := mirror(at("east", 3, "web-v7"))
	s.PrepareForUpdate(ctx, object, mirror(onEast(3)))
	if got := object.Annotations[v1alpha1.AnnotationPlacement]; got != onEast(3) {
		t.Errorf("decision %s, want that of before", got)
	}
}
