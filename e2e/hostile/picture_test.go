package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// picture is everything that attacks must not change, in JSON, by the API, the resource, the namespace and the name: all objects above that
// are neither in a test's namespace nor speak of west, and all in east that are not in a test's namespace.
type picture map[string]string

// look takes a picture.
func (a *arena) look() picture {
	a.Helper()
	out := picture{}
	for _, api := range []*framework.API{a.Environment.Logical, a.Environment.Physical["east"]} {
		for _, obj := range a.everything(api) {
			if inTest(obj) || api.Name == "logical" && aboutWest(obj) {
				continue
			}
			normalise(obj)
			raw, err := json.Marshal(obj)
			if err != nil {
				a.Fatal(err)
			}
			out[name(api, obj)] = string(raw)
		}
	}
	return out
}

func name(api *framework.API, obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%s: %s %s/%s", api.Name, obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

// everything returns all objects of an API server, but for events, leases, the addresses of Services
// and what is computed for each reader.
func (a *arena) everything(api *framework.API) []*unstructured.Unstructured {
	a.Helper()
	var mu sync.Mutex
	var out []*unstructured.Unstructured
	var group errgroup.Group
	group.SetLimit(4)
	for _, of := range a.listable(api) {
		group.Go(func() error {
			list, err := api.Dynamic.Resource(of).List(a.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("list %s of %s: %w", of.Resource, api.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		a.Fatal(err)
	}
	return out
}

var listables struct {
	sync.Mutex
	of map[string][]resourceOf
}

func (a *arena) listable(api *framework.API) []resourceOf {
	a.Helper()
	listables.Lock()
	defer listables.Unlock()
	if found := listables.of[api.Name]; found != nil {
		return found
	}
	lists, err := api.Kube.Discovery().ServerPreferredResources()
	if err != nil {
		a.Fatalf("ask %s what it serves: %v", api.Name, err)
	}
	var out []resourceOf
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			a.Fatal(err)
		}
		for _, r := range list.APIResources {
			transient := r.Name == "events" || r.Name == "leases" || r.Name == "componentstatuses" || r.Name == "ipaddresses" || version.Group == "metrics.k8s.io"
			if slices.Contains(r.Verbs, "list") && !transient {
				out = append(out, version.WithResource(r.Name))
			}
		}
	}
	if listables.of == nil {
		listables.of = map[string][]resourceOf{}
	}
	listables.of[api.Name] = out
	return out
}

const testPrefix = "e2e-"

func inTest(obj *unstructured.Unstructured) bool {
	return strings.HasPrefix(obj.GetNamespace(), testPrefix) || obj.GetKind() == "Namespace" && strings.HasPrefix(obj.GetName(), testPrefix)
}

// aboutWest reports whether an object is what west may lie about: itself.
func aboutWest(obj *unstructured.Unstructured) bool {
	return (obj.GetKind() == "Cluster" || obj.GetKind() == "Node") && obj.GetName() == "west"
}

// normalise takes away what changes by itself.
func normalise(obj *unstructured.Unstructured) {
	for _, path := range [][]string{{"metadata", "resourceVersion"}, {"metadata", "managedFields"}, {"status", "requested"}} {
		unstructured.RemoveNestedField(obj.Object, path...)
	}
	if obj.GetKind() == "ClusterPlacementPolicy" {
		delete(obj.Object, "status") // it counts the workloads of all
	}
	conditions, found, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if !found {
		return
	}
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			delete(condition, "lastHeartbeatTime")
			delete(condition, "lastProbeTime")
		}
	}
	set(obj, conditions, "status", "conditions")
}

// differences says what of a picture has become otherwise in a later one.
func (p picture) differences(later picture) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p)) {
		switch now, there := later[key]; {
		case !there:
			out = append(out, key+" is gone")
		case now != p[key]:
			out = append(out, fmt.Sprintf("%s\nwas %s\nis  %s", key, p[key], now))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(later)) {
		if _, there := p[key]; !there {
			out = append(out, fmt.Sprintf("%s is new: %s", key, later[key]))
		}
	}
	return out
}

// evil is in the names of everything that Mallory makes up.
const evil = "evil"

// mallorys returns the objects above, in any namespace, that have a name or an image of Mallory's.
func (a *arena) mallorys() []string {
	a.Helper()
	var out []string
	for _, obj := range a.everything(a.Environment.Logical) {
		if inTest(obj) && obj.GetNamespace() != a.Namespace {
			continue // that of an earlier test, on its way out
		}
		normalise(obj)
		if strings.Contains(obj.GetName(), evil) {
			out = append(out, name(a.Environment.Logical, obj))
			continue
		}
		raw, err := json.Marshal(obj)
		if err != nil {
			a.Fatal(err)
		}
		if strings.Contains(string(raw), evil) && !aboutWest(obj) {
			out = append(out, name(a.Environment.Logical, obj)+": "+string(raw))
		}
	}
	return out
}
