package hostile

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// owner is a reference to an object that controls another.
func owner(of *unstructured.Unstructured) []any {
	return []any{map[string]any{
		"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "name": of.GetName(), "uid": string(of.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}}
}

// TestNamesAndOrdinalsOfOthersStayTheirs has west run pods of the names that pods of its share have in east, and made before them, and of the
// ordinals that are east's, with their claims; and say that it runs all ordinals.
func TestNamesAndOrdinalsOfOthersStayTheirs(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	a.create(deployment("both", 2, "east,west"))
	alone := pin(manifest(statefulSets, "set", honestImage), "east")
	set(alone, int64(2), "spec", "replicas")
	a.create(object{resource: statefulSets, manifest: alone.Object})
	split := pin(manifest(statefulSets, "split", honestImage), "east,west")
	set(split, int64(2), "spec", "replicas")
	a.create(object{resource: statefulSets, manifest: split.Object})
	// Its claims are there, though no volume is.
	store := pin(manifest(statefulSets, "store", honestImage), "east,west")
	set(store, int64(2), "spec", "replicas")
	set(store, "Parallel", "spec", "podManagementPolicy")
	set(store, []any{map[string]any{"metadata": map[string]any{"name": "data"}, "spec": manifest(claims, "x", honestImage).Object["spec"]}}, "spec", "volumeClaimTemplates")
	a.create(object{resource: statefulSets, manifest: store.Object})
	framework.AwaitList(a.Logical, "app=store", "its claims are shown", func(all []*corev1.PersistentVolumeClaim) bool { return len(all) == 2 })
	framework.Await(a.Logical, "both", "runs", expect.Available(2))
	for _, name := range []string{"set", "split"} {
		framework.Await(a.Logical, name, "runs", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 2 })
	}
	west, east := a.Environment.Physical["west"], a.Environment.Physical["east"]
	rs, part := a.only(west, replicaSets, "app=both"), a.only(west, statefulSets, "app=split")
	theirs := append(a.list(east, pods, "app=both"), a.list(east, pods, "app=set")...)
	ordinals := a.list(east, pods, "app=split")
	if len(theirs) != 3 || len(ordinals) != 1 {
		t.Fatalf("%d and %d pods are in east, want 3 and 1", len(theirs), len(ordinals))
	}
	forged := map[resourceOf][]*unstructured.Unstructured{}
	forge := func(of resourceOf, from, by *unstructured.Unstructured, labels map[string]string) {
		obj := from.DeepCopy()
		obj.SetUID(uuid.NewUUID())
		set(obj, "1970-01-01T00:00:00Z", "metadata", "creationTimestamp")
		label(obj, labels)
		set(obj, owner(by), "metadata", "ownerReferences")
		forged[of] = append(forged[of], obj)
	}
	for i := range theirs {
		forge(pods, &theirs[i], rs, rs.GetLabels())
	}
	own := a.list(west, pods, "app=split")[0]
	forge(pods, &ordinals[0], part, own.GetLabels())
	// Ordinals that nobody has, and such as are no numbers.
	for _, name := range []string{"split-2", "split-7", "split-00", "split--1", "split-4294967296", "split-99999999999999999999"} {
		obj := own.DeepCopy()
		obj.SetName(name)
		forge(pods, obj, part, nil)
	}
	for _, claim := range a.list(east, claims, "app=store") {
		set(&claim, "stolen", "spec", "volumeName")
		forge(claims, &claim, a.only(west, statefulSets, "app=store"), nil)
	}
	if len(forged[claims]) != 1 {
		t.Fatalf("east has %d claims of its ordinal, want 1", len(forged[claims]))
	}
	stop := a.invent(forged)
	defer stop()
	all := a.west.Change(statefulSets.GroupResource(), func(obj *unstructured.Unstructured) bool {
		if obj.GetNamespace() == a.Namespace && obj.GetName() == "split" {
			set(obj, int64(0), "spec", "ordinals", "start")
			set(obj, int64(9), "spec", "replicas")
			for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"} {
				set(obj, int64(9), "status", field)
			}
		}
		return true
	})
	defer all()
	a.told(a.Logical, "an event tells whose ordinal it is", func(e *corev1.Event) bool {
		return e.Reason == "NotShown" && strings.Contains(e.Message, "no cluster should run ordinal 7 of StatefulSet split")
	})
	a.canary()
	if shown := a.podsOf("split"); len(shown) != 2 {
		t.Errorf("%d pods of split are shown, want those of its 2 ordinals", len(shown))
	}
	for i := range theirs {
		a.untouched(&theirs[i])
	}
	a.untouched(&ordinals[0])
	if claim := a.getIn(a.Environment.Logical, claims, a.Namespace, "data-store-0"); claim.GetAnnotations()[v1alpha1.AnnotationCluster] != "east" ||
		claim.Object["spec"].(map[string]any)["volumeName"] == "stolen" {
		t.Errorf("the claim of ordinal 0 is said to be %v of %v", claim.Object["spec"], claim.GetAnnotations())
	}
	all()
	stop()
	framework.AwaitList(a.Logical, "app=split", "what was made up is gone", func(all []*corev1.Pod) bool { return len(all) == 2 })
	for i := range ordinals {
		a.untouched(&ordinals[i])
	}
	a.unharmed()
}

