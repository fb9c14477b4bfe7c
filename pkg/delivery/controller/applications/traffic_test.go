package applications

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// Clusters hold what revisions say, so that is where the label has to be by which the pods of variants are told apart.
func TestRevisionsTellPodsApartWhereRequestsAreSharedOut(t *testing.T) {
	w := newWorld(t, nil, inline(deployment, configMap("blue")))
	w.turn()
	label := func() string {
		w.Helper()
		revisions := caches.All[*v1alpha1.ApplicationRevision](w.view.revisions)
		newest := revisions[0]
		for _, revision := range revisions {
			if revision.Spec.Number > newest.Spec.Number {
				newest = revision
			}
		}
		for _, object := range newest.Spec.Objects {
			if object.Manifest != nil && strings.Contains(string(object.Manifest.Raw), `"delivery.manifold.dev/variant":"primary"`) {
				return newest.Name + " has it"
			}
		}
		return newest.Name + " has none"
	}
	if got := label(); got != "web-v1 has none" {
		t.Error(got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Traffic = &v1alpha1.Traffic{Method: v1alpha1.TrafficReplicas}
	})
	w.turn()
	if got := label(); got != "web-v2 has it" {
		t.Error(got)
	}
}

func TestPodsBehindTheServiceInFront(t *testing.T) {
	kinds := map[string]projection.Kind{}
	for _, kind := range projection.Kinds() {
		kinds[kind.GVK.Kind] = kind
	}
	service := func(name, app, variant string) content {
		return content{kinds["Service"], &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationVariant: variant}}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}},
		}}
	}
	workload := func(name, app, variant string) content {
		out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationVariant: variant}}}
		out.Spec.Template.Labels = map[string]string{"app": app, v1alpha1.LabelVariant: variant}
		return content{kinds["Deployment"], out}
	}
	pods := []content{workload("web", "web", "primary"), workload("web-canary", "web", "canary"), workload("worker", "worker", "primary")}
	for name, test := range map[string]struct {
		front    *v1alpha1.ServiceReference
		services []content
		want     string
	}{
		"the only Service":             {services: []content{service("web", "web", "primary")}, want: "web,web-canary"},
		"not those of copies":          {services: []content{service("web", "web", "primary"), service("web-canary", "worker", "canary")}, want: "web,web-canary"},
		"the one that is named":        {front: &v1alpha1.ServiceReference{Name: "jobs"}, services: []content{service("web", "web", "primary"), service("jobs", "worker", "primary")}, want: "worker"},
		"none of two that nobody says": {services: []content{service("web", "web", "primary"), service("jobs", "worker", "primary")}},
		"none that is not there":       {front: &v1alpha1.ServiceReference{Name: "front"}, services: []content{service("web", "web", "primary")}},
		"none of a Service of no pods": {services: []content{{kinds["Service"], &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			found := sharingOf(v1alpha1.ApplicationSpec{Service: test.front, Traffic: &v1alpha1.Traffic{Method: v1alpha1.TrafficReplicas}}, append(test.services, pods...), nil)
			var got []string
			for _, of := range pods {
				if found.Behind["Deployment "+of.object.GetName()] {
					got = append(got, of.object.GetName())
				}
			}
			if strings.Join(got, ",") != test.want || !found.Routed || !found.ByPods || len(found.Workloads["canary"]) != 1 || len(found.Workloads["primary"]) != 2 {
				t.Errorf("%v: %+v, want %s", got, found, test.want)
			}
		})
	}
}
