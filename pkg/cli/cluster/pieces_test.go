package cluster

import (
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

func TestPieces(t *testing.T) {
	all, err := pieces("0a1b2c3d-4e5f-6789")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, p := range all {
		kinds = append(kinds, p.object.GetKind())
		if want := p.resource.GroupVersion().String(); p.object.GetAPIVersion() != want {
			t.Errorf("%s has the version %s, want %s", p, p.object.GetAPIVersion(), want)
		}
		if p.object.GetKind() != "Namespace" && p.object.GetName() != "manifold-syncer-0a1b2c3d" {
			t.Errorf("%s does not carry the logical cluster's name", p)
		}
		if _, marked := p.object.GetLabels()[manifoldv1alpha1.LabelLogicalCluster]; marked {
			t.Errorf("%s is marked as owned, so the syncer would remove what it lives by", p)
		}
		if _, has := p.object.Object["status"]; has {
			t.Errorf("%s claims the status", p)
		}
	}
	if slices.Index(kinds, "ValidatingAdmissionPolicyBinding") > slices.Index(kinds, "ClusterRoleBinding") {
		t.Errorf("the order is %v: the syncer has rights before it is fenced in", kinds)
	}
}

// TestFence evaluates the policy's expressions as the API server does, on what it hands them.
func TestFence(t *testing.T) {
	const syncer = "system:serviceaccount:manifold-system:manifold-syncer-0a1b2c3d"
	for name, test := range map[string]struct {
		request map[string]any
		object  map[string]any
		exempt  bool
		want    bool
	}{
		"a Deployment in a user's namespace":    {request: request(syncer, "CREATE", "Deployment", "shop", "web"), want: true},
		"a ConfigMap in kube-system":            {request: request(syncer, "UPDATE", "ConfigMap", "kube-system", "coredns")},
		"a pod in kube-public":                  {request: request(syncer, "DELETE", "Pod", "kube-public", "web")},
		"exec into a pod in kube-system":        {request: request(syncer, "CONNECT", "PodExecOptions", "kube-system", "web")},
		"its own credential":                    {request: request(syncer, "UPDATE", "Secret", "manifold-system", "manifold-syncer-0a1b2c3d")},
		"a user's namespace":                    {request: request(syncer, "CREATE", "Namespace", "shop", "shop"), want: true},
		"a namespace called like a system one":  {request: request(syncer, "DELETE", "Namespace", "kube-system", "kube-system")},
		"a namespace known by its object alone": {request: request(syncer, "CREATE", "Namespace", "", ""), object: object("kube-new")},
		"a namespace known by its name alone":   {request: request(syncer, "DELETE", "Namespace", "", "kube-system")},
		"a name that only contains the prefix":  {request: request(syncer, "CREATE", "Namespace", "", ""), object: object("my-kube-new"), want: true},
		"an object in no namespace":             {request: request(syncer, "CREATE", "PersistentVolume", "", "data"), want: true},
		"anybody else":                          {request: request("admin", "UPDATE", "ConfigMap", "kube-system", "coredns"), exempt: true},
	} {
		t.Run(name, func(t *testing.T) {
			spec := fence(metav1.ObjectMeta{Name: "manifold-syncer-0a1b2c3d"}).Spec
			given := map[string]any{"request": test.request, "object": test.object}
			if matches := eval(t, spec.MatchConditions[0].Expression, given); matches == test.exempt {
				t.Fatalf("the fence is for this user: %v, want %v", matches, !test.exempt)
			}
			given["variables"] = map[string]any{spec.Variables[0].Name: eval(t, spec.Variables[0].Expression, given)}
			if got := eval(t, spec.Validations[0].Expression, given); !test.exempt && got != test.want {
				t.Errorf("allowed: %v, want %v", got, test.want)
			}
		})
	}
}

// request is an admission request as expressions see it: what is empty is not there.
func request(user, operation, kind, namespace, name string) map[string]any {
	r := map[string]any{
		"userInfo": map[string]any{"username": user}, "operation": operation, "kind": map[string]any{"kind": kind},
	}
	if namespace != "" {
		r["namespace"] = namespace
	}
	if name != "" {
		r["name"] = name
	}
	return r
}

func object(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

func eval(t *testing.T, expression string, given map[string]any) any {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType),
		cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := program.Eval(given)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return out.Value()
}