// TestForgedUIDsCollectNothing has west run pods of its share under the UIDs of what owns things: if the garbage collector took one of them for
// that, and saw it go, it would take what is owned.
func TestForgedUIDsCollectNothing(t *testing.T) {
	a := enter(t)
	// What owns, of a kind that goes to clusters and of kinds that do not, and what is owned.
	cron := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{"name": "nightly"}, "spec": map[string]any{
		"schedule": "0 0 1 1 *", "suspend": true,
		"jobTemplate": map[string]any{"spec": manifest(jobs, "x", honestImage).Object["spec"]},
	}}}
	owners := []*unstructured.Unstructured{
		a.createIn(a.Environment.Logical, a.Namespace, resource("batch", "v1", "cronjobs"), cron),
		a.getIn(a.Environment.Logical, deployments, a.Namespace, "own"),
		a.create(object{resource: configMaps, manifest: manifest(configMaps, "root", honestImage).Object}),
		a.getIn(a.Environment.Logical, resource("manifold.dev", "v1alpha1", "placementpolicies"), a.Namespace, "even"),
		a.getIn(a.Environment.Logical, resource("manifold.dev", "v1alpha1", "clusters"), "", "east"),
		a.getIn(a.Environment.Logical, resource("", "v1", "nodes"), "", "east"),
		a.getIn(a.Environment.Logical, namespaces, "", victim),
		a.getIn(a.Environment.Logical, deployments, victim, estateName),
		a.getIn(a.Environment.Logical, statefulSets, victim, estateName),
		a.getIn(a.Environment.Logical, services, victim, estateName),
	}
	owned := map[string]*unstructured.Unstructured{}
	for i, of := range owners {
		obj := manifest(configMaps, fmt.Sprintf("owned-%d", i), honestImage)
		if of.GetNamespace() == victim {
			continue // what these own is in the picture
		}
		reference := owner(of)
		reference[0].(map[string]any)["blockOwnerDeletion"] = false
		set(obj, reference, "metadata", "ownerReferences")
		owned[of.GetKind()] = a.create(object{resource: configMaps, manifest: obj.Object})
	}
	rs := a.only(a.Environment.Physical["west"], replicaSets, "app=own")
	like := a.list(a.Environment.Physical["west"], pods, "app=own")[0]
	var forged []*unstructured.Unstructured
	for i, of := range owners {
		for _, namespace := range []string{a.Namespace, victim} {
			pod := like.DeepCopy()
			pod.SetNamespace(namespace)
			pod.SetName(fmt.Sprintf("%s-%s-%d", rs.GetName(), evil, i))
			pod.SetUID(of.GetUID())
			forged = append(forged, pod)
		}
	}
	leave := a.settleIn(victim)
	defer leave()
	stop := a.west.Invent(pods.GroupResource(), forged...)
	defer stop()
	a.told(a.Logical, "an event tells whose UID it is", func(e *corev1.Event) bool {
		return e.Reason == "NotShown" && strings.Contains(e.Message, "its UID is that of")
	})
	a.canary()
	stop() // which is the moment at which the garbage collector would see them go
	leave()
	framework.AwaitList(a.Logical, "app=own", "none of them is left", func(all []*corev1.Pod) bool { return len(all) == 1 })
	a.unharmed()
	for kind, was := range owned {
		if now := a.getIn(a.Environment.Logical, configMaps, a.Namespace, was.GetName()); now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil {
			t.Errorf("what a %s owns is another one, or is going", kind)
		}
	}
}

// only returns the one object of the arena's namespace that a selector selects.
func (a *arena) only(api *framework.API, of resourceOf, selector string) *unstructured.Unstructured {
	a.Helper()
	all := a.list(api, of, selector)
	if len(all) != 1 {
		a.Fatalf("%s: %d %s of %s/%s, want 1", api.Name, len(all), of.Resource, a.Namespace, selector)
	}
	return &all[0]
}

func (a *arena) list(api *framework.API, of resourceOf, selector string) []unstructured.Unstructured {
	a.Helper()
	list, err := api.Dynamic.Resource(of).Namespace(a.Namespace).List(a.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		a.Fatalf("list %s of %s: %v", of.Resource, api.Name, err)
	}
	return list.Items
}

// untouched checks that a pod, which runs in east, is still the same, above and there.
func (a *arena) untouched(pod *unstructured.Unstructured) {
	a.Helper()
	for _, api := range []*framework.API{a.Environment.Logical, a.Environment.Physical["east"]} {
		now := a.getIn(api, pods, pod.GetNamespace(), pod.GetName())
		if now.GetUID() != pod.GetUID() || now.GetDeletionTimestamp() != nil {
			a.Errorf("%s: pod %s is another one, or is being deleted: %s, was %s", api.Name, pod.GetName(), now.GetUID(), pod.GetUID())
		}
	}
}

func (a *arena) getIn(api *framework.API, of resourceOf, namespace, name string) *unstructured.Unstructured {
	a.Helper()
	obj, err := api.Dynamic.Resource(of).Namespace(namespace).Get(a.Context(), name, metav1.GetOptions{})
	if err != nil {
		a.Fatalf("read %s %s/%s in %s: %v", of.Resource, namespace, name, api.Name, err)
	}
	return obj
}
