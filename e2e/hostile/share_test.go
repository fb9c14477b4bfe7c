package hostile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/liar"
)

// In these tests west has a share of something, and says of it what is not so.

// both are workloads with revisions, of which both clusters run something.
func (a *arena) both() {
	a.Helper()
	a.create(deployment("both", 2, "east,west"))
	set2 := pin(manifest(statefulSets, "set", honestImage), "east,west")
	set(set2, int64(2), "spec", "replicas")
	a.create(object{resource: statefulSets, manifest: set2.Object})
	a.create(object{resource: daemonSets, manifest: pin(manifest(daemonSets, "each", honestImage), "east,west").Object})
	framework.Await(a.Logical, "both", "runs", expect.Available(2))
	framework.Await(a.Logical, "set", "runs", func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 2 })
	framework.Await(a.Logical, "each", "runs", func(d *appsv1.DaemonSet) bool {
		return d.Status.NumberReady > 3 && d.Status.NumberReady == d.Status.DesiredNumberScheduled
	})
}

// TestTemplatesComeFromAbove has west change the templates of the revisions that it has, and make up others.
func TestTemplatesComeFromAbove(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	a.both()
	west := a.Environment.Physical["west"]
	forged := map[resourceOf][]*unstructured.Unstructured{}
	for _, of := range []resourceOf{replicaSets, revisions} {
		for _, selector := range []string{"app=both", "app=set", "app=each"} {
			for _, one := range a.list(west, of, selector) {
				obj := one.DeepCopy()
				obj.Object = replaced(obj.Object, honestImage, evilImage).(map[string]any)
				obj.SetName(one.GetName() + "-" + evil)
				obj.SetUID(uuid.NewUUID())
				label(obj, map[string]string{"pod-template-hash": evil, "controller-revision-hash": evil})
				annotate(obj, map[string]string{v1alpha1.AnnotationTemplate: evil, "deployment.kubernetes.io/revision": "7"})
				if of == revisions {
					set(obj, int64(7), "revision")
				}
				forged[of] = append(forged[of], obj)
			}
		}
	}
	if len(forged[replicaSets]) != 1 || len(forged[revisions]) != 2 {
		t.Fatalf("west has %d ReplicaSets and %d revisions, want 1 and 2", len(forged[replicaSets]), len(forged[revisions]))
	}
	var stops []func()
	for _, of := range []resourceOf{replicaSets, revisions} {
		stops = append(stops, a.west.Change(of.GroupResource(), func(obj *unstructured.Unstructured) bool {
			if obj.GetNamespace() == a.Namespace && !strings.HasPrefix(obj.GetName(), "canary") && !strings.HasPrefix(obj.GetName(), "own") {
				obj.Object = replaced(obj.Object, honestImage, evilImage).(map[string]any)
			}
			return true
		}))
	}
	stop := a.invent(forged)
	stops = append(stops, stop)
	honest := func() {
		for _, stop := range stops {
			stop()
		}
	}
	defer honest()
	a.unharmed()
	// What users undo is what they have done, not what somebody says that they had.
	const second = "honest:2"
	for _, kind := range []string{"deployment/both", "statefulset/set", "daemonset/each"} {
		a.Logical.Kubectl("set", "image", kind, "c="+second)
		if history := a.Logical.Kubectl("rollout", "history", kind); strings.Contains(history, "7 ") || strings.Contains(history, "8 ") {
			t.Errorf("the history of %s has what was made up:\n%s", kind, history)
		}
	}
	framework.AwaitList(a.Logical, "app=both", "it has another template", func(sets []*appsv1.ReplicaSet) bool { return len(sets) == 2 })
	for _, name := range []string{"set", "each"} {
		framework.AwaitList(a.Logical, "app="+name, "it has another template", func(all []*appsv1.ControllerRevision) bool { return len(all) == 2 })
	}
	honest()
	for _, kind := range []string{"deployment/both", "statefulset/set", "daemonset/each"} {
		a.Logical.Kubectl("rollout", "undo", kind)
	}
	framework.Await(a.Logical, "both", "is what it was", func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].Image == honestImage && expect.Available(2)(d)
	})
	framework.Await(a.Logical, "set", "is what it was", func(s *appsv1.StatefulSet) bool {
		return s.Spec.Template.Spec.Containers[0].Image == honestImage && s.Status.UpdatedReplicas == 2
	})
	framework.Await(a.Logical, "each", "is what it was", func(d *appsv1.DaemonSet) bool {
		return d.Spec.Template.Spec.Containers[0].Image == honestImage && d.Status.UpdatedNumberScheduled == d.Status.DesiredNumberScheduled
	})
	a.unharmed()
}

