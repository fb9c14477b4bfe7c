package hostile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// mirrored are the kinds that go up or down, in namespaces: those that are projected, and what controllers of a cluster make of them. A kind
// that comes to be projected is attacked from then on. Custom kinds are among them, of which projection has no list.
func mirrored(t *testing.T) []resourceOf {
	t.Helper()
	out := append([]resourceOf{revisions}, customKinds()...)
	for _, kind := range projection.Kinds() {
		if !kind.Namespaced {
			continue
		}
		if manifests[kind.Resource] == "" {
			t.Fatalf("manifests has none of %s, which are projected: add one", kind.Resource.Resource)
		}
		out = append(out, kind.Resource)
	}
	return out
}

// everywhere are the namespaces in which attacks are tried: own, foreign, empty, shared, and those of systems.
func (a *arena) everywhere() []string {
	return []string{
		a.Namespace, victim, bystander, metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
		v1alpha1.SystemNamespace,
	}
}

// claimed are marks by which an object says that it comes from above, of an object of that UID there.
func (a *arena) claimed(obj *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	label(obj, map[string]string{v1alpha1.LabelLogicalCluster: a.logical})
	return annotate(obj, map[string]string{
		v1alpha1.AnnotationNamespace: obj.GetNamespace(), v1alpha1.AnnotationName: obj.GetName(), v1alpha1.AnnotationUID: string(uid),
		v1alpha1.AnnotationProjection: "forged", v1alpha1.AnnotationTemplate: "forged",
	})
}

// invented returns an object that does not exist, with an image of Mallory's if it has any.
func invented(of resourceOf, namespace, name string) *unstructured.Unstructured {
	obj := manifest(of, name, evilImage)
	obj.SetNamespace(namespace)
	obj.SetUID(uuid.NewUUID())
	set(obj, "2020-01-01T00:00:00Z", "metadata", "creationTimestamp")
	return obj
}

// boasts are what the keys of our domain would say to Mallory's gain.
var boasts = map[string]string{
	v1alpha1.AnnotationClusters:   "east",
	v1alpha1.AnnotationPlacement:  `{"east":{"replicas":1},"west":{"replicas":1}}`,
	v1alpha1.AnnotationStatus:     `{"east":{"replicas":9,"ready":9},"west":{"replicas":9,"ready":9}}`,
	v1alpha1.AnnotationCluster:    "east",
	v1alpha1.AnnotationPodCluster: "east",
	v1alpha1.AnnotationNode:       "east-0",
	v1alpha1.AnnotationVolumes:    v1alpha1.VolumesRecreate,
	v1alpha1.AnnotationRemove:     v1alpha1.RemoveForce,
	v1alpha1.AnnotationGeneration: "9223372036854775807",
	v1alpha1.AnnotationCreated:    "1970-01-01T00:00:00Z",
}

// boast has an object carry a key, as a label and as an annotation.
func boast(obj *unstructured.Unstructured, key string) *unstructured.Unstructured {
	value, ok := boasts[key]
	if !ok {
		value = "true"
	}
	switch key {
	case v1alpha1.LabelLogicalCluster, v1alpha1.AnnotationNamespace, v1alpha1.AnnotationName, v1alpha1.AnnotationUID:
		return obj // claimed has set them
	}
	return annotate(label(obj, map[string]string{key: value}), map[string]string{key: value})
}

// settleIn has west say that namespaces are those of the logical cluster, by marks of the right name and UID, until it is stopped.
func (a *arena) settleIn(names ...string) (stop func()) {
	a.Helper()
	var missing []*unstructured.Unstructured
	claims := map[string]types.UID{}
	for _, name := range names {
		above := a.getIn(a.Environment.Logical, namespaces, "", name)
		claims[name] = above.GetUID()
		if _, err := a.Environment.Physical["west"].Dynamic.Resource(namespaces).Get(a.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			if err != nil {
				a.Fatal(err)
			}
			continue
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "status": map[string]any{"phase": "Active"}}}
		obj.SetName(name)
		obj.SetUID(uuid.NewUUID())
		missing = append(missing, a.claimed(obj, above.GetUID()))
	}
	ended := a.west.Invent(namespaces.GroupResource(), missing...)
	truth := a.west.Change(namespaces.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if uid, ok := claims[obj.GetName()]; ok {
			a.claimed(obj, uid)
		}
		return true
	})
	return func() { truth(); ended() }
}

