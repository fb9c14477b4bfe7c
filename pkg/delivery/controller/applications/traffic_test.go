package applications

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// What stages change of manifests is a part of revisions, by the targets of the stages.
func TestRevisionsHoldWhatStagesChangeOfManifests(t *testing.T) {
	app := inline(deployment, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`)
	app.Spec.Targets = []v1alpha1.Target{{Name: "hoge", Cluster: "hoge"}, {Name: "fuga", Cluster: "fuga"}}
	w := newWorld(t, nil, app)
	holds := func(of string) string {
		w.Helper()
		var found []string
		for _, revision := range caches.All[*v1alpha1.ApplicationRevision](w.view.revisions) {
			texts := map[string]string{}
			for _, object := range revision.Spec.Objects {
				texts[object.Hash] = string(object.Manifest.Raw)
			}
			for _, target := range revision.Spec.Targets {
				for _, hash := range target.Objects {
					if strings.Contains(texts[hash], of) {
						found = append(found, revision.Name+"/"+target.Name)
					}
				}
			}
		}
		slices.Sort(found)
		return strings.Join(found, " ")
	}
	const selects, serves = `"matchLabels":{"delivery.manifold.dev/variant":"primary"}`, `"name":"web-stable"`
	w.turn()
	if got := holds(selects) + holds(serves); got != "" {
		t.Errorf("without such stages they are in %s", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Pipeline = &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{
			{Name: "K8S_PRIMARY_ROLLOUT", Targets: []string{"fuga"}, With: &runtime.RawExtension{Raw: []byte(`{"createService":true,"suffix":"stable"}`)}},
			{Name: "K8S_PRIMARY_ROLLOUT", Targets: []string{"hoge"}},
		}}
	})
	w.turn()
	if got := holds(serves); got != "web-v2/fuga" || holds(selects) != "" {
		t.Errorf("the Service is in %q, want that of one target", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Pipeline.Stages[1].With = &runtime.RawExtension{Raw: []byte(`{"addVariantLabelToSelector":true}`)}
	})
	w.turn()
	if got := holds(selects); got != "web-v3/fuga web-v3/hoge" {
		t.Errorf("the selectors are in %q, want those of both targets", got)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) {
		spec.Pipeline.Stages[0].With.Raw = []byte(`{"createService":true,"suffix":"web"}`)
	})
	if says := says(w.turn(), v1alpha1.ApplicationRendered); w.revisionNames() != "web-v1 web-v2 web-v3 web-v4" {
		t.Errorf("another suffix makes revisions %s: %s", w.revisionNames(), says)
	}
	w.change(func(spec *v1alpha1.ApplicationSpec) { spec.Source = inline(deployment).Spec.Source })
	if got := says(w.turn(), v1alpha1.ApplicationRendered); !strings.Contains(got, "service.name: Required value: there is no Service among the objects") {
		t.Errorf("without a Service in front it says %q", got)
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
	ownService := service("web-primary", "worker", "primary")
	ownService.object.SetAnnotations(map[string]string{v1alpha1.AnnotationVariant: "primary", v1alpha1.AnnotationServiceOf: "web"})
	pods := []content{workload("web", "web", "primary"), workload("web-canary", "web", "canary"), workload("worker", "worker", "primary")}
	for name, test := range map[string]struct {
		front    *v1alpha1.ServiceReference
		services []content
		want     string
	}{
		"the only Service":             {services: []content{service("web", "web", "primary")}, want: "web,web-canary"},
		"not those of copies":          {services: []content{service("web", "web", "primary"), service("web-canary", "worker", "canary")}, want: "web,web-canary"},
		"not one of the primary's own": {services: []content{service("web", "web", "primary"), ownService}, want: "web,web-canary"},
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
