package summary

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// below is a ReplicaSet in a cluster that carries out an image, with a hash of the cluster's own.
func below(cluster, image string, replicas int32) ReplicaSetShare {
	template := templateOf(image)
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "hash-in-" + cluster
	return ReplicaSetShare{Cluster: cluster, ReplicaSet: &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-hash-in-" + cluster, Generation: 3,
			Annotations: map[string]string{
				"kubernetes.io/change-cause": "image " + image, annotationRevision: "8", "manifold.dev/name": "web",
			},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(replicas), Template: template},
		Status: appsv1.ReplicaSetStatus{
			Replicas: replicas, FullyLabeledReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, ObservedGeneration: 3,
		},
	}}
}

func TestReplicaSetMerges(t *testing.T) {
	owner := web(5)
	owner.Annotations = map[string]string{
		"note": "kept", annotationRevision: "2", corev1.LastAppliedConfigAnnotation: "{}", "manifold.dev/placement": "{}",
	}
	hash := projection.TemplateHash(&owner.Spec.Template)
	got := ReplicaSet(owner, hash, nil, nil, []ReplicaSetShare{below("west", "web:1-mirror", 2), below("east", "web:1", 3)})

	template := templateOf("web:1")
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-" + hash, Labels: map[string]string{"app": "web", "pod-template-hash": hash},
			Annotations: map[string]string{"note": "kept"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-web", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](5), Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "pod-template-hash": hash}},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: 5, FullyLabeledReplicas: 5, ReadyReplicas: 5, AvailableReplicas: 5, ObservedGeneration: 1,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("mirror = %+v\nwant %+v", got, want)
	}
}

func TestReplicaSetOfAnOldTemplate(t *testing.T) {
	owner := web(5)
	had := Record(web(5))
	had.Template.Spec.Containers[0].Image, had.Annotations = "web:0", map[string]string{"kubernetes.io/change-cause": "by the user", annotationRevision: "3"}
	t.Run("is made of what the Deployment had, while it runs", func(t *testing.T) {
		got := ReplicaSet(owner, "old", had, nil, []ReplicaSetShare{below("west", "evil:west", 1), below("east", "evil:0", 2)})
		if *got.Spec.Replicas != 3 || got.Spec.Template.Spec.Containers[0].Image != "web:0" {
			t.Errorf("mirror = %+v", got.Spec)
		}
		if got.Name != "web-old" || got.Spec.Template.Labels["pod-template-hash"] != "old" {
			t.Errorf("mirror %s has template labels %v", got.Name, got.Spec.Template.Labels)
		}
		if want := map[string]string{"kubernetes.io/change-cause": "by the user"}; !reflect.DeepEqual(got.Annotations, want) {
			t.Errorf("annotations = %v, want %v", got.Annotations, want)
		}
	})
	t.Run("is none if only a cluster has it, whatever runs there", func(t *testing.T) {
		if got := ReplicaSet(owner, "evil", nil, nil, []ReplicaSetShare{below("east", "evil:0", 2)}); got != nil {
			t.Errorf("mirror = %+v, want none: rollout undo would run it everywhere", got)
		}
	})
	t.Run("does not come back once it was pruned", func(t *testing.T) {
		if got := ReplicaSet(owner, "old", had, nil, []ReplicaSetShare{below("east", "web:0", 0)}); got != nil {
			t.Errorf("mirror = %+v, want none", got)
		}
	})
	t.Run("keeps its template, annotations and revision, and is history without shares", func(t *testing.T) {
		existing := ReplicaSet(owner, "old", had, nil, []ReplicaSetShare{below("east", "web:0", 2)})
		existing.Generation = 1
		existing.Annotations[annotationRevision] = "1"
		got := ReplicaSet(owner, "old", nil, existing, nil)
		want := existing.DeepCopy()
		want.Spec.Replicas = ptr.To[int32](0)
		want.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 2}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("mirror = %+v\nwant %+v", got, want)
		}
	})
}

