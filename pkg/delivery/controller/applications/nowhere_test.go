package applications

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// What is in no cluster keeps no release from succeeding, and is told.
func TestWhatIsInNoClusterIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		objects int
		nowhere func(name string) bool
		want    string
	}{
		"all is somewhere":           {objects: 2, nowhere: func(string) bool { return false }},
		"one is nowhere":             {objects: 2, nowhere: func(name string) bool { return name == "c001" }, want: "; in no cluster, since nothing that is placed needs it: ConfigMap/c001"},
		"many are":                   {objects: 9, nowhere: func(string) bool { return true }, want: ": ConfigMap/c000, ConfigMap/c001, ConfigMap/c002 and 6 more"},
		"too many to be asked about": {objects: mostAsked + 1, nowhere: func(string) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			app := inline(configMap("red"))
			app.Spec.Targets = []v1alpha1.Target{{Name: "eu", Cluster: "east"}}
			objects := []runtime.Object{app, &manifold.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}}
			for i := range test.objects {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprintf("c%03d", i), Labels: map[string]string{v1alpha1.LabelApplication: "web"},
				}})
			}
			w := newWorld(t, nil, objects...)
			w.reporter.isNowhere = func(_ projection.Kind, object projection.Object) bool { return test.nowhere(object.GetName()) }
			if released := meta.FindStatusCondition(w.turn().Status.Conditions, v1alpha1.ApplicationReleased); strings.Contains(released.Message, "in no cluster") {
				t.Errorf("while things are on their way it tells %q", released.Message)
			}
			w.ends(v1alpha1.ReleaseSucceeded)
			released := meta.FindStatusCondition(w.turn().Status.Conditions, v1alpha1.ApplicationReleased)
			if released.Status != metav1.ConditionTrue || !strings.HasSuffix(released.Message, test.want) || strings.Contains(released.Message, "in no cluster") != (test.want != "") {
				t.Errorf("it tells %q, want %q at its end", released.Message, test.want)
			}
		})
	}
}
