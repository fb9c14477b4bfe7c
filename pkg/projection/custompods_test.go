package projection

import (
	"fmt"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/google/go-cmp/cmp"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// rolloutPaths are those of Argo's Rollout, and groupPaths those of LeaderWorkerSet.
var (
	rolloutPaths = &v1alpha1.CustomWorkload{
		Kind: "Gizmo.example.com", PodTemplatePaths: []string{".spec.template"}, SpecReplicasPath: ".spec.replicas",
		StatusReplicasPath: ".status.replicas", Divisible: true,
	}
	groupPaths = &v1alpha1.CustomWorkload{
		Kind:             "Gizmo.example.com",
		PodTemplatePaths: []string{".spec.leaderWorkerTemplate.leaderTemplate", ".spec.leaderWorkerTemplate.workerTemplate"},
		SpecReplicasPath: ".spec.replicas", PodsPerReplicaPath: ".spec.leaderWorkerTemplate.size",
	}
)

func described(in *v1alpha1.CustomWorkload) Kind {
	return Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gizmo"}, "gizmos", PodPathsOf(in))
}

// podTemplate is the template of pods that request some CPU, as JSON.
func podTemplate(app, cpu string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":%q}},"spec":{"containers":[{"name":"serve","image":"serve:1","resources":{"requests":{"cpu":%q}}}]}}`, app, cpu)
}

func TestDemandOfADescribedCustomObject(t *testing.T) {
	for name, test := range map[string]struct {
		paths    *v1alpha1.CustomWorkload
		content  string
		replicas int32
		arrived  int32
		requests placement.Resources
		problem  string
	}{
		"replicas of one pod": {
			paths: rolloutPaths, content: `"spec":{"replicas":3,"template":` + podTemplate("web", "500m") + `},"status":{"replicas":2}`,
			replicas: 3, arrived: 2, requests: placement.Resources{"cpu": 500, "pods": 1},
		},
		"one replica where none are named": {
			paths: rolloutPaths, content: `"spec":{"template":` + podTemplate("web", "1") + `}`,
			replicas: 1, requests: placement.Resources{"cpu": 1000, "pods": 1},
		},
		"limits count as requests, as where the pods are made": {
			paths:    rolloutPaths,
			content:  `"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"serve","resources":{"limits":{"memory":"1Ki"}}}]}}}`,
			replicas: 1, requests: placement.Resources{"memory": 1024, "pods": 1},
		},
		"a status that says more than was asked for counts as that": {
			paths: rolloutPaths, content: `"spec":{"replicas":1,"template":` + podTemplate("web", "1") + `},"status":{"replicas":900}`,
			replicas: 1, arrived: 1, requests: placement.Resources{"cpu": 1000, "pods": 1},
		},
		"a status that says nonsense counts for nothing": {
			paths: rolloutPaths, content: `"spec":{"replicas":1,"template":` + podTemplate("web", "1") + `},"status":{"replicas":-4}`,
			replicas: 1, requests: placement.Resources{"cpu": 1000, "pods": 1},
		},
		"a leader and its workers": {
			paths: groupPaths, content: `"spec":{"replicas":2,"leaderWorkerTemplate":{"size":4,"leaderTemplate":` + podTemplate("leader", "2") +
				`,"workerTemplate":` + podTemplate("worker", "1") + `}}`,
			replicas: 2, requests: placement.Resources{"cpu": 5000, "pods": 4},
		},
		"workers without a template for their leader": {
			paths: groupPaths, content: `"spec":{"replicas":2,"leaderWorkerTemplate":{"size":4,"workerTemplate":` + podTemplate("worker", "1") + `}}`,
			replicas: 2, requests: placement.Resources{"cpu": 4000, "pods": 4},
		},
		"a leader alone": {
			paths: groupPaths, content: `"spec":{"replicas":2,"leaderWorkerTemplate":{"size":1,"leaderTemplate":` + podTemplate("leader", "2") +
				`,"workerTemplate":` + podTemplate("worker", "1") + `}}`,
			replicas: 2, requests: placement.Resources{"cpu": 2000, "pods": 1},
		},
		"a size of none counts as one": {
			paths: groupPaths, content: `"spec":{"leaderWorkerTemplate":{"size":0,"workerTemplate":` + podTemplate("worker", "1") + `}}`,
			replicas: 1, requests: placement.Resources{"cpu": 1000, "pods": 1},
		},
		"requests beyond every number": {
			paths: groupPaths, content: `"spec":{"leaderWorkerTemplate":{"size":1000,"workerTemplate":` + podTemplate("worker", "9000000000000000") + `}}`,
			replicas: 1, requests: placement.Resources{"cpu": 1<<63 - 1, "pods": 1000},
		},
		"no template": {
			paths: groupPaths, content: `"spec":{"replicas":1}`,
			problem: "no pod template at .spec.leaderWorkerTemplate.leaderTemplate or .spec.leaderWorkerTemplate.workerTemplate",
		},
		"a template that is a text":          {paths: rolloutPaths, content: `"spec":{"template":"web"}`, problem: ".spec.template is not a pod template"},
		"a template of something else":       {paths: rolloutPaths, content: `"spec":{"template":{"spec":{"size":1}}}`, problem: "no containers"},
		"a template with fields of no sense": {paths: rolloutPaths, content: `"spec":{"template":{"spec":{"containers":7}}}`, problem: ".spec.template is not a pod template"},
		"a path through a list":              {paths: rolloutPaths, content: `"spec":[1]`, problem: "no pod template"},
		"negative replicas":                  {paths: rolloutPaths, content: `"spec":{"replicas":-1,"template":` + podTemplate("web", "1") + `}`, problem: ".spec.replicas: -1 is not"},
		"absurd replicas": {
			paths: rolloutPaths, content: `"spec":{"replicas":4000000000,"template":` + podTemplate("web", "1") + `}`, problem: ".spec.replicas: 4000000000 is not",
		},
		"replicas with a fraction": {
			paths: rolloutPaths, content: `"spec":{"replicas":1.5,"template":` + podTemplate("web", "1") + `}`, problem: ".spec.replicas: 1.5 is not a whole number",
		},
		"replicas in words": {
			paths: rolloutPaths, content: `"spec":{"replicas":"three","template":` + podTemplate("web", "1") + `}`, problem: ".spec.replicas is not a number",
		},
		"more pods than there may be": {
			paths:   groupPaths,
			content: `"spec":{"replicas":1000000,"leaderWorkerTemplate":{"size":1000000,"workerTemplate":` + podTemplate("worker", "1") + `}}`,
			problem: "1000000000000 pods",
		},
		"a negative request": {paths: rolloutPaths, content: `"spec":{"template":` + podTemplate("web", "-1") + `}`, problem: "negative amount"},
		"a template without end": {
			paths:   rolloutPaths,
			content: `"spec":{"template":{"spec":{"containers":[{"name":"serve","args":["a"` + strings.Repeat(`,"a"`, mostTemplateValues) + `]}]}}}`,
			problem: "too large",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := gizmo(t, `{"metadata":{"namespace":"shop","name":"one"},`+test.content+`}`)
			kind := described(test.paths)
			demand := kind.Demand(PodPathsOf(test.paths).Read(in))
			if test.problem != "" {
				_, err := kind.WorkloadOf(in)
				if demand.Problem == nil || !strings.Contains(demand.Problem.Error(), test.problem) || err == nil {
					t.Fatalf("problem %v, error %v, want %q", demand.Problem, err, test.problem)
				}
				if _, err := kind.Project(in, Part{}, east); err == nil {
					t.Error("it is projected all the same")
				}
				return
			}
			if demand.Problem != nil || demand.Replicas != test.replicas || demand.Arrived != test.arrived {
				t.Errorf("%d replicas of which %d are there (problem %v), want %d and %d", demand.Replicas, demand.Arrived, demand.Problem, test.replicas, test.arrived)
			}
			if diff := cmp.Diff(test.requests, demand.Requests()); diff != "" {
				t.Errorf("requests: %s", diff)
			}
			if w, err := kind.WorkloadOf(in); err != nil || !w.Custom || w.Opaque() || !cmp.Equal(w.Requests, test.requests) {
				t.Errorf("to placement it is %+v (%v)", w, err)
			}
		})
	}
}

