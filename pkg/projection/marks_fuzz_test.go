package projection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// FuzzMarks has a user write any mark on an object above, and anybody any mark on one below. The projection's origin is what it is, and what is
// below is overwritten only if it says that it comes from there, and deleted only if it says so in all.
func FuzzMarks(f *testing.F) {
	f.Add(v1alpha1.LabelLogicalCluster, "another", east.LogicalCluster, "shop", "web", "u1")
	f.Add(v1alpha1.AnnotationUID, "u2", east.LogicalCluster, "shop", "web", "u2")
	f.Add(v1alpha1.AnnotationNamespace, "kube-system", east.LogicalCluster, "kube-system", "web", "u1")
	f.Add(v1alpha1.LabelOrphan, "true", "", "", "", "")
	f.Add("manifold.dev/\x00", "\xff", "2f6d5a1e-logical\x00", "shop/..", "../web", "u1\n")
	f.Fuzz(func(t *testing.T, key, value, logical, namespace, name, uid string) {
		kind, _ := ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
		above := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "u1",
			Labels: map[string]string{key: value}, Annotations: map[string]string{key: value},
		}}
		out, err := kind.Project(above, Part{}, east)
		if err != nil {
			t.Skip(err)
		}
		want := Origin{LogicalCluster: east.LogicalCluster, Namespace: "shop", Name: "web", UID: "u1"}
		if got, ok := OriginOf(out); !ok || got != want {
			t.Errorf("with %q: %q of a user, the origin is %+v, want %+v", key, value, got, want)
		}

		below := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", UID: "below",
			Labels: map[string]string{v1alpha1.LabelLogicalCluster: logical},
			Annotations: map[string]string{
				v1alpha1.AnnotationNamespace: namespace, v1alpha1.AnnotationName: name, v1alpha1.AnnotationUID: uid,
			},
		}}
		claims := Origin{LogicalCluster: logical, Namespace: namespace, Name: name, UID: types.UID(uid)}
		origin, marked := OriginOf(below)
		if marked != (logical != "") || marked && origin != claims {
			t.Errorf("marks %+v are read as %+v, %t", claims, origin, marked)
		}
		action := kind.Plan(out, below)
		same := claims.LogicalCluster == want.LogicalCluster && claims.Namespace == want.Namespace && claims.Name == want.Name
		if (action.Step == Conflict) == same {
			t.Errorf("an object with marks %+v, where that of %+v is wanted: %+v", claims, want, action)
		}
		if action := PlanRemoval(want, below); (action.Step == Delete) != (claims == want) {
			t.Errorf("an object with marks %+v, where that of %+v is to go: %+v", claims, want, action)
		}
	})
}

// FuzzMarksOfEveryKind has a user write any key of our domain, and others, on an object of every kind, whatever else is in it, on the template of
// its pods too. The projection carries the marks of where it comes from and no others, and nobody takes it for what outlives its owner.
func FuzzMarksOfEveryKind(f *testing.F) {
	for i, key := range append(v1alpha1.Keys(), "manifold.dev/unheard-of", "sub.manifold.dev/x", "manifold.dev", "app") {
		f.Add(int64(i), key, "true")
		f.Add(int64(i), key, `{"east":{"replicas":1}}`)
	}
	f.Fuzz(func(t *testing.T, seed int64, key, value string) {
		for _, kind := range Kinds() {
			in := filled(kind, seed)
			in.SetDeletionTimestamp(nil)
			in.SetUID("u1")
			in.SetLabels(map[string]string{key: value})
			in.SetAnnotations(map[string]string{key: value})
			if ok, _ := kind.Projectable(in); !ok {
				continue
			}
			out, err := kind.Project(in, Part{}, east)
			if err != nil {
				continue // told, and nothing is projected
			}
			want := Origin{LogicalCluster: east.LogicalCluster, Namespace: in.GetNamespace(), Name: in.GetName(), UID: "u1"}
			if origin, ok := OriginOf(out); !ok || origin != want {
				t.Errorf("%s with %q: %q: the origin is %+v, want %+v", kind.GVK.Kind, key, value, origin, want)
			}
			if Orphaned(out) {
				t.Errorf("%s with %q: %q counts as an orphan", kind.GVK.Kind, key, value)
			}
			for name := range out.GetLabels() {
				if v1alpha1.ReservedKey(name) && name != v1alpha1.LabelLogicalCluster {
					t.Errorf("%s with %q: %q has label %s", kind.GVK.Kind, key, value, name)
				}
			}
			for name, got := range out.GetAnnotations() {
				if v1alpha1.ReservedKey(name) && name == key && got == value && value != string(want.UID) && value != want.Name && value != want.Namespace {
					t.Errorf("%s with %q: %q has that annotation", kind.GVK.Kind, key, value)
				}
			}
			if difference := Differs(&metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name, UID: "u1"}, out, east.LogicalCluster); difference != "" {
				t.Errorf("%s with %q: %q is another one: %s", kind.GVK.Kind, key, value, difference)
			}
		}
	})
}

// FuzzPodMarks has a user, or a cluster, write anything into the annotations of a pod. A pod is in a cluster only if Manifold has written so, and
// what is not proven to be the one that is shown is another one.
func FuzzPodMarks(f *testing.F) {
	f.Add("", "", "", "east", "u1", "u2")
	f.Add("", "u2", "", "east", "u1", "u2")
	f.Add("", "u2", "west", "east", "u1", "u2")
	f.Add("east", "", "", "", "u1", "u1")
	f.Add("", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, cluster, podUID, podCluster, node, above, below string) {
		annotations := map[string]string{}
		for key, value := range map[string]string{
			v1alpha1.AnnotationCluster: cluster, v1alpha1.AnnotationPodUID: podUID, v1alpha1.AnnotationPodCluster: podCluster,
		} {
			if value != "" {
				annotations[key] = value
			}
		}
		shown := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(above), Annotations: annotations}
		in := ClusterRunning(shown, node)
		switch {
		case cluster != "" && in != cluster:
			t.Errorf("the mirror of a pod in %q is in %q", cluster, in)
		case cluster == "" && in != "" && (in != node || podUID == "" || podCluster != ""):
			t.Errorf("a pod of a user's with %v and node %q is in %q", annotations, node, in)
		}
		live := &metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(below)}
		same := cluster != "" && above != "" && above == below
		if difference := Differs(shown, live, east.LogicalCluster); (difference == "") != same {
			t.Errorf("a pod without marks, with UID %q, for one with %v and UID %q: %q", below, annotations, above, difference)
		}
		if uid := UIDBelow(shown); cluster != "" && uid != shown.UID || cluster == "" && string(uid) != podUID {
			t.Errorf("the UID below is %q", uid)
		}
	})
}
