package mirror

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

type pairs = map[string]string

func template(labels pairs) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *templateSpec()}
}

func TestLabelsOfAMirror(t *testing.T) {
	web := pairs{"app": "web"}
	set := Owner{Object: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Labels: pairs{"pod-template-hash": "abc"}}}, Template: template(web)}
	stateful := Owner{Object: &appsv1.StatefulSet{}, Template: template(web), Revision: "db-2"}
	daemon := Owner{Object: &appsv1.DaemonSet{}, Template: template(web)}
	indexed := Owner{Object: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sums"}, Spec: batchv1.JobSpec{
		CompletionMode: ptr.To(batchv1.IndexedCompletion),
	}}, Template: template(web)}
	const index, hash, revision = "batch.kubernetes.io/job-completion-index", "pod-template-hash", "controller-revision-hash"
	for name, test := range map[string]struct {
		owner        Owner
		pod          string
		have, stored pairs
		want         pairs
	}{
		"those of the template": {set, "web-1", pairs{"app": "web", hash: "below"}, nil, pairs{"app": "web", hash: "abc"}},
		"not what the cluster adds or changes": {
			set, "web-1", pairs{"app": "bank", "role": "admin"}, nil, pairs{"app": "web", hash: "abc"},
		},
		"those that users have written": {
			set, "web-1", pairs{"app": "web"}, pairs{"app": "web", hash: "abc", "team": "a"}, pairs{"app": "web", hash: "abc", "team": "a"},
		},
		"without those that users have taken off": {
			set, "web-1", pairs{"app": "web", hash: "abc"}, pairs{"app": "web"}, pairs{"app": "web"},
		},
		"not what the cluster adds later": {
			set, "web-1", pairs{"app": "web", "role": "admin"}, pairs{"app": "web", hash: "abc"}, pairs{"app": "web", hash: "abc"},
		},
		"those of a replica": {
			stateful, "db-1", pairs{"apps.kubernetes.io/pod-index": "7", "statefulset.kubernetes.io/pod-name": "other-0", revision: "x"}, nil,
			pairs{"app": "web", "apps.kubernetes.io/pod-index": "1", "statefulset.kubernetes.io/pod-name": "db-1", revision: "db-2"},
		},
		"not a revision that nobody knows above": {daemon, "agent-x", pairs{revision: "forged"}, nil, pairs{"app": "web"}},
		"a number that only the cluster counts": {
			daemon, "agent-x", pairs{"pod-template-generation": "3"}, nil, pairs{"app": "web", "pod-template-generation": "3"},
		},
		"if it is one": {daemon, "agent-x", pairs{"pod-template-generation": "all"}, nil, pairs{"app": "web"}},
		"the index of a pod of a Job, by its name": {
			indexed, "sums-4-abcde", pairs{index: "9"}, nil, pairs{"app": "web", index: "4"},
		},
		"but none of another name": {indexed, "other-4-abcde", pairs{index: "9"}, nil, pairs{"app": "web"}},
		"and never marks of Manifold": {
			Owner{Object: &appsv1.DaemonSet{}, Template: template(pairs{"app": "web", v1alpha1.LabelOrphan: "true"})}, "x",
			pairs{v1alpha1.LabelOrphan: "true"}, nil, pairs{"app": "web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.owner.Labels(test.have, test.stored, test.pod); !maps.Equal(got, test.want) {
				t.Errorf("labels %v, want %v", got, test.want)
			}
		})
	}
}

func TestAnnotationsOfANewPod(t *testing.T) {
	const index = "batch.kubernetes.io/job-completion-index"
	annotated := template(nil)
	annotated.Annotations = pairs{"note": "x", v1alpha1.AnnotationOrphan: "true"}
	indexed := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "sums"}, Spec: batchv1.JobSpec{CompletionMode: ptr.To(batchv1.IndexedCompletion)}}
	for name, test := range map[string]struct {
		owner Owner
		pod   string
		have  pairs
		want  pairs
	}{
		"those of the template":               {Owner{Object: &appsv1.ReplicaSet{}, Template: annotated}, "web-1", pairs{"note": "y", "more": "z", index: "1"}, pairs{"note": "x"}},
		"the index of a Job's pod":            {Owner{Object: indexed, Template: annotated}, "sums-4-abcde", pairs{index: "9"}, pairs{"note": "x", index: "4"}},
		"none, if its name says that of none": {Owner{Object: indexed, Template: annotated}, "other-4-abcde", pairs{index: "9"}, pairs{"note": "x"}},
		"none without a template's":           {Owner{Object: &appsv1.ReplicaSet{}, Template: template(nil)}, "web-1", nil, pairs{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.owner.Annotations(test.have, test.pod); !maps.Equal(got, test.want) {
				t.Errorf("annotations %v, want %v", got, test.want)
			}
		})
	}
}

func shownPod(owner Owner, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "below", Annotations: pairs{"note": "x"}}, Spec: *onNode()}
	owner.Pod(pod, nil)
	pod.Annotations[v1alpha1.AnnotationCluster], pod.Annotations[v1alpha1.AnnotationNode] = "east", "node-1"
	for _, c := range change {
		c(pod)
	}
	return pod
}