func TestADescribedCustomObjectDrawsWhatItsPodsNeed(t *testing.T) {
	in := gizmo(t, `{"metadata":{"namespace":"shop","name":"one"},"spec":{"leaderWorkerTemplate":{"size":2,
		"leaderTemplate":{"metadata":{"labels":{"role":"leader"}},"spec":{"priorityClassName":"high","imagePullSecrets":[{"name":"registry"}],
			"containers":[{"name":"serve","envFrom":[{"configMapRef":{"name":"settings"}}]}]}},
		"workerTemplate":{"metadata":{"labels":{"role":"worker"}},"spec":{"serviceAccountName":"crawler","runtimeClassName":"gvisor",
			"containers":[{"name":"serve"}],"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"models"}}]}}}}}`)
	kind, above := described(groupPaths), PodPathsOf(groupPaths).Read(in)
	var names, classes []string
	for _, ref := range kind.References(above) {
		names = append(names, ref.Resource.Resource+"/"+ref.Name)
	}
	for _, r := range kind.Requires(above) {
		classes = append(classes, r.Class.Kind+"/"+r.Name)
	}
	if diff := cmp.Diff([]string{
		"configmaps/settings", "persistentvolumeclaims/models", "secrets/registry", "serviceaccounts/crawler", "serviceaccounts/default",
	}, names); diff != "" {
		t.Errorf("it names: %s", diff)
	}
	if diff := cmp.Diff([]string{"PriorityClass/high", "RuntimeClass/gvisor"}, classes); diff != "" {
		t.Errorf("it requires: %s", diff)
	}
	w, err := kind.WorkloadOf(above)
	if err != nil || !cmp.Equal(w.VolumeClaims, []string{"models"}) || len(w.Beside) != 1 {
		t.Errorf("to placement it is %+v (%v)", w, err)
	}
	budgets, _ := KindOf(&policyv1.PodDisruptionBudget{})
	for role, want := range map[string]bool{"leader": true, "worker": true, "other": false} {
		budget := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": role}}}}
		if got := budgets.Selects(budget, kind, above); got != want {
			t.Errorf("a budget for pods of role %s selects it: %t", role, got)
		}
	}
}