// tampering is what west does to pods of its share.
var tampering = map[string]func(a *arena, pod *unstructured.Unstructured){
	"labels of the victim's": func(_ *arena, pod *unstructured.Unstructured) {
		label(pod, map[string]string{"app": estateName, "kind": "deployments"})
	},
	"no labels": func(_ *arena, pod *unstructured.Unstructured) { pod.SetLabels(nil) },
	"every key of ours": func(_ *arena, pod *unstructured.Unstructured) {
		for _, key := range v1alpha1.Keys() {
			boast(pod, key)
		}
	},
	"the mark of an orphan": func(a *arena, pod *unstructured.Unstructured) {
		a.claimed(label(pod, map[string]string{v1alpha1.LabelOrphan: "true"}), pod.GetUID())
		pod.SetOwnerReferences(nil)
	},
	"an image":  func(_ *arena, pod *unstructured.Unstructured) { inContainer(pod, "image", evilImage) },
	"a command": func(_ *arena, pod *unstructured.Unstructured) { inContainer(pod, "command", []any{evil}) },
	"a value of a Secret": func(_ *arena, pod *unstructured.Unstructured) {
		ref := map[string]any{"secretKeyRef": map[string]any{"name": "unasked", "key": "jewel"}}
		inContainer(pod, "env", []any{map[string]any{"name": "A", "valueFrom": ref}})
	},
	"privileges": func(_ *arena, pod *unstructured.Unstructured) {
		inContainer(pod, "securityContext", map[string]any{"privileged": true})
	},
	"a Secret": func(_ *arena, pod *unstructured.Unstructured) { inContainer(pod, "envFrom", envFrom("unasked")) },
	"more cpu": func(_ *arena, pod *unstructured.Unstructured) {
		inContainer(pod, "resources", map[string]any{"requests": map[string]any{"cpu": "2m"}})
	},
	"the host": func(_ *arena, pod *unstructured.Unstructured) {
		set(pod, true, "spec", "hostPID")
		set(pod, true, "spec", "hostNetwork")
	},
	"an account": func(_ *arena, pod *unstructured.Unstructured) { set(pod, evil, "spec", "serviceAccountName") },
	"a class": func(_ *arena, pod *unstructured.Unstructured) {
		set(pod, "system-node-critical", "spec", "priorityClassName")
		set(pod, int64(2000001000), "spec", "priority")
	},
	"a node above": func(_ *arena, pod *unstructured.Unstructured) { set(pod, "east", "spec", "nodeName") },
	"a volume of the host": func(_ *arena, pod *unstructured.Unstructured) {
		set(pod, []any{map[string]any{"name": evil, "hostPath": map[string]any{"path": "/"}}}, "spec", "volumes")
	},
	"another container": func(_ *arena, pod *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
		set(pod, append(containers, map[string]any{
			"name": "sidecar", "image": "sidecar:1", "securityContext": map[string]any{"privileged": true}, "envFrom": envFrom("unasked"),
			"volumeMounts": []any{map[string]any{"name": "root", "mountPath": "/"}},
		}), "spec", "containers")
	},
	"an owner that is the victim's": func(a *arena, pod *unstructured.Unstructured) {
		set(pod, owner(a.getIn(a.Environment.Logical, deployments, victim, estateName)), "metadata", "ownerReferences")
	},
	"finalizers": func(_ *arena, pod *unstructured.Unstructured) {
		pod.SetFinalizers([]string{"orphan", "foregroundDeletion", v1alpha1.FinalizerProjection, "evil.example.com/held"})
	},
	"the UID of the victim's Deployment": func(a *arena, pod *unstructured.Unstructured) {
		pod.SetUID(a.getIn(a.Environment.Logical, deployments, victim, estateName).GetUID())
	},
	"no UID":            func(_ *arena, pod *unstructured.Unstructured) { pod.SetUID("") },
	"a UID without end": func(_ *arena, pod *unstructured.Unstructured) { pod.SetUID(types.UID(filler(1 << 16))) },
	"words without end": func(_ *arena, pod *unstructured.Unstructured) {
		set(pod, filler(mebibyte), "status", "message")
		annotate(pod, map[string]string{"x": filler(mebibyte / 2)})
	},
	"words that a terminal obeys": func(_ *arena, pod *unstructured.Unstructured) { set(pod, "\x1b]0;owned\a\x1b[2J", "status", "message") },
	"numbers that overflow": func(_ *arena, pod *unstructured.Unstructured) {
		if status, found := pod.Object["status"]; found {
			pod.Object["status"] = inflated(status, 2147483647)
		}
		set(pod, int64(9223372036854775807), "metadata", "generation")
	},
}

func inContainer(pod *unstructured.Unstructured, field string, value any) {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		c.(map[string]any)[field] = value
	}
	set(pod, containers, "spec", "containers")
}

func envFrom(secret string) []any {
	return []any{map[string]any{"secretRef": map[string]any{"name": secret}}}
}