func webOwner() Owner {
	return Owner{Object: &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, Template: template(pairs{"app": "web"})}
}

func mark(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func TestWhatCannotBeAMirror(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string // in the error, "" for none
	}{
		"what the syncer makes of a pod is one": {func(*corev1.Pod) {}, ""},
		"on a node of another cluster":          {func(p *corev1.Pod) { p.Spec.NodeName = "west" }, `spec.nodeName is "west"`},
		"with a label of its own":               {func(p *corev1.Pod) { p.Labels["k8s-app"] = "kube-dns" }, "k8s-app"},
		"without one of the template":           {func(p *corev1.Pod) { delete(p.Labels, "app") }, "app is missing"},
		"with another image":                    {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" }, "field Containers"},
		"with a part of the host":               {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "field HostNetwork"},
		"with a finalizer":                      {func(p *corev1.Pod) { p.Finalizers = []string{"stay"} }, "metadata.finalizers"},
		"with a decision":                       {mark(v1alpha1.AnnotationPlacement, `{"west":{"replicas":1}}`), "manifold.dev/placement"},
		"with a pin":                            {mark(v1alpha1.AnnotationClusters, "west"), "manifold.dev/clusters"},
		"of another cluster":                    {mark(v1alpha1.AnnotationCluster, "west"), "manifold.dev/cluster"},
		"with a node that is none":              {mark(v1alpha1.AnnotationNode, "a b"), "manifold.dev/node"},
		"with a mark that is to come":           {mark("delivery.manifold.dev/release", "1"), "delivery.manifold.dev/release"},
	} {
		t.Run(name, func(t *testing.T) {
			owner := webOwner()
			for what, stored := range map[string]*corev1.Pod{"new": nil, "stored": shownPod(owner)} {
				if got := errorText(owner.CheckPod(shownPod(owner, test.change), stored, "east", nil)); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
					t.Errorf("%s: error %q, want %q in it", what, got, test.want)
				}
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhatAPodIsThatGoesOnWithoutItsController(t *testing.T) {
	stored := shownPod(webOwner())
	for name, test := range map[string]struct {
		template *corev1.PodSpec
		stored   *corev1.Pod
		change   func(*corev1.Pod)
		want     string
	}{
		"what came from above":                                {template: templateSpec(), stored: stored},
		"what the mirror shows, if nobody knows the template": {stored: stored},
		"nothing, if it could begin elsewhere then": {
			stored: shownPod(webOwner(), func(p *corev1.Pod) { p.Spec.NodeName = "" }), want: "nobody knows the template",
		},
		"not what the cluster has added": {
			template: templateSpec(), stored: stored, want: "field Containers",
			change: func(p *corev1.Pod) { p.Spec.Containers = onNode().Containers },
		},
		"not another image": {
			template: templateSpec(), stored: stored, want: "field Containers",
			change: func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" },
		},
		"not in another cluster": {
			template: templateSpec(), stored: stored, want: "manifold.dev/placement",
			change: mark(v1alpha1.AnnotationPlacement, `{"west":{"replicas":1}}`),
		},
		"not pinned": {
			template: templateSpec(), stored: stored, want: "manifold.dev/clusters", change: mark(v1alpha1.AnnotationClusters, "west"),
		},
		"not with other labels": {
			template: templateSpec(), stored: stored, want: "app", change: func(p *corev1.Pod) { p.Labels["app"] = "bank" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := stored.DeepCopy()
			TakenOver(pod, test.stored, test.template, "east")
			if test.change != nil {
				test.change(pod)
			}
			if got := errorText(CheckTakenOver(pod, test.stored, test.template, "east")); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("error %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestLabelsOfAPodThatGoesOnWithoutItsController(t *testing.T) {
	const hash = "controller-revision-hash"
	for name, test := range map[string]struct{ pod, stored, want pairs }{
		"those of the mirror":                       {pairs{"app": "bank", "role": "admin"}, pairs{"app": "web"}, pairs{"app": "web"}},
		"its revision as its cluster calls it":      {pairs{hash: "db-below"}, pairs{hash: "db-above"}, pairs{hash: "db-below"}},
		"none, if the mirror names none":            {pairs{hash: "db-below"}, pairs{"app": "web"}, pairs{"app": "web"}},
		"that of the mirror, if the pod names none": {nil, pairs{hash: "db-above"}, pairs{hash: "db-above"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := takenLabels(test.pod, test.stored); !maps.Equal(got, test.want) {
				t.Errorf("labels %v, want %v", got, test.want)
			}
		})
	}
}

func TestWhatAClusterSaysOfAPodOfAUser(t *testing.T) {
	above := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "one", UID: "above", Generation: 2, Labels: pairs{"app": "one"}, Annotations: pairs{v1alpha1.AnnotationPlacement: `{"east":{"replicas":1}}`},
	}, Spec: *templateSpec()}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"its status":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, ""},
		"its node":             {func(p *corev1.Pod) { p.Spec.NodeName = "east"; p.Annotations[v1alpha1.AnnotationNode] = "node-1" }, ""},
		"its UID there":        {mark(v1alpha1.AnnotationPodUID, "below"), ""},
		"that it waits there":  {mark(v1alpha1.AnnotationPodCluster, "east"), ""},
		"not that elsewhere":   {mark(v1alpha1.AnnotationPodCluster, "west"), "another cluster"},
		"not another node":     {func(p *corev1.Pod) { p.Spec.NodeName = "west" }, "field NodeName"},
		"not its image":        {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil:1" }, "field Containers"},
		"not its labels":       {func(p *corev1.Pod) { p.Labels["app"] = "bank" }, "app"},
		"not its decision":     {mark(v1alpha1.AnnotationPlacement, `{"west":{"replicas":1}}`), "manifold.dev/placement"},
		"not its pin":          {mark(v1alpha1.AnnotationClusters, "west"), "manifold.dev/clusters"},
		"no other annotation":  {mark("note", "x"), "note"},
		"no finalizer":         {func(p *corev1.Pod) { p.Finalizers = []string{"stay"} }, "metadata.finalizers"},
		"not its generation":   {func(p *corev1.Pod) { p.Generation = 9 }, "metadata.generation"},
		"no UID without end":   {mark(v1alpha1.AnnotationPodUID, strings.Repeat("a", 1000)), "is not a UID"},
		"no node that is none": {mark(v1alpha1.AnnotationNode, "\x1b[2J"), "is no node"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := above.DeepCopy()
			test.change(pod)
			if got := errorText(CheckReport(pod, above, "east")); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("error %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestAPodOfAUserThatHasANodeBeginsNowhereElse(t *testing.T) {
	waits := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: pairs{v1alpha1.AnnotationPodUID: "below", v1alpha1.AnnotationPodCluster: "east"}}}
	runs := waits.DeepCopy()
	runs.Spec.NodeName = "east"
	for name, test := range map[string]struct {
		stored *corev1.Pod
		want   string
	}{"one that waits may": {waits, ""}, "one that has a node": {runs, "begins nowhere else"}} {
		t.Run(name, func(t *testing.T) {
			pod := test.stored.DeepCopy()
			pod.Annotations = nil
			if got := errorText(CheckReport(pod, test.stored, "east")); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("error %q, want %q in it", got, test.want)
			}
		})
	}
}

func TestWhatAReplicaBeginsWith(t *testing.T) {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: "db", VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}}
	got := Owner{Object: set, Template: template(nil)}.Base("db-1")
	volume := got.Volumes[len(got.Volumes)-1]
	if got.Hostname != "db-1" || got.Subdomain != "db" || len(got.Volumes) != 2 || volume.PersistentVolumeClaim == nil ||
		volume.PersistentVolumeClaim.ClaimName != "data-db-1" {
		t.Errorf("begins with %+v, want its host name and its claim in place of the volume of that name", got)
	}
}

func TestWhoseLabelsSelect(t *testing.T) {
	set := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: pairs{"app": "web"}}}}
	old := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Selector: pairs{"app": "web"}}}
	for name, test := range map[string]struct {
		controller projection.Object
		labels     pairs
		want       bool
	}{
		"a pod of its own":                {set, pairs{"app": "web", "x": "y"}, true},
		"one that a user has relabelled":  {set, pairs{"app": "broken"}, false},
		"one of a ReplicationController":  {old, pairs{"app": "broken"}, false},
		"what does not select has it all": {&corev1.Pod{}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Selects(test.controller, test.labels); got != test.want {
				t.Errorf("selects %t, want %t", got, test.want)
			}
		})
	}
}