func TestReplicaSetInUseFollowsTheDeployment(t *testing.T) {
	owner := web(3)
	hash := projection.TemplateHash(&owner.Spec.Template)
	existing := ReplicaSet(owner, hash, nil, nil, []ReplicaSetShare{below("east", "web:1", 3)})
	existing.Generation, existing.UID = 1, "mirror"
	t.Run("nothing changed", func(t *testing.T) {
		if got := ReplicaSet(owner, hash, nil, existing, []ReplicaSetShare{below("east", "web:1", 3)}); !reflect.DeepEqual(got, existing) {
			t.Errorf("mirror = %+v\nwant %+v", got, existing)
		}
	})
	t.Run("annotations and minReadySeconds change", func(t *testing.T) {
		changed := owner.DeepCopy()
		changed.Annotations = map[string]string{"kubernetes.io/change-cause": "why not"}
		changed.Spec.MinReadySeconds = 5
		got := ReplicaSet(changed, hash, nil, existing, []ReplicaSetShare{below("east", "web:1", 3)})
		if got.Annotations["kubernetes.io/change-cause"] != "why not" || got.Spec.MinReadySeconds != 5 || got.Status.ObservedGeneration != 2 {
			t.Errorf("mirror = %+v", got)
		}
	})
	t.Run("a cluster has not seen its own change yet", func(t *testing.T) {
		share := below("east", "web:1", 2)
		share.ReplicaSet.Generation++
		if got := ReplicaSet(owner, hash, nil, existing, []ReplicaSetShare{share}); got.Status.ObservedGeneration != 1 {
			t.Errorf("observedGeneration = %d, want that of before, 1", got.Status.ObservedGeneration)
		}
	})
	t.Run("pods cannot be made in two clusters", func(t *testing.T) {
		var all []ReplicaSetShare
		for _, cluster := range []string{"west", "east"} {
			share := below(cluster, "web:1", 2)
			share.ReplicaSet.Status.Conditions = []appsv1.ReplicaSetCondition{{
				Type: appsv1.ReplicaSetReplicaFailure, Status: "True", Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: now,
			}}
			share.ReplicaSet.Status.TerminatingReplicas = ptr.To[int32](1)
			all = append(all, share)
		}
		failing := existing.DeepCopy()
		failing.Status.Conditions = []appsv1.ReplicaSetCondition{{
			Type: appsv1.ReplicaSetReplicaFailure, Status: "True", LastTransitionTime: longAgo,
		}}
		got := ReplicaSet(owner, hash, nil, failing, all).Status
		want := appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: "True", Reason: "FailedCreate", LastTransitionTime: longAgo,
			Message: `cluster "east": exceeded quota; cluster "west": exceeded quota`,
		}
		if !reflect.DeepEqual(got.Conditions, []appsv1.ReplicaSetCondition{want}) || *got.TerminatingReplicas != 2 {
			t.Errorf("status = %+v, want the condition %+v and 2 terminating", got, want)
		}
	})
}

func TestReplicaSetName(t *testing.T) {
	if got := ReplicaSetName("web", "abc"); got != "web-abc" {
		t.Errorf("name = %s", got)
	}
	if got := ReplicaSetName(strings.Repeat("w", 253), "abc"); len(got) != 253 || !strings.HasSuffix(got, "w-abc") {
		t.Errorf("a long name = %s (%d)", got, len(got))
	}
}

func TestAReplicaSetMadeByHandIsKnownByItsTemplate(t *testing.T) {
	owner := web(3)
	hash := projection.TemplateHash(&owner.Spec.Template)
	byHand := func(name, image string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{Template: templateOf(image)}}
	}
	same, other := byHand("same", "web:1"), byHand("other", "web:0")
	if got := ReplicaSetHash(same, nil); got != hash {
		t.Errorf("the hash of the same template is %q, want %q", got, hash)
	}
	if got := ReplicaSetHash(other, nil); got == hash {
		t.Error("another template has the same hash")
	}
	made := mirror(ReplicaSetName("web", hash), "1")
	for name, test := range map[string]struct {
		mirrors []*appsv1.ReplicaSet
		want    string
	}{
		"none":                          {nil, made.Name},
		"of another template":           {[]*appsv1.ReplicaSet{other}, made.Name},
		"of the template in use":        {[]*appsv1.ReplicaSet{other, same}, "same"},
		"beside one that clusters made": {[]*appsv1.ReplicaSet{same, made}, made.Name},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CurrentReplicaSet(owner, test.mirrors); got != test.want {
				t.Errorf("current is %q, want %q", got, test.want)
			}
		})
	}
	// As the one in use it follows the Deployment and keeps its name.
	share := []ReplicaSetShare{{Cluster: "east", ReplicaSet: &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2)}}}}
	if got := ReplicaSet(owner, hash, nil, same, share); got.Name != "same" || *got.Spec.Replicas != 2 {
		t.Errorf("shown as %s with %d replicas, want 2 of its own name", got.Name, *got.Spec.Replicas)
	}
}