// TestPodsOfAShareAreItsTemplates has west change of its pods whatever there is, of each something else.
func TestPodsOfAShareAreItsTemplates(t *testing.T) {
	a := enter(t)
	tamperings := slices.Sorted(maps.Keys(tampering))
	a.create(deployment("share", int64(len(tamperings)), "west"))
	framework.Await(a.Logical, "share", "runs", expect.Available(int32(len(tamperings))))
	before := map[string]*corev1.Pod{}
	for _, pod := range a.podsOf("share") {
		before[pod.Name] = pod
	}
	names := slices.Sorted(maps.Keys(before))
	if len(names) != len(tamperings) {
		t.Fatalf("there are %d pods, want %d", len(names), len(tamperings))
	}
	stop := a.west.Change(pods.GroupResource(), func(pod *unstructured.Unstructured) bool {
		if i := slices.Index(names, pod.GetName()); i >= 0 && pod.GetNamespace() == a.Namespace {
			tampering[tamperings[i]](a, pod)
		}
		return true
	})
	defer stop()
	a.told(a.Logical, "an event tells what is not shown", func(e *corev1.Event) bool { return e.Reason == "NotShown" })
	a.unharmed()
	for _, pod := range a.podsOf("share") {
		was := before[pod.Name]
		if was == nil {
			t.Errorf("pod %s is new", pod.Name)
			continue
		}
		how := tamperings[slices.Index(names, pod.Name)]
		base, spec := was.Spec.DeepCopy(), pod.Spec.DeepCopy()
		// What a cluster adds is shown without what has authority; tolerations, the priority and what is asked for are its word about itself.
		base.Tolerations, spec.Tolerations = nil, nil
		base.Priority, spec.Priority = nil, nil
		switch {
		case how == "another container":
			if len(spec.Containers) == 2 {
				added := spec.Containers[1]
				if added.SecurityContext != nil && added.SecurityContext.Privileged != nil && *added.SecurityContext.Privileged || len(added.EnvFrom) > 0 {
					t.Errorf("%s: container %+v is shown", how, added)
				}
				spec.Containers = spec.Containers[:1]
			}
		case how == "a value of a Secret":
			for _, v := range spec.Containers[0].Env {
				if v.ValueFrom != nil {
					t.Errorf("%s: variable %+v is shown", how, v)
				}
			}
			spec.Containers[0].Env = base.Containers[0].Env
		case how == "more cpu":
			spec.Containers[0].Resources = base.Containers[0].Resources
		}
		if !equality.Semantic.DeepEqual(base, spec) {
			t.Errorf("%s: the spec is %+v, was %+v", how, spec, base)
		}
		if !equality.Semantic.DeepEqual(pod.Labels, was.Labels) || !equality.Semantic.DeepEqual(pod.OwnerReferences, was.OwnerReferences) || pod.UID != was.UID {
			t.Errorf("%s: labels %v, owners %v, UID %s, want %v, %v, %s", how, pod.Labels, pod.OwnerReferences, pod.UID, was.Labels, was.OwnerReferences, was.UID)
		}
		for _, finalizer := range pod.Finalizers {
			t.Errorf("%s: it has finalizer %s", how, finalizer)
		}
		for key := range pod.Annotations {
			if v1alpha1.ReservedKey(key) && key != v1alpha1.AnnotationCluster && key != v1alpha1.AnnotationNode || key == v1alpha1.AnnotationClusters {
				t.Errorf("%s: it carries %s", how, key)
			}
		}
		if pod.Size() > 256<<10 {
			t.Errorf("%s: the mirror has %d bytes", how, pod.Size())
		}
	}
	stop()
	framework.Await(a.Logical, "share", "is whole again", expect.Available(int32(len(tamperings))))
	a.unharmed()
}

