package guard

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestWhichPodsAClusterMayHaveShown(t *testing.T) {
	system := namespace("kube-system")
	other := namespace("bank")
	replicas := &appsv1.StatefulSet{ObjectMeta: objectMeta("db")}
	replicas.Spec.Replicas = ptr.To[int32](3)
	replicas.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1},"west":{"start":1,"replicas":2}}`}
	ofSet := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Name, p.OwnerReferences, p.Spec.Hostname = name, controlledBy(replicas, "StatefulSet"), name
			p.Labels = map[string]string{appsv1.StatefulSetPodNameLabel: name}
		}
	}
	for name, test := range map[string]struct {
		cluster string // east if empty
		prepare func(f *family)
		change  func(p *corev1.Pod)
		want    string
	}{
		"what its syncer shows": {},
		"of a cluster that still runs what is decided to be elsewhere": {prepare: func(f *family) {
			f.above.Annotations = map[string]string{v1alpha1.AnnotationPlacement: `{"west":{"replicas":2}}`, v1alpha1.AnnotationStatus: `{"east":{"replicas":2}}`}
		}},
		"not what is placed elsewhere": {
			prepare: func(f *family) { f.above.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":2}}` },
			want:    `Deployment web is not placed in cluster "east"`,
		},
		"not as a pod of another cluster": {cluster: "west", want: `it is not marked as a pod of cluster "west"`},
		"not in a namespace that is not there": {
			change: func(p *corev1.Pod) { p.Namespace = "nowhere" }, want: `there is no namespace "nowhere"`,
		},
		"not in that of Kubernetes": {change: func(p *corev1.Pod) { p.Namespace = "kube-system" }, want: "belongs to Kubernetes"},
		"not in that of Manifold":   {change: func(p *corev1.Pod) { p.Namespace = v1alpha1.SystemNamespace }, want: "belongs to Manifold"},
		"not in another namespace than its owner": {
			change: func(p *corev1.Pod) { p.Namespace = "bank" }, want: "has no ReplicaSet web-abc",
		},
		"not without an owner": {change: func(p *corev1.Pod) { p.OwnerReferences = nil }, want: "has one owner"},
		"not of an owner that is none": {
			change: func(p *corev1.Pod) { p.OwnerReferences[0].Name = "other" }, want: "has no ReplicaSet other",
		},
		"not of an owner with another UID": {
			change: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "forged" }, want: "with UID forged",
		},
		"not of an owner that controls no pods": {
			change: func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.OwnerReferences[0].APIVersion = "ConfigMap", "v1" }, want: "no controller",
		},
		"not of one that only owns it": {
			change: func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, want: "no controller",
		},
		"not of a ReplicaSet whose Deployment is another": {
			prepare: func(f *family) { f.above.UID = "another" }, want: "has no ReplicaSet",
		},
		"not with two owners": {
			change: func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) }, want: "has one owner",
		},
		"not with the UID of something else": {
			change: func(p *corev1.Pod) { p.UID = "uid-of-web" }, want: "its UID is that of deployments shop/web",
		},
		"not with the UID of its namespace": {
			change: func(p *corev1.Pod) { p.UID = "uid-of-shop" }, want: "its UID is that of namespaces shop",
		},
		"not without a UID":          {change: func(p *corev1.Pod) { p.UID = "" }, want: "is not a UID"},
		"not with labels of its own": {change: func(p *corev1.Pod) { p.Labels["k8s-app"] = "kube-dns" }, want: "k8s-app"},
		"not with another image":     {change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" }, want: "field Containers"},
		"not on another node":        {change: func(p *corev1.Pod) { p.Spec.NodeName = "west" }, want: "spec.nodeName"},
		"not under the name of a replica of a StatefulSet": {
			change: func(p *corev1.Pod) { p.Name = "db-2" }, want: "that of a replica of StatefulSet db",
		},
		"a replica of its own":         {change: ofSet("db-0")},
		"not one of another cluster":   {change: ofSet("db-1"), want: `ordinal 1 of StatefulSet db belongs to cluster "west"`},
		"not one that is nobody's yet": {change: ofSet("db-7"), want: "no cluster should run ordinal 7 of StatefulSet db"},
		"one that it is about to leave": {prepare: func(*family) {
			replicas.Annotations[v1alpha1.AnnotationStatus] = `{"east":{"replicas":1,"start":9}}`
		}, change: ofSet("db-9")},
		"not one of a name that no replica has":       {change: ofSet("web-1"), want: "has no replica of that name"},
		"not with a finalizer that holds it for ever": {change: func(p *corev1.Pod) { p.Finalizers = []string{"x"} }, want: "finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily()
			shown := f.shown("east")
			if test.prepare != nil {
				test.prepare(f)
			}
			if test.change != nil {
				test.change(shown)
			}
			if test.cluster == "" {
				test.cluster = "east"
			}
			if shown.OwnerReferences != nil && shown.OwnerReferences[0].Kind == "StatefulSet" {
				shown.Spec.Containers = nil
			}
			expectRefusal(t, guardOf(t, f.above, f.mirrored, replicas, namespace("shop"), system, other).CreatePod(test.cluster, shown), test.want)
		})
	}
	t.Run("nothing before anything is known", func(t *testing.T) {
		f := newFamily()
		expectRefusal(t, unread(t, f.above, f.mirrored, namespace("shop")).CreatePod("east", f.shown("east")), "has not been read yet")
	})
}