// invent shows objects of several resources that do not exist, until it is stopped.
func (a *arena) invent(objects map[resourceOf][]*unstructured.Unstructured) (stop func()) {
	var stops []func()
	for of, list := range objects {
		stops = append(stops, a.west.Invent(of.GroupResource(), list...))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// told waits for an event about cluster west, or about an object of the arena, of one of several reasons.
func (a *arena) told(side *framework.Side, claim string, is func(*corev1.Event) bool) {
	a.Helper()
	framework.AwaitList(side, "", claim, func(events []*corev1.Event) bool { return slices.ContainsFunc(events, is) })
}

// asked returns what the syncer of west has asked it to do, reading aside.
func (a *arena) asked(is func(liar.Sent) bool) []liar.Sent {
	return a.west.Sent(func(sent liar.Sent) bool { return sent.Method != "GET" && is(sent) })
}

// TestForgedMarksBelowShowNothingAbove has west hold objects of every kind, in namespaces of everybody, with marks by which they would be ours:
// of what is above, of what is not, alone and with every key of our domain.
func TestForgedMarksBelowShowNothingAbove(t *testing.T) {
	a := enter(t)
	forged := map[resourceOf][]*unstructured.Unstructured{}
	serial := 0
	forge := func(of resourceOf, namespace string, uid types.UID, keys ...string) {
		serial++
		obj := a.claimed(invented(of, namespace, fmt.Sprintf("%s-%d", evil, serial)), uid)
		for _, key := range keys {
			boast(obj, key)
		}
		forged[of] = append(forged[of], obj)
	}
	for _, of := range mirrored(t) {
		for _, namespace := range a.everywhere() {
			// The UIDs of what there is, of what there is not, of another kind, and none.
			right, err := a.Environment.Logical.Dynamic.Resource(of).Namespace(namespace).Get(t.Context(), estateName, metav1.GetOptions{})
			if err == nil {
				forge(of, namespace, right.GetUID())
			}
			forge(of, namespace, uuid.NewUUID())
			forge(of, namespace, a.getIn(a.Environment.Logical, namespaces, "", namespace).GetUID(), v1alpha1.LabelOrphan)
			forge(of, namespace, "", v1alpha1.Keys()...)
			if of != pods && of != replicaSets {
				continue
			}
			for _, key := range v1alpha1.Keys() { // each beside that of an orphan, which needs no owner
				forge(of, namespace, uuid.NewUUID(), v1alpha1.LabelOrphan, key)
			}
		}
	}
	t.Logf("%d objects are forged", serial)
	leave := a.settleIn(a.everywhere()...)
	defer leave()
	stop := a.invent(forged)
	defer stop()
	a.told(a.Logical.In(metav1.NamespaceDefault), "an event tells what is not shown", func(e *corev1.Event) bool {
		return e.Reason == "NotShown" && e.InvolvedObject.Kind == "Cluster" && e.InvolvedObject.Name == "west" && strings.Contains(e.Message, evil)
	})
	a.unharmed()
	// All that is ever done about them is to have them go, in west alone.
	for _, sent := range a.asked(func(sent liar.Sent) bool { return strings.Contains(sent.Path, "/"+evil+"-") && sent.Method != "DELETE" }) {
		t.Errorf("west was sent %s %s", sent.Method, sent.Path)
	}
	stop()
	leave()
	a.unharmed()
}

// TestAPerfectForgeryIsNobodysShare has west hold all that the victims have in east, to the last mark. First as it is there, with the same
// UIDs; then of another image, as others of the same names, and with the largest counters that there are.
func TestAPerfectForgeryIsNobodysShare(t *testing.T) {
	a := enter(t)
	leave := a.settleIn(victim)
	defer leave()
	for name, change := range map[string]func(*unstructured.Unstructured){
		"the same": func(*unstructured.Unstructured) {},
		"others": func(obj *unstructured.Unstructured) {
			obj.Object = replaced(obj.Object, honestImage, evilImage).(map[string]any)
			renew(obj)
			if status, found := obj.Object["status"]; found {
				obj.Object["status"] = inflated(status, 2147483647)
			}
		},
		"others that are going, and held": func(obj *unstructured.Unstructured) {
			renew(obj)
			set(obj, "2020-01-02T00:00:00Z", "metadata", "deletionTimestamp")
			obj.SetFinalizers([]string{"evil.example.com/held", v1alpha1.FinalizerProjection})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := a.within(t)
			forged := map[resourceOf][]*unstructured.Unstructured{}
			for _, of := range mirrored(t) {
				for _, namespace := range []string{victim, metav1.NamespaceDefault} {
					list, err := a.Environment.Physical["east"].Dynamic.Resource(of).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for i := range list.Items {
						if obj := &list.Items[i]; strings.HasPrefix(obj.GetName(), estateName) || obj.GetName() == "crown" {
							change(obj)
							forged[of] = append(forged[of], obj)
						}
					}
				}
			}
			if len(forged) < len(owned()) {
				t.Fatalf("of %d kinds something is in east, want %d at least", len(forged), len(owned()))
			}
			stop := a.invent(forged)
			defer stop()
			a.unharmed()
			stop()
			a.unharmed()
		})
	}
}

// renew gives an object a UID of its own, and has its owners have theirs.
func renew(obj *unstructured.Unstructured) {
	obj.SetUID(another(obj.GetUID()))
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = another(owners[i].UID)
	}
	obj.SetOwnerReferences(owners)
}

// another returns a UID that is always the same one for another.
func another(uid types.UID) types.UID { return types.UID(strings.ToUpper(string(uid))) }

// inflated returns a JSON value with other numbers.
func inflated(value any, number int64) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = inflated(v[key], number)
		}
	case []any:
		for i := range v {
			v[i] = inflated(v[i], number)
		}
	case int64, float64:
		return number
	}
	return value
}
