package physical

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/cli/cluster/grants"
)

const testLogical = "0a1b2c3d-4e5f-6789"

var syncerAlone = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "manifold-system", Name: "manifold-syncer-0a1b2c3d"}}

// joined returns a cluster that has what joining makes, with a change to the object of a kind and name.
func joined(t *testing.T, kind, name string, change func(map[string]any)) *Cluster {
	t.Helper()
	all, err := grants.All(testLogical, grants.Allowances{Kinds: []schema.GroupResource{{Group: "example.com", Resource: "widgets"}}})
	if err != nil {
		t.Fatal(err)
	}
	var objects, typed []runtime.Object
	changed := false
	for _, p := range all {
		object := p.Object.DeepCopy()
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
	return &Cluster{client: fake.NewClientset(typed...), dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)}
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
				Subjects: syncerAlone,
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
					Subjects: syncerAlone,
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			}
			findings, err := p.Compare(t.Context(), testLogical, manifoldv1alpha1.ClusterAllows{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				for _, line := range f.Differs {
					got = append(got, f.What+": "+line)
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
	findings, err := p.Compare(t.Context(), testLogical, manifoldv1alpha1.ClusterAllows{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	unread := map[string]string{}
	for _, f := range findings {
		if len(f.Differs) > 0 {
			t.Errorf("%s is told to differ: %q", f.What, f.Differs)
		}
		if f.Unread != "" {
			unread[f.What] = f.Unread
		}
	}
	want := map[string]string{
		"Role manifold-system/manifold-syncer-0a1b2c3d":                             "the credential may not read it",
		"Role manifold-system/manifold-syncer-0a1b2c3d-audit":                       "the credential may not read it",
		"Other bindings of ServiceAccount manifold-system/manifold-syncer-0a1b2c3d": "the credential may not list them",
	}
	if !maps.Equal(unread, want) {
		t.Errorf("not read are %q, want %q", unread, want)
	}
}
