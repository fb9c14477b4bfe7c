package cluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// joined returns a cluster that has what joining makes, with a change to the object of a kind and name.
func joined(t *testing.T, kind, name string, change func(map[string]any)) *physical {
	t.Helper()
	all, err := everything(testLogical, allowances{kinds: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}}})
	if err != nil {
		t.Fatal(err)
	}
	var objects, typed []runtime.Object
	changed := false
	for _, p := range all {
		object := p.object.DeepCopy()
		if object.GetKind() == kind && object.GetName() == name {
			changed = true
			if change == nil {
				continue
			}
			change(object.Object)
		}
		objects = append(objects, object)
		made, err := scheme.Scheme.New(object.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, made); err != nil {
			t.Fatal(err)
		}
		typed = append(typed, made)
	}
	if !changed && kind != "" {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return &physical{client: fake.NewClientset(typed...), dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)}
}

func TestCompare(t *testing.T) {
	const name = "manifold-syncer-0a1b2c3d"
	rules := func(change func([]any) []any) func(map[string]any) {
		return func(o map[string]any) { o["rules"] = change(o["rules"].([]any)) }
	}
	rule := func(verbs, groups, resources []any) map[string]any {
		return map[string]any{"verbs": verbs, "apiGroups": groups, "resources": resources}
	}
	for test, c := range map[string]struct {
		kind, name string
		change     func(map[string]any)
		// further is made beside.
		further *rbacv1.ClusterRoleBinding
		// bound is a namespace in which it has bound itself to the role that reads Secrets. The namespace "shop" is its own.
		bound string
		want  []string
	}{
		"what joining has made is right": {},
		"a policy that is gone":          {kind: "ValidatingAdmissionPolicy", name: name, want: []string{"ValidatingAdmissionPolicy " + name + ": missing"}},
		"a rule that is gone": {
			kind: "ClusterRole", name: name, change: rules(func(all []any) []any { return all[1:] }),
			want: []string{"ClusterRole " + name + ": missing: get,list,watch,create,update,patch,delete namespaces"},
		},
		"a rule too much": {
			kind: "ClusterRole", name: name,
			change: rules(func(all []any) []any {
				return append(all, rule([]any{"get", "list"}, []any{""}, []any{"secrets/scale", "pods"}))
			}),
			want: []string{"ClusterRole " + name + ": more than needed: get,list secrets/scale"},
		},
		"a star is more, and lacks nothing": {
			kind: "ClusterRole", name: name,
			change: func(o map[string]any) {
				o["rules"] = []any{rule([]any{"*"}, []any{"*"}, []any{"*"}), map[string]any{"verbs": []any{"get"}, "nonResourceURLs": []any{"*"}}}
			},
			want: []string{"ClusterRole " + name + ": more than needed: * *.*", "ClusterRole " + name + ": more than needed: get *"},
		},
		"rules that are put otherwise are the same": {
			kind: "ClusterRole", name: name, change: rules(func(all []any) []any { slices.Reverse(all); return append(all, all[3]) }),
		},
		"a role that takes in others": {
			kind: "ClusterRole", name: name,
			change: func(o map[string]any) {
				o["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{}}}
			},
			want: []string{"ClusterRole " + name + ": more than needed: it takes in other roles by an aggregation rule"},
		},
		"a kind of Kubernetes among the custom ones": {
			kind: "ClusterRole", name: name + "-kinds",
			change: rules(func(all []any) []any { return append(all, rule([]any{"get"}, []any{"apps"}, []any{"deployments"})) }),
			want:   []string{"ClusterRole " + name + "-kinds: more than needed: get deployments.apps"},
		},
		"a role that somebody else has too": {
			kind: "ClusterRoleBinding", name: name,
			change: func(o map[string]any) {
				o["subjects"] = append(o["subjects"].([]any), map[string]any{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"})
			},
			want: []string{"ClusterRoleBinding " + name + ": more than needed: it gives the role to User eve"},
		},
		"a condition that lets requests pass": {
			kind: "ValidatingAdmissionPolicy", name: name,
			change: func(o map[string]any) {
				spec := o["spec"].(map[string]any)
				spec["matchConditions"] = append(spec["matchConditions"].([]any), map[string]any{"name": "off", "expression": "false"})
			},
			want: []string{"ValidatingAdmissionPolicy " + name + ": differs: spec.matchConditions"},
		},
		"resources that are left out": {
			kind: "ValidatingAdmissionPolicy", name: name,
			change: func(o map[string]any) {
				constraints := o["spec"].(map[string]any)["matchConstraints"].(map[string]any)
				constraints["excludeResourceRules"] = append(constraints["excludeResourceRules"].([]any), map[string]any{"resources": []any{"secrets"}})
			},
			want: []string{"ValidatingAdmissionPolicy " + name + ": differs: spec.matchConstraints.excludeResourceRules"},
		},
		"a right to Secrets in a namespace of its own is as it should be": {
			bound: "shop",
		},
		"one in another namespace": {
			bound: "bank",
			want: []string{"Other bindings of ServiceAccount manifold-system/" + name + ": more than needed: RoleBinding bank/" + name +
				"-secrets gives it ClusterRole " + name + "-secrets"},
		},
		"a policy that only warns": {
			kind: "ValidatingAdmissionPolicyBinding", name: name,
			change: func(o map[string]any) { o["spec"].(map[string]any)["validationActions"] = []any{"Warn"} },
			want:   []string{"ValidatingAdmissionPolicyBinding " + name + ": differs: spec.validationActions[0]"},
		},
		"a binding beside": {
			further: &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "more"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: syncerAlone(testLogical),
			},
			want: []string{"Other bindings of ServiceAccount manifold-system/" + name + ": more than needed: ClusterRoleBinding more gives it ClusterRole cluster-admin"},
		},
	} {
		t.Run(test, func(t *testing.T) {
			p := joined(t, c.kind, c.name, c.change)
			if c.further != nil {
				if _, err := p.client.RbacV1().ClusterRoleBindings().Create(t.Context(), c.further, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if c.bound != "" {
				home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{manifoldv1alpha1.LabelLogicalCluster: testLogical}}}
				_, err := p.client.CoreV1().Namespaces().Create(t.Context(), home, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = p.client.RbacV1().RoleBindings(c.bound).Create(t.Context(), &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: name + "-secrets"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name + "-secrets"},
					Subjects: syncerAlone(testLogical),
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
			findings, err := p.compare(t.Context(), testLogical)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				for _, line := range f.differs {
					got = append(got, f.what+": "+line)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestWhatCannotBeReadIsSaidAndIsNoDifference(t *testing.T) {
	p := joined(t, "", "", nil)
	p.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("get", "roles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "any", nil)
	})
	p.client.(*fake.Clientset).PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "", nil)
	})
	findings, err := p.compare(t.Context(), testLogical)
	if err != nil {
		t.Fatal(err)
	}
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	o := NewCheckOptions(streams)
	o.Name = "east"
	if err := o.report(findings, ""); err != nil {
		t.Errorf("it is told to differ: %v", err)
	}
	for _, want := range []string{"? Role manifold-system/manifold-syncer-0a1b2c3d: the credential may not read it", "? Other bindings", "✓ ClusterRole"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out)
		}
	}
	if want := "3 of"; !strings.Contains(errOut.String(), want) {
		t.Errorf("it does not say that %q could not be read: %s", want, errOut)
	}
	if err := o.report([]finding{{what: "ClusterRole x", differs: []string{"missing"}}}, "manifold cluster join east"); err == nil || !strings.Contains(err.Error(), "manifold cluster join east") {
		t.Errorf("a difference ends with %v", err)
	}
}

// TestTheDryRunPrintsExactlyWhatIsMade reads what is printed back.
func TestTheDryRunPrintsExactlyWhatIsMade(t *testing.T) {
	all, err := everything(testLogical, allowances{kinds: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}}})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := printPieces(&text, all); err != nil {
		t.Fatal(err)
	}
	for _, right := range SyncerRights() {
		if !strings.Contains(text.String(), "# "+right.Why+"\n- ") {
			t.Errorf("no rule is said to be for: %s", right.Why)
		}
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(&text, 4096)
	for _, p := range all {
		got := &unstructured.Unstructured{}
		if err := decoder.Decode(got); err != nil {
			t.Fatalf("where %s should be: %v", p, err)
		}
		if differs := fieldDifferences("", p.object.Object, got.Object); len(differs) > 0 {
			t.Errorf("%s: %q", p, differs)
		}
		if p.why == "" {
			t.Errorf("%s has no reason", p)
		}
	}
}

func TestOwnRightsAreToReadByName(t *testing.T) {
	for _, q := range questions(ownRights(testLogical)...) {
		if q.resource == "rolebindings" || q.verb == "bind" && q.name == "manifold-syncer-0a1b2c3d-secrets" {
			continue // the fence bounds which
		}
		if q.verb != "get" || !strings.HasPrefix(q.name, "manifold-syncer-0a1b2c3d") {
			t.Errorf("%s %s is more than to read what is its own", q.verb, q.target())
		}
	}
}
