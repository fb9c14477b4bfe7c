package membership

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// Managed selects what joining makes in a cluster.
const Managed = "app.kubernetes.io/managed-by=manifold"

// Owned selects what a logical cluster owns in its clusters.
func Owned(s *framework.Scenario) string {
	s.Helper()
	return v1alpha1.LabelLogicalCluster + "=" + framework.IdentityOf(s.T, s.Environment)
}

// Object is an object that was found in a cluster.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	UID             types.UID
	Version         string
}

func (f Object) String() string {
	return strings.TrimPrefix(f.Resource.Resource+" "+f.Namespace+"/"+f.Name, "/")
}

func (f Object) delete(ctx context.Context, a *framework.API) error {
	return a.Dynamic.Resource(f.Resource).Namespace(f.Namespace).Delete(ctx, f.Name, metav1.DeleteOptions{})
}

// Objects lists the objects of every kind that a cluster serves and that one of the label selectors selects.
func Objects(ctx context.Context, t *testing.T, a *framework.API, selectors ...string) []Object {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(a.Kube.Discovery())
	if err != nil {
		t.Fatalf("ask %s what it serves: %v", a.Name, err)
	}
	var out []Object
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, r := range list.APIResources {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			resource := group.WithResource(r.Name)
			for _, selector := range selectors {
				items, err := a.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
				if err != nil {
					t.Fatalf("list the %s of %s: %v", r.Name, a.Name, err)
				}
				for _, o := range items.Items {
					out = append(out, Object{resource, o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// InNamespace keeps what is in the namespace, and the namespace itself.
func InNamespace(all []Object, namespace string) []Object {
	return slices.DeleteFunc(all, func(f Object) bool {
		return f.Namespace != namespace && !(f.Resource.Resource == "namespaces" && f.Name == namespace)
	})
}

// Versions reads the resource version of everything in the scenario's namespace, above and below, but for what the clusters' own
// controllers write at their leisure.
func Versions(s *framework.Scenario) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, side := range []*framework.Side{s.Logical, s.East, s.West} {
		for _, f := range InNamespace(Objects(s.Context(), s.T, side.API, ""), s.Namespace) {
			if r := f.Resource.Resource; r != "events" && r != "endpoints" && r != "endpointslices" {
				out[side.Name+": "+f.String()] = f.Version
			}
		}
	}
	return out
}

// AwaitNothing waits until a cluster has none of what the selectors select.
func AwaitNothing(s *framework.Scenario, side *framework.Side, selectors ...string) {
	s.Helper()
	side.Poll(fmt.Sprintf("nothing is left of what %q select", selectors), func() error {
		if left := Objects(side.Context(), s.T, side.API, selectors...); len(left) > 0 {
			return fmt.Errorf("there are still: %v", left)
		}
		return nil
	})
}

// Marks returns the names of Manifold's own that an object carries.
func Marks(o metav1.Object) []string {
	var out []string
	for _, in := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(in)) {
			if strings.HasPrefix(key, v1alpha1.GroupName+"/") {
				out = append(out, key)
			}
		}
	}
	return out
}