func TestTheProjectionOfADescribedCustomObject(t *testing.T) {
	text := `{"metadata":{"namespace":"shop","name":"one","uid":"u1"},"spec":{"replicas":5,"strategy":{"canary":{}},"template":` + podTemplate("web", "1") + `}}`
	for name, test := range map[string]struct {
		divisible bool
		want      int64
	}{
		"has the share of its cluster if it may be divided": {true, 2},
		"is whole if it may not":                            {false, 5},
	} {
		t.Run(name, func(t *testing.T) {
			paths := *rolloutPaths
			paths.Divisible = test.divisible
			in := gizmo(t, text)
			before := in.DeepCopy()
			out, err := described(&paths).Project(in, Part{Share: placement.Share{Replicas: 2}}, east)
			if err != nil {
				t.Fatal(err)
			}
			content := out.(*unstructured.Unstructured)
			if got, _, _ := unstructured.NestedInt64(content.Object, "spec", "replicas"); got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
			if _, kept, _ := unstructured.NestedMap(content.Object, "spec", "strategy", "canary"); !kept {
				t.Error("it has lost a field that nobody here knows")
			}
			if diff := cmp.Diff(before.Object, in.Object); diff != "" {
				t.Errorf("the object above was changed: %s", diff)
			}
		})
	}
}

