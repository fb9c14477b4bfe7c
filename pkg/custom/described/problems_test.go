package described

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

type props = apiextensionsv1.JSONSchemaProps

func object(properties map[string]props) props {
	return props{Type: "object", Properties: properties}
}

// definition is one of LeaderWorkerSet, as far as it matters, with a field that may be anything.
func definition(change func(*apiextensionsv1.CustomResourceDefinitionVersion)) *apiextensionsv1.CustomResourceDefinition {
	template := object(map[string]props{"spec": object(map[string]props{"containers": {Type: "array"}})})
	whole := object(map[string]props{
		"spec": object(map[string]props{
			"replicas": {Type: "integer"}, "name": {Type: "string"},
			"leaderWorkerTemplate": object(map[string]props{"size": {Type: "integer"}, "leaderTemplate": template, "workerTemplate": template}),
			"any":                  {Type: "object", XPreserveUnknownFields: ptr.To(true)},
		}),
		"status": object(map[string]props{"replicas": {Type: "integer"}}),
	})
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
	}
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Spec.Versions = append(out.Spec.Versions, version)
	if change != nil {
		other := *version.DeepCopy()
		other.Name = "v2"
		change(&other)
		out.Spec.Versions = append(out.Spec.Versions, other)
	}
	return out
}

func TestProblemsOfDescriptions(t *testing.T) {
	const kind = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
	describe := func(policy string, change func(*v1alpha1.CustomWorkload)) engine.Description {
		out := engine.Description{Policy: policy, Index: 2, CustomWorkload: v1alpha1.CustomWorkload{
			Kind: kind, PodTemplatePaths: []string{".spec.leaderWorkerTemplate.leaderTemplate", ".spec.leaderWorkerTemplate.workerTemplate"},
			PodsPerReplicaPath: ".spec.leaderWorkerTemplate.size", SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
		}}
		if change != nil {
			change(&out.CustomWorkload)
		}
		return out
	}
	of := func(change func(*v1alpha1.CustomWorkload)) []engine.Description {
		return []engine.Description{describe("kinds", change)}
	}
	removing := func(name string) func(*apiextensionsv1.CustomResourceDefinitionVersion) {
		return func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
			delete(v.Schema.OpenAPIV3Schema.Properties["spec"].Properties, name)
		}
	}
	for name, test := range map[string]struct {
		described []engine.Description
		crd       *apiextensionsv1.CustomResourceDefinition
		want      map[string]string
	}{
		"nothing is wrong": {of(nil), definition(nil), nil},
		"no such kind":     {of(nil), nil, map[string]string{"kinds": "spec.customWorkloads[2].kind: no definition makes the kind " + kind}},
		"a template that is not there": {
			of(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths[1] = ".spec.template" }), definition(nil),
			map[string]string{"kinds": "spec.customWorkloads[2].podTemplatePaths[1]: there is no field .spec.template of " + kind + " in version v1"},
		},
		"a template that is none": {
			of(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec.leaderWorkerTemplate"} }), definition(nil),
			map[string]string{"kinds": "spec.customWorkloads[2].podTemplatePaths[0]: .spec.leaderWorkerTemplate is no pod template"},
		},
		"a template of which the definition says nothing": {
			of(func(w *v1alpha1.CustomWorkload) { w.PodTemplatePaths = []string{".spec.any.template"} }), definition(nil), nil,
		},
		"replicas that are a text": {
			of(func(w *v1alpha1.CustomWorkload) { w.SpecReplicasPath = ".spec.name" }), definition(nil),
			map[string]string{"kinds": "spec.customWorkloads[2].specReplicasPath: .spec.name is no number"},
		},
		"a size that is not there": {
			of(func(w *v1alpha1.CustomWorkload) { w.PodsPerReplicaPath = ".spec.size" }), definition(nil),
			map[string]string{"kinds": "spec.customWorkloads[2].podsPerReplicaPath: there is no field .spec.size"},
		},
		"a status that is not there": {
			of(func(w *v1alpha1.CustomWorkload) { w.StatusReplicasPath = ".status.pods" }), definition(nil),
			map[string]string{"kinds": "spec.customWorkloads[2].statusReplicasPath: there is no field .status.pods"},
		},
		"a field that another version does not have": {
			of(nil), definition(removing("replicas")),
			map[string]string{"kinds": "spec.customWorkloads[2].specReplicasPath: there is no field .spec.replicas of " + kind + " in version v2"},
		},
		"a version that is not served does not count": {
			of(nil), definition(func(v *apiextensionsv1.CustomResourceDefinitionVersion) {
				removing("replicas")(v)
				v.Served = false
			}), nil,
		},
		"a policy that comes later": {
			[]engine.Description{describe("first", nil), describe("second", nil)}, definition(nil),
			map[string]string{"second": "spec.customWorkloads[2].kind: ClusterPlacementPolicy first describes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			definitions := map[string]*apiextensionsv1.CustomResourceDefinition{}
			if test.crd != nil {
				definitions[kind] = test.crd
			}
			got := Problems(map[string][]engine.Description{kind: test.described}, definitions)
			if len(got) != len(test.want) {
				t.Errorf("problems %v, want %v", got, test.want)
			}
			for policy, want := range test.want {
				if !strings.HasPrefix(got[policy], want) {
					t.Errorf("%s: %q, want %q", policy, got[policy], want)
				}
			}
		})
	}
}

func TestProblemsAreToldOnce(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(&v1alpha1.ClusterPlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "kinds"}}); err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	var troubles []string
	teller := Teller{Policies: listers.NewClusterPlacementPolicyLister(indexer), Recorder: events, Trouble: func(policy, problem string) {
		troubles = append(troubles, policy+": "+problem)
	}}
	for _, problems := range []map[string]string{
		nil, {"kinds": "no such kind"}, {"kinds": "no such kind"}, {"kinds": "no such field", "gone": "no such kind"}, {}, {},
	} {
		teller.Tell(problems)
	}
	slices.Sort(troubles)
	if got, want := strings.Join(troubles, "; "), "gone: ; gone: no such kind; kinds: ; kinds: no such field; kinds: no such kind"; got != want {
		t.Errorf("troubles %q, want %q", got, want)
	}
	close(events.Events)
	var told []string
	for event := range events.Events {
		told = append(told, event)
	}
	if got, want := strings.Join(told, "; "), "Warning InvalidCustomWorkload no such kind; Warning InvalidCustomWorkload no such field"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}