func TestWhatAClusterMayChangeOfPods(t *testing.T) {
	f := newFamily()
	foreign := deployment("other", `{"west":{"replicas":1}}`)
	elsewhere := &appsv1.ReplicaSet{ObjectMeta: objectMeta("other-abc")}
	elsewhere.OwnerReferences = controlledBy(foreign, "Deployment")
	loose := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}
	own := func() *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: objectMeta("one")}
		p.Annotations = map[string]string{v1alpha1.AnnotationPlacement: toEast}
		return p
	}
	mirror := func() *corev1.Pod { return f.shown("east") }
	over := func(p *corev1.Pod) {
		delete(p.Annotations, v1alpha1.AnnotationCluster)
		p.OwnerReferences = nil
		p.Annotations[v1alpha1.AnnotationPlacement] = `{"east":{"replicas":1}}`
		p.Annotations[v1alpha1.AnnotationPodUID] = string(p.UID)
	}
	for name, test := range map[string]struct {
		cluster string
		stored  *corev1.Pod
		before  func(stored *corev1.Pod)
		change  func(p *corev1.Pod)
		want    string
	}{
		"the status of its mirrors":                  {"east", mirror(), nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ""},
		"not of those of others":                     {"west", mirror(), nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, `mirrors a pod of cluster "east"`},
		"not whose they are":                         {"east", mirror(), nil, func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationCluster] = "west" }, "manifold.dev/cluster"},
		"not their UID":                              {"east", mirror(), nil, func(p *corev1.Pod) { p.UID = "another" }, "another pod"},
		"not their labels":                           {"east", mirror(), nil, func(p *corev1.Pod) { p.Labels["app"] = "bank" }, "app"},
		"not what owns them above":                   {"east", mirror(), nil, func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, loose) }, "ownerReferences"},
		"nor takes that off":                         {"east", mirror(), func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, loose) }, func(p *corev1.Pod) { p.OwnerReferences = p.OwnerReferences[:1] }, "ownerReferences"},
		"not the controller to one elsewhere":        {"east", mirror(), nil, func(p *corev1.Pod) { p.OwnerReferences = controlledBy(elsewhere, "ReplicaSet") }, "Deployment other is not placed"},
		"not that there is none":                     {"east", mirror(), nil, func(p *corev1.Pod) { p.OwnerReferences = nil }, "no controller"},
		"not that they are none":                     {"east", mirror(), nil, over, "has no record that"},
		"unless a user has given them other labels":  {"east", mirror(), func(p *corev1.Pod) { p.Labels["app"] = "broken" }, over, ""},
		"or the collector has taken off their owner": {"east", mirror(), func(p *corev1.Pod) { p.OwnerReferences = nil }, over, ""},
		"but not with more than they were":           {"east", mirror(), func(p *corev1.Pod) { p.Labels["app"] = "broken" }, func(p *corev1.Pod) { over(p); p.Spec.HostNetwork = true }, "field HostNetwork"},
		"nor in another cluster":                     {"east", mirror(), func(p *corev1.Pod) { p.Labels["app"] = "broken" }, func(p *corev1.Pod) { over(p); p.Annotations[v1alpha1.AnnotationPlacement] = `{"west":{"replicas":1}}` }, "manifold.dev/placement"},
		"nor with an owner":                          {"east", mirror(), func(p *corev1.Pod) { p.Labels["app"] = "broken" }, func(p *corev1.Pod) { over(p); p.OwnerReferences = controlledBy(f.mirrored, "ReplicaSet") }, "no controller"},
		"the status of what users have placed there": {"east", own(), nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, ""},
		"not of what they have placed elsewhere":     {"west", own(), nil, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, `not placed in cluster "west"`},
		"not what they have asked for":               {"east", own(), nil, func(p *corev1.Pod) { p.Spec.HostPID = true }, "field HostPID"},
		"not that it is no more theirs":              {"east", own(), nil, func(p *corev1.Pod) { p.Annotations[v1alpha1.AnnotationCluster] = "east" }, "it is not a mirror"},
		"that a controller there has taken it over":  {"east", own(), nil, func(p *corev1.Pod) { p.OwnerReferences = controlledBy(f.mirrored, "ReplicaSet") }, ""},
		"not that one has which does not run there":  {"east", own(), nil, func(p *corev1.Pod) { p.OwnerReferences = controlledBy(elsewhere, "ReplicaSet") }, "that is placed in cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.before != nil {
				test.before(test.stored)
			}
			pod := test.stored.DeepCopy()
			test.change(pod)
			expectRefusal(t, guardOf(t, f.above, f.mirrored, foreign, elsewhere, namespace("shop")).UpdatePod(test.cluster, pod, test.stored), test.want)
		})
	}
}

