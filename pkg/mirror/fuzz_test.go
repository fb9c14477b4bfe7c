package mirror

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// owners are controllers of every kind, with a template of which they have pods.
func owners() []Owner {
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pairs{"app": "web"}}, Spec: *templateSpec()}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1", Labels: pairs{appsv1.DefaultDeploymentUniqueLabelKey: "h1"}}
	return []Owner{
		{Object: &appsv1.ReplicaSet{ObjectMeta: meta}, Template: template},
		{Object: &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{ServiceName: "web", VolumeClaimTemplates: []corev1.PersistentVolumeClaim{
			{ObjectMeta: metav1.ObjectMeta{Name: "data"}},
		}}}, Template: template, Revision: "web-1"},
		{Object: &appsv1.DaemonSet{ObjectMeta: meta}, Template: template, Revision: "1"},
		{Object: &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{CompletionMode: ptr.To(batchv1.IndexedCompletion)}}, Template: template},
		{Object: &corev1.ReplicationController{ObjectMeta: meta}, Template: template},
	}
}

func addJSON(f *testing.F, seeds ...any) {
	f.Helper()
	for _, seed := range seeds {
		data, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// FuzzPod has a cluster have any pod, of a controller of each kind. What the syncer makes of it is a mirror that the API server takes, under labels
// that the cluster has not chosen; made of that again, it is the same; and once its controller lets go of it, it is the template's.
func FuzzPod(f *testing.F) {
	addJSON(f,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Labels: pairs{"app": "bank", appsv1.ControllerRevisionHashLabelKey: "x"}}, Spec: *onNode()},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0-abcde", Labels: pairs{generationLabel: "-1", v1alpha1.LabelOrphan: "true"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-99999999999", Annotations: pairs{v1alpha1.AnnotationPlacement: "{}"}}, Spec: *templateSpec()},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "-", Labels: pairs{batchv1.JobCompletionIndexAnnotation: "7", appsv1.PodIndexLabel: "9"}}},
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		live := &corev1.Pod{}
		if json.Unmarshal(data, live) != nil {
			return
		}
		for _, owner := range owners() {
			shown := live.DeepCopy()
			shown.Finalizers, shown.Annotations = nil, Unreserved(shown.Annotations)
			shown.Labels = Unreserved(shown.Labels)
			shown.Spec.NodeName = "east"
			owner.Pod(shown, nil)
			if err := owner.CheckPod(shown, nil, "east", nil); err != nil {
				t.Fatalf("what the syncer makes of it for a %T is refused: %v", owner.Object, err)
			}
			allowed := owner.Template.Labels
			for key, value := range shown.Labels {
				if _, own := allowed[key]; own && allowed[key] != value || !own && value != "" && key == "app" || Reserved(key) {
					t.Errorf("a pod of a %T has label %s=%s", owner.Object, key, value)
				}
			}
			again := shown.DeepCopy()
			owner.Pod(again, shown)
			if asJSON(t, again) != asJSON(t, shown) {
				t.Errorf("again it is %s, was %s", asJSON(t, again), asJSON(t, shown))
			}
			// Anything else of a mirror that is stored is taken only if the mirror comes out as it is.
			if err := owner.CheckPod(live, shown, "east", nil); err == nil {
				want := live.DeepCopy()
				owner.Pod(want, shown)
				if !maps.Equal(want.Labels, live.Labels) || len(live.Finalizers) > 0 {
					t.Errorf("taken is %s", asJSON(t, live))
				}
			}
			taken := shown.DeepCopy()
			TakenOver(taken, shown, &owner.Template.Spec, "east")
			if err := CheckTakenOver(taken, shown, &owner.Template.Spec, "east"); err != nil {
				t.Errorf("a pod of a %T that was let go of is refused: %v", owner.Object, err)
			}
			if len(taken.Spec.Containers) != len(owner.Template.Spec.Containers) || len(taken.Spec.EphemeralContainers) > 0 || taken.Spec.HostPID {
				t.Errorf("let go of, it is %s", asJSON(t, taken.Spec))
			}
		}
	})
}