// The namespace default has a ServiceAccount in each cluster to which its other users may have given rights.
func TestADescribedCustomObjectGetsNoTokenOfTheCluster(t *testing.T) {
	for pods, want := range map[string]bool{
		`{"containers":[{"name":"serve"}]}`:                                          false,
		`{"containers":[{"name":"serve"}],"automountServiceAccountToken":true}`:      false,
		`{"containers":[{"name":"serve"}],"automountServiceAccountToken":false}`:     true,
		`{"containers":[{"name":"serve"}],"serviceAccountName":"crawler"}`:           true,
		`{"containers":[{"name":"serve"}],"serviceAccountName":"default"}`:           false,
		`{"containers":[{"name":"serve"}],"serviceAccount":"crawler","nodeName":""}`: true,
	} {
		in := gizmo(t, `{"metadata":{"namespace":"default","name":"one"},"spec":{"template":{"spec":`+pods+`}}}`)
		if _, err := described(rolloutPaths).Project(in, Part{}, east); (err == nil) != want {
			t.Errorf("pods %s are projected: %v", pods, err)
		}
	}
}

func TestACopyOfWhatWasReadIsIndependent(t *testing.T) {
	in := PodPathsOf(rolloutPaths).Read(gizmo(t, `{"metadata":{"namespace":"shop","name":"one","labels":{"a":"b"}},"spec":{"template":`+podTemplate("web", "1")+`}}`))
	out := in.DeepCopyObject().(*CustomObject)
	out.Labels["a"] = "c"
	if in.Labels["a"] != "b" || out.demand.Template != in.demand.Template {
		t.Errorf("labels %v, and the templates are one: %t", in.Labels, out.demand.Template == in.demand.Template)
	}
}

// FuzzCustomPods reads anything that a definition lets pass as if it were a workload.
func FuzzCustomPods(f *testing.F) {
	f.Add([]byte(`{"spec":{"replicas":3,"template":` + podTemplate("web", "500m") + `},"status":{"replicas":1}}`))
	f.Add([]byte(`{"spec":{"leaderWorkerTemplate":{"size":4,"leaderTemplate":` + podTemplate("leader", "2") + `,"workerTemplate":` + podTemplate("worker", "1") + `}}}`))
	f.Add([]byte(`{"spec":{"replicas":-1,"template":{"spec":{"containers":[null,{}],"volumes":[{"projected":{"sources":[null]}}]}}}}`))
	f.Add([]byte(`{"spec":{"replicas":1e300,"template":{"metadata":{"creationTimestamp":"x"},"spec":{"containers":[{"resources":{"limits":{"cpu":"1e9999"}}}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &unstructured.Unstructured{}
		if err := in.UnmarshalJSON(append([]byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"namespace":"shop","name":"one"},"x":`), append(data, '}')...)); err != nil {
			return
		}
		if content, ok := in.Object["x"].(map[string]any); ok {
			in.Object["spec"], in.Object["status"] = content["spec"], content["status"]
		}
		before := in.DeepCopy()
		for _, paths := range []*v1alpha1.CustomWorkload{rolloutPaths, groupPaths} {
			kind := described(paths)
			above := PodPathsOf(paths).Read(in)
			demand := kind.Demand(above)
			if demand.Template == nil || demand.Replicas < 0 || demand.PodsEach() < 1 || demand.Arrived < 0 || demand.Arrived > demand.Replicas {
				t.Fatalf("demand %+v", demand)
			}
			for name, amount := range demand.Requests() {
				if amount < 0 {
					t.Errorf("it requests %d of %s", amount, name)
				}
			}
			kind.References(above)
			kind.Requires(above)
			if _, err := kind.WorkloadOf(above); (err != nil) != (demand.Problem != nil) {
				t.Errorf("the problem %v is the error %v", demand.Problem, err)
			}
			out, err := kind.Project(in, Part{Share: placement.Share{Replicas: 1}}, east)
			if (err != nil) != (demand.Problem != nil) {
				t.Errorf("the problem %v refuses the projection by %v", demand.Problem, err)
			}
			if err == nil && kind.Plan(out, nil).Step != Create {
				t.Error("it would not be made")
			}
		}
		if diff := cmp.Diff(before.Object, in.Object); diff != "" {
			t.Errorf("the object was changed: %s", diff)
		}
	})
}