func TestWhatAClusterMayTakeAway(t *testing.T) {
	f := newFamily()
	own := &corev1.Pod{ObjectMeta: objectMeta("one")}
	own.Annotations = map[string]string{v1alpha1.AnnotationPlacement: toEast}
	ran := own.DeepCopy()
	ran.Annotations[v1alpha1.AnnotationPodUID] = "below"
	for name, test := range map[string]struct {
		cluster string
		stored  *corev1.Pod
		want    string
	}{
		"its mirrors":                        {"east", f.shown("east"), ""},
		"not those of others":                {"west", f.shown("east"), `mirrors a pod of cluster "east"`},
		"what users had there":               {"east", ran, ""},
		"not what it has never had":          {"east", own, "has never had it"},
		"not what users have somewhere else": {"west", ran, `not in cluster "west"`},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefusal(t, guardOf(t).DeletePod(test.cluster, test.stored), test.want)
		})
	}
}

func TestWhichClaimsAClusterMayHaveShown(t *testing.T) {
	other := namespace("bank")
	for name, test := range map[string]struct {
		cluster, decision string
		change            func(e *estate, c *corev1.PersistentVolumeClaim)
		want              string
	}{
		"what its syncer shows":            {cluster: "east"},
		"not of another cluster":           {cluster: "west", want: "it is not marked"},
		"not of what is elsewhere":         {cluster: "east", decision: `{"west":{"replicas":2}}`, want: "is not placed"},
		"not of ordinals of others":        {cluster: "east", decision: `{"east":{"replicas":1,"start":1},"west":{"replicas":1}}`, want: `ordinal 0 of StatefulSet db is not placed`},
		"not of ordinals that are to come": {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) { c.Name = "data-db-7" }, want: "ordinal 7"},
		"not of a name that none makes":    {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) { c.Name = "forged" }, want: "no StatefulSet of the logical cluster"},
		"not of a template that is none": {cluster: "east", change: func(e *estate, _ *corev1.PersistentVolumeClaim) {
			e.above.Spec.VolumeClaimTemplates[0].Name = "logs"
		}, want: "no StatefulSet of the logical cluster"},
		"not in another namespace":     {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) { c.Namespace = "bank" }, want: "no StatefulSet of the logical cluster"},
		"not with the UID of a Secret": {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) { c.UID = "uid-of-key" }, want: "its UID is that of secrets shop/key"},
		"not with labels of its own":   {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) { c.Labels["x"] = "y" }, want: "metadata.labels"},
		"not with an owner that is none": {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "forged"}}
		}, want: "ownerReferences"},
		"not with one of another kind": {cluster: "east", change: func(_ *estate, c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "key", UID: "uid-of-key"}}
		}, want: "ownerReferences"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.decision == "" {
				test.decision = `{"east":{"replicas":2}}`
			}
			e := newEstate(test.decision)
			shown := e.shown("east")
			if test.change != nil {
				test.change(e, shown)
			}
			expectRefusal(t, guardOf(t, e.above, namespace("shop"), other, secret("key")).CreateClaim(test.cluster, shown), test.want)
		})
	}
}

func TestWhatAClusterMayChangeOfClaims(t *testing.T) {
	for name, test := range map[string]struct {
		cluster, decision string
		before, change    func(c *corev1.PersistentVolumeClaim)
		want              string
	}{
		"what its claims are":           {cluster: "east", change: func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }},
		"not those of others":           {cluster: "west", change: func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, want: "mirrors a claim"},
		"not that it is none of theirs": {cluster: "east", change: func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, v1alpha1.AnnotationCluster) }, want: "cannot be removed"},
		"not its UID":                   {cluster: "east", change: func(c *corev1.PersistentVolumeClaim) { c.UID = "x" }, want: "another claim"},
		"not what owns it above": {cluster: "east", change: func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}}
		}, want: "ownerReferences"},
		"the end of one whose replica has come to it": {
			cluster: "west", decision: `{"west":{"replicas":2}}`,
			before: func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} },
			change: func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil },
		},
		"and nothing but its end": {
			cluster: "west", decision: `{"west":{"replicas":2}}`,
			before: func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} },
			change: func(c *corev1.PersistentVolumeClaim) { c.Finalizers, c.Spec.VolumeName = nil, "mine" }, want: "can only be deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.decision == "" {
				test.decision = `{"east":{"replicas":2}}`
			}
			e := newEstate(test.decision)
			stored := e.shown("east")
			if test.before != nil {
				test.before(stored)
			}
			claim := stored.DeepCopy()
			test.change(claim)
			g := guardOf(t, e.above, namespace("shop"))
			expectRefusal(t, g.UpdateClaim(test.cluster, claim, stored), test.want)
		})
	}
	e := newEstate(`{"west":{"replicas":2}}`)
	g := guardOf(t, e.above, namespace("shop"))
	for cluster, want := range map[string]string{"east": "", "west": "", "north": `mirrors a claim of cluster "east"`} {
		expectRefusal(t, g.DeleteClaim(cluster, e.shown("east")), want)
	}
	own := e.claim.DeepCopy()
	expectRefusal(t, g.DeleteClaim("east", own), "it is not a mirror")
}