// FuzzReport has a cluster say anything of a pod that a user has made. What is taken is where it is, and its status.
func FuzzReport(f *testing.F) {
	stored := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own", UID: "u1", Generation: 2, Labels: pairs{"app": "own"}, Annotations: pairs{"a": "b"}},
			Spec: *templateSpec()}
	}
	told := stored()
	told.Annotations[v1alpha1.AnnotationPodUID], told.Spec.NodeName = "u2", "east"
	evil := stored()
	evil.Annotations[v1alpha1.AnnotationClusters], evil.Spec.Containers[0].Image = "west", "evil:1"
	addJSON(f, stored(), told, evil, &corev1.Pod{})
	f.Fuzz(func(t *testing.T, data []byte) {
		live := &corev1.Pod{}
		if json.Unmarshal(data, live) != nil || CheckReport(live, stored(), "east") != nil {
			return
		}
		was := stored()
		spec := live.Spec.DeepCopy()
		if spec.NodeName == "east" {
			spec.NodeName = ""
		}
		if !maps.Equal(live.Labels, was.Labels) || asJSON(t, spec) != asJSON(t, was.Spec) || live.Generation != was.Generation {
			t.Errorf("taken is %s", asJSON(t, live))
		}
		for key := range live.Annotations {
			if _, had := was.Annotations[key]; !had && key != v1alpha1.AnnotationNode && key != v1alpha1.AnnotationPodUID && key != v1alpha1.AnnotationPodCluster {
				t.Errorf("taken is annotation %s", key)
			}
		}
	})
}

// FuzzClaim has a cluster have any claim of the name of one that a StatefulSet makes.
func FuzzClaim(f *testing.F) {
	known := ReplicaClaim(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: pairs{"tier": "db"}},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}, &metav1.LabelSelector{MatchLabels: pairs{"app": "db"}})
	addJSON(f, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Labels: pairs{"app": "bank", v1alpha1.LabelOrphan: "x"}, Finalizers: []string{"orphan", v1alpha1.FinalizerCluster, "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "stolen", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			DataSource: &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "stolen"}},
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		live := &corev1.PersistentVolumeClaim{}
		if json.Unmarshal(data, live) != nil {
			return
		}
		shown := live.DeepCopy()
		known.Claim(shown, nil)
		shown.Annotations = Unreserved(shown.Annotations)
		if err := known.CheckClaim(shown, nil, "east"); err != nil {
			t.Fatalf("what the syncer makes of it is refused: %v", err)
		}
		if !maps.Equal(shown.Labels, known.Labels) || len(shown.Spec.AccessModes) != 1 || shown.Spec.DataSource != nil || shown.Spec.DataSourceRef != nil {
			t.Errorf("shown is %s", asJSON(t, shown))
		}
		for _, finalizer := range shown.Finalizers {
			if meansAbove(finalizer) {
				t.Errorf("it has finalizer %s", finalizer)
			}
		}
		again := shown.DeepCopy()
		known.Claim(again, shown)
		if asJSON(t, again) != asJSON(t, shown) {
			t.Errorf("again it is %s, was %s", asJSON(t, again), asJSON(t, shown))
		}
	})
}

// FuzzEvent has a cluster tell any event. It is about what it is said to be about, names its cluster, and is none of Manifold's.
func FuzzEvent(f *testing.F) {
	addJSON(f, &corev1.Event{}, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1", Labels: pairs{"a": "b"}, Annotations: pairs{v1alpha1.AnnotationPlacement: "{}"},
			OwnerReferences: []metav1.OwnerReference{{Name: "x"}}, Finalizers: []string{"x"}},
		Source: corev1.EventSource{Component: "MANIFOLD-x"}, ReportingController: "x.Manifold.dev/y", Related: &corev1.ObjectReference{Name: "x"},
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		live := &corev1.Event{}
		if json.Unmarshal(data, live) != nil {
			return
		}
		shown := live.DeepCopy()
		shown.Namespace, shown.Name = "shop", EventName(live.Name, "east")
		about := corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "u"}
		Event(shown, about, "east")
		if err := CheckEvent(shown, "east"); err != nil {
			t.Fatalf("what the syncer makes of it is refused: %v", err)
		}
		if CheckEvent(shown, "west") == nil {
			t.Error("it is taken of another cluster")
		}
		if shown.InvolvedObject != about || len(shown.Annotations) != 1 || len(shown.Labels) > 0 || strings.EqualFold(shown.Source.Component, component) {
			t.Errorf("shown is %s", asJSON(t, shown))
		}
		if CheckEvent(live, "east") == nil && live.Annotations[v1alpha1.AnnotationCluster] != "east" {
			t.Errorf("taken is %s", asJSON(t, live))
		}
	})
}