func TestFinalizersOfAMirror(t *testing.T) {
	stored := func(finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
	}
	for name, test := range map[string]struct {
		template, pod []string
		stored        *corev1.Pod
		want          []string
	}{
		"those of the template":                      {[]string{"x/a", "x/b"}, []string{"x/b", "x/a"}, nil, []string{"x/a", "x/b"}},
		"not what the cluster adds":                  {[]string{"x/a"}, []string{"x/a", "batch.kubernetes.io/job-tracking"}, nil, []string{"x/a"}},
		"not what the cluster has taken off":         {[]string{"x/a", "x/b"}, []string{"x/b"}, nil, []string{"x/b"}},
		"not what is taken off above":                {[]string{"x/a", "x/b"}, []string{"x/a", "x/b"}, stored("x/b"), []string{"x/b"}},
		"not what is taken off there later":          {[]string{"x/a", "x/b"}, []string{"x/b"}, stored("x/a", "x/b"), []string{"x/b"}},
		"none that controllers above would act upon": {[]string{"orphan", "foregroundDeletion", v1alpha1.FinalizerProjection}, []string{"orphan", "foregroundDeletion", v1alpha1.FinalizerProjection}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			owner := webOwner()
			owner.Template.Finalizers = test.template
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Finalizers: test.pod}, Spec: *onNode()}
			was := test.stored
			if was != nil {
				was.Spec = *onNode()
			}
			owner.Pod(pod, was)
			if !slices.Equal(pod.Finalizers, test.want) {
				t.Errorf("finalizers %v, want %v", pod.Finalizers, test.want)
			}
		})
	}
}
