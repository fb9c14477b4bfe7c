package app

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/pkg/cli/app/manifests"
)

func TestAPlanDeletesWhatTheReleaseWouldDelete(t *testing.T) {
	service := func(name string) string {
		return `{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{"ports":[{"port":80}]}}`
	}
	stage := func(with string, targets ...string) v1alpha1.Stage {
		return v1alpha1.Stage{Name: v1alpha1.StagePrimaryRollout, With: &runtime.RawExtension{Raw: []byte(with)}, Targets: targets}
	}
	all := []string{"hoge", "fuga"}
	for name, test := range map[string]struct {
		own    *bool
		file   *v1alpha1.RevisionDelivery
		config string // of the revision that is released: another one calls for the pipeline
		want   string // by target, where the Service that is gone goes, or why it stays
	}{
		"nobody says so":                       {want: "spec.prune is unset, spec.prune is unset"},
		"the Application says so":              {own: ptr.To(true), want: "deleted, deleted"},
		"the file says so":                     {file: &v1alpha1.RevisionDelivery{Prune: ptr.To(true)}, want: "deleted, deleted"},
		"the Application says otherwise":       {own: ptr.To(false), file: &v1alpha1.RevisionDelivery{Prune: ptr.To(true)}, want: "spec.prune is false, spec.prune is false"},
		"the file, and the pipeline is needed": {file: &v1alpha1.RevisionDelivery{Prune: ptr.To(true), Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{stage("{}")}}}, config: "2", want: leftByStage + ", " + leftByStage},
		"the file, and it is not needed":       {file: &v1alpha1.RevisionDelivery{Prune: ptr.To(true), Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{stage("{}")}}}, config: "1", want: "deleted, deleted"},
		"the pipeline is always gone through": {
			file: &v1alpha1.RevisionDelivery{Prune: ptr.To(true), Planner: &v1alpha1.Planner{AlwaysUsePipeline: true}, Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{stage("{}")}}}, config: "1",
			want: leftByStage + ", " + leftByStage,
		},
		"a stage for one of the targets": {
			file: &v1alpha1.RevisionDelivery{Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{stage(`{"prune":true}`, "hoge"), stage("{}", "fuga")}}}, config: "2", want: "deleted, spec.prune is unset",
		},
		"a stage that is not gone through": {
			file: &v1alpha1.RevisionDelivery{Pipeline: &v1alpha1.Pipeline{Stages: []v1alpha1.Stage{stage(`{"prune":true}`)}}}, config: "1", want: "spec.prune is unset, spec.prune is unset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.config == "" {
				test.config = "2"
			}
			before, after := []string{configMap("web", "1"), service("web"), service("old")}, []string{configMap("web", test.config), service("web")}
			v7 := holding(t, revision("web", 7), all, before, before)
			v8 := holding(t, revision("web", 8), all, after, after)
			v8.Spec.Delivery = test.file
			reader := manifests.New(t.Context(), fake.NewSimpleClientset(v7, v8), kubefake.NewSimpleClientset())
			app := &v1alpha1.Application{Spec: v1alpha1.ApplicationSpec{Prune: test.own}, Status: v1alpha1.ApplicationStatus{LiveRevision: "web-v7"}}
			p := newPlanner(reader, &world{}, "shop")
			p.prunes = prunesOf(reader, app, v8)
			found := &plan{}
			var got []string
			for _, target := range all {
				found.Targets = append(found.Targets, p.target(t.Context(), target, "web-v7", "web-v8"))
				for _, change := range found.Targets[len(found.Targets)-1].Changes {
					switch {
					case change.Object != "Service old":
					case change.Action == deleted:
						got = append(got, "deleted")
					default:
						got = append(got, change.Reason)
					}
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if differs := test.config == "2" || strings.Contains(test.want, "deleted"); found.differs() != differs {
				t.Errorf("it differs: %t, want %t", found.differs(), differs)
			}
		})
	}
}
