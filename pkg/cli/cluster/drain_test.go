package cluster

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
)

// TestADrainIsATaintThatUncordonTakesAway goes there and back, beside a taint of somebody else's.
func TestADrainIsATaintThatUncordonTakesAway(t *testing.T) {
	own := corev1.Taint{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	drained := corev1.Taint{Key: manifoldv1alpha1.TaintDrain, Effect: corev1.TaintEffectNoExecute}
	forced := drained
	forced.Value = manifoldv1alpha1.DrainForce
	for name, test := range map[string]struct {
		force bool
		has   []corev1.Taint
		want  []corev1.Taint
	}{
		"a cluster without taints":        {want: []corev1.Taint{drained}},
		"one with a taint of its own":     {has: []corev1.Taint{own}, want: []corev1.Taint{own, drained}},
		"one that is being drained":       {has: []corev1.Taint{drained, own}, want: []corev1.Taint{own, drained}},
		"from now on by force":            {force: true, has: []corev1.Taint{drained}, want: []corev1.Taint{forced}},
		"not by force any more":           {has: []corev1.Taint{forced, own}, want: []corev1.Taint{own, drained}},
		"by force from the start on":      {force: true, has: []corev1.Taint{own}, want: []corev1.Taint{own, forced}},
		"by force as it is being drained": {force: true, has: []corev1.Taint{forced}, want: []corev1.Taint{forced}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := named("east", "1")
			cluster.Spec.Taints = test.has
			client := fake.NewSimpleClientset(&cluster)
			l := &logical{clusters: client.ManifoldV1alpha1().Clusters(), manifold: client}
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			o := &DrainOptions{IOStreams: streams, subject: subject{Name: "east"}, Force: test.force}
			begun, err := o.begin(t.Context(), l, &cluster)
			if err != nil {
				t.Fatal(err)
			}
			if !begun.Spec.Unschedulable || !equality.Semantic.DeepEqual(begun.Spec.Taints, test.want) {
				t.Errorf("unschedulable %v, taints %v; want %v", begun.Spec.Unschedulable, begun.Spec.Taints, test.want)
			}

			uncordoned := &CordonOptions{IOStreams: streams, Names: []string{"east"}, clusters: l.clusters}
			if err := uncordoned.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			after, err := l.clusters.Get(t.Context(), "east", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if after.Spec.Unschedulable || !equality.Semantic.DeepEqual(after.Spec.Taints, undrained(test.has)) {
				t.Errorf("after uncordon: unschedulable %v, taints %v", after.Spec.Unschedulable, after.Spec.Taints)
			}
			if want := "cluster/east uncordoned\n"; out.String() != want {
				t.Errorf("printed %q, want %q", out, want)
			}
		})
	}
}

func TestADrainBeginsAlthoughSomebodyChangesTheClusterMeanwhile(t *testing.T) {
	cluster := named("east", "1")
	client := fake.NewSimpleClientset(&cluster)
	conflicts := 2
	client.PrependReactor("patch", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(manifoldv1alpha1.Resource("clusters"), "east", errors.New("it was changed"))
		}
		return false, nil, nil
	})
	o := &DrainOptions{subject: subject{Name: "east"}}
	begun, err := o.begin(t.Context(), &logical{clusters: client.ManifoldV1alpha1().Clusters(), manifold: client}, &cluster)
	if err != nil || !begun.Spec.Unschedulable || conflicts >= 0 {
		t.Errorf("begun is %+v, error %v, with %d conflicts left", begun, err, conflicts)
	}
}