func TestAMirrorTellsWhereItIs(t *testing.T) {
	owner := web(5)
	hash := projection.TemplateHash(&owner.Spec.Template)
	same := func(cluster string, replicas int32) ReplicaSetShare {
		share := below(cluster, "web:1", replicas)
		share.ReplicaSet.Name = "web-" + hash
		return share
	}
	for name, test := range map[string]struct {
		shares []ReplicaSetShare
		want   string
	}{
		"nowhere": {nil, ""},
		"where clusters have it under its name": {
			[]ReplicaSetShare{same("east", 3), same("west", 2)}, `{"east":{"replicas":3},"west":{"replicas":2}}`,
		},
		"also with no replicas":                        {[]ReplicaSetShare{same("east", 0)}, `{"east":{"replicas":0}}`},
		"not where one has it under a name of its own": {[]ReplicaSetShare{same("east", 3), below("west", "web:1", 2)}, `{"east":{"replicas":3}}`},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := ReplicaSet(owner, hash, nil, nil, []ReplicaSetShare{same("gone", 1)})
			got := ReplicaSet(owner, hash, nil, earlier, test.shares)
			if got.Annotations[v1alpha1.AnnotationPlacement] != test.want {
				t.Errorf("it is in %s, want %s", got.Annotations[v1alpha1.AnnotationPlacement], test.want)
			}
		})
	}
}

func TestAReplicaSetLeftBehindUnderAnotherNameIsAWorkloadThere(t *testing.T) {
	owner := web(5)
	owner.Annotations = map[string]string{"kubernetes.io/change-cause": "by the user"}
	share := below("west", "evil:1", 2)
	share.ReplicaSet.Name = "web-there"
	share.ReplicaSet.Labels = map[string]string{
		"app": "evil", "pod-template-hash": "there", v1alpha1.LabelLogicalCluster: "l", v1alpha1.LabelOrphan: "true",
	}
	got := OrphanedReplicaSet(owner, *Record(owner), []ReplicaSetShare{share})
	labels := map[string]string{"app": "web", "pod-template-hash": "there"}
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: "web-there", Labels: labels, Finalizers: []string{v1alpha1.FinalizerProjection},
		Annotations: map[string]string{"kubernetes.io/change-cause": "by the user", v1alpha1.AnnotationPlacement: `{"west":{"replicas":2}}`},
	}
	template := owner.Spec.Template.DeepCopy()
	template.Labels = labels
	spec := appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2), Template: *template, Selector: &metav1.LabelSelector{MatchLabels: labels}}
	if !reflect.DeepEqual(got.ObjectMeta, want) || !reflect.DeepEqual(got.Spec, spec) {
		t.Errorf("it is %+v\n%+v\nwant %+v\n%+v", got.ObjectMeta, got.Spec, want, spec)
	}
	another := below("east", "web:1", 3)
	another.ReplicaSet.Name = share.ReplicaSet.Name
	both := OrphanedReplicaSet(owner, *Record(owner), []ReplicaSetShare{share, another})
	if at := both.Annotations[v1alpha1.AnnotationPlacement]; *both.Spec.Replicas != 5 || at != `{"east":{"replicas":3},"west":{"replicas":2}}` {
		t.Errorf("two of a name are %d replicas in %s", *both.Spec.Replicas, at)
	}
	if len(share.ReplicaSet.Labels) != 4 {
		t.Error("the ReplicaSet of the cache was changed")
	}
	for name, hash := range map[string]string{"another's name": "other", "no label": "", "what is no label": "../there"} {
		share.ReplicaSet.Labels["pod-template-hash"] = hash
		if got := OrphanedReplicaSet(owner, *Record(owner), []ReplicaSetShare{share}); got != nil {
			t.Errorf("%s becomes %s", name, got.Name)
		}
	}
}