// podsOf returns the pods above of an app of the arena.
func (a *arena) podsOf(app string) []*corev1.Pod {
	a.Helper()
	list, err := a.Environment.Logical.Kube.CoreV1().Pods(a.Namespace).List(a.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		a.Fatal(err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out
}

// TestStubsFetchNoSecrets has west hold empty Secrets of the right marks and UIDs, and pods of its share, and of nobody, that name them in
// every way there is.
func TestStubsFetchNoSecrets(t *testing.T) {
	framework.Long(t)
	a := enter(t)
	word, err := watchword()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"asked", "unasked"} {
		data := map[string]string{"asked": "", "unasked": word}[name]
		for _, of := range []resourceOf{secrets, configMaps} {
			obj := manifest(of, name, honestImage)
			set(obj, map[string]any{"jewel": data}, map[resourceOf]string{secrets: "stringData", configMaps: "data"}[of])
			a.create(object{resource: of, manifest: obj.Object})
		}
	}
	// An honest one needs a Secret of the namespace, so that west's Secrets there are looked at.
	reader := deployment("reader", 1, "west")
	inTemplate := &unstructured.Unstructured{Object: map[string]any{"spec": reader.manifest["spec"].(map[string]any)["template"].(map[string]any)["spec"]}}
	inContainer(inTemplate, "envFrom", envFrom("asked"))
	a.create(reader)
	framework.Await(a.Logical, "reader", "runs", expect.Available(1))
	rs := a.only(a.Environment.Physical["west"], replicaSets, "app=reader")
	selfmade := a.list(a.Environment.Physical["west"], pods, "app=reader")[0]

	type named struct{ namespace, name string }
	wanted := []named{{a.Namespace, "unasked"}, {victim, "crown"}, {bystander, "crown"}, {metav1.NamespaceDefault, "crown"}, {v1alpha1.SystemNamespace, "cluster-east"}}
	forged := map[resourceOf][]*unstructured.Unstructured{}
	for _, n := range wanted {
		above := a.getIn(a.Environment.Logical, secrets, n.namespace, n.name)
		stub := invented(secrets, n.namespace, n.name)
		forged[secrets] = append(forged[secrets], a.claimed(stub, above.GetUID()))
		for i, namer := range namers(n.name) {
			owned := selfmade.DeepCopy()
			owned.SetUID(uuid.NewUUID())
			owned.SetNamespace(n.namespace)
			owned.SetName(fmt.Sprintf("reader-%s-%d", evil, i))
			set(owned, owner(rs), "metadata", "ownerReferences")
			namer(owned)
			orphan := a.claimed(invented(pods, n.namespace, fmt.Sprintf("%s-orphan-%d", evil, i)), uuid.NewUUID())
			label(orphan, map[string]string{v1alpha1.LabelOrphan: "true"})
			namer(orphan)
			forged[pods] = append(forged[pods], owned, orphan)
		}
	}
	stub := invented(configMaps, a.Namespace, "unasked")
	forged[configMaps] = append(forged[configMaps], a.claimed(stub, a.getIn(a.Environment.Logical, configMaps, a.Namespace, "unasked").GetUID()))
	leave := a.settleIn(victim, bystander, v1alpha1.SystemNamespace)
	defer leave()
	stop := a.invent(forged)
	defer stop()
	// Pods of a share are shown as their template has them, so these count above like any other; a stub is nobody's and goes.
	a.Logical.Poll("west is told to delete the stub", func() error {
		if len(a.asked(func(sent liar.Sent) bool {
			return sent.Method == "DELETE" && strings.HasSuffix(strings.Split(sent.Path, "?")[0], "/namespaces/"+a.Namespace+"/secrets/unasked")
		})) == 0 {
			return fmt.Errorf("it was not yet")
		}
		return nil
	})
	a.canary()
	for _, sent := range a.west.Sent(liar.Holds(word)) {
		t.Errorf("west was sent what is in unasked by %s %s", sent.Method, sent.Path)
	}
	a.keptSecrets()
	stop()
	leave()
	framework.Await(a.Logical, "reader", "runs", expect.Available(1))
	framework.AwaitList(a.Logical, "app=reader", "what was made up is gone", func(all []*corev1.Pod) bool { return len(all) == 1 })
	a.unharmed()
}

// namers are the ways in which a pod names a Secret.
func namers(secret string) []func(pod *unstructured.Unstructured) {
	volume := func(source map[string]any) func(*unstructured.Unstructured) {
		source["name"] = "v"
		return func(pod *unstructured.Unstructured) { set(pod, []any{source}, "spec", "volumes") }
	}
	key := map[string]any{"name": secret, "key": "jewel"}
	ref := map[string]any{"name": secret}
	return []func(pod *unstructured.Unstructured){
		func(pod *unstructured.Unstructured) { inContainer(pod, "envFrom", envFrom(secret)) },
		func(pod *unstructured.Unstructured) {
			inContainer(pod, "env", []any{map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": key}}})
		},
		func(pod *unstructured.Unstructured) { set(pod, []any{ref}, "spec", "imagePullSecrets") },
		func(pod *unstructured.Unstructured) {
			set(pod, []any{map[string]any{"name": "debugger", "image": "d:1", "envFrom": envFrom(secret)}}, "spec", "ephemeralContainers")
		},
		func(pod *unstructured.Unstructured) {
			set(pod, []any{map[string]any{"name": "first", "image": "d:1", "envFrom": envFrom(secret)}}, "spec", "initContainers")
		},
		volume(map[string]any{"secret": map[string]any{"secretName": secret}}),
		volume(map[string]any{"projected": map[string]any{"sources": []any{map[string]any{"secret": ref}}}}),
		volume(map[string]any{"csi": map[string]any{"driver": "d", "nodePublishSecretRef": ref}}),
	}
}
