package operators

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// brought is what comes to a cluster with any namespace.
var brought = sets.New("configmaps/kube-root-ca.crt", "serviceaccounts/default")

// manifolds is how the name of what Manifold itself has in a namespace of a cluster begins: its right to Secrets there.
const manifolds = "rolebindings.rbac.authorization.k8s.io/manifold-syncer-"

// unowned are kinds whose objects do not go with what they tell of: events, and the leases of operators.
var unowned = sets.New("events", "events.events.k8s.io", "leases.coordination.k8s.io")

// object is where one object is.
type object struct {
	resource schema.GroupVersionResource
	name     string
}

// String returns it as "statefulsets.apps/main".
func (o object) String() string { return o.resource.GroupResource().String() + "/" + o.name }

// inventory returns what is in the namespace, of all kinds that there are, by what String of it says.
func inventory(s *framework.Scenario, side *framework.Side) map[string]object {
	s.Helper()
	lists, err := side.Kube.Discovery().ServerPreferredNamespacedResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // metrics of a cluster that has none
		s.Fatal(err)
	}
	out := map[string]object{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			s.Fatal(err)
		}
		for _, kind := range list.APIResources {
			resource := group.WithResource(kind.Name)
			if unowned.Has(resource.GroupResource().String()) {
				continue
			}
			found, err := side.Dynamic.Resource(resource).Namespace(side.Namespace).List(side.Context(), metav1.ListOptions{})
			if err != nil {
				s.Fatalf("%s: list %s: %v", side.Name, resource, err)
			}
			for i := range found.Items {
				o := object{resource: resource, name: found.Items[i].GetName()}
				if !strings.HasPrefix(o.String(), manifolds) {
					out[o.String()] = o
				}
			}
		}
	}
	return out
}

// gone waits until nothing is in the namespace but what may stay, by patterns of path.Match. All kinds are listed again only when what was found
// has gone: that is more than an API server should be asked all the time. As long as something is there, it calls again.
func gone(s *framework.Scenario, side *framework.Side, stays sets.Set[string], again func()) {
	s.Helper()
	for {
		left := inventory(s, side)
		maps.DeleteFunc(left, func(name string, _ object) bool {
			return slices.ContainsFunc(stays.UnsortedList(), func(pattern string) bool {
				matches, err := path.Match(pattern, name)
				if err != nil {
					s.Fatalf("what may stay: %q: %v", pattern, err)
				}
				return matches
			})
		})
		if len(left) == 0 {
			return
		}
		for name, o := range left {
			side.Poll(fmt.Sprintf("%s is gone, of %v", name, slices.Sorted(maps.Keys(left))), func() error {
				_, err := side.Dynamic.Resource(o.resource).Namespace(side.Namespace).Get(side.Context(), o.name, metav1.GetOptions{})
				switch {
				case err == nil:
					again()
					return errors.New("it is there")
				case apierrors.IsNotFound(err):
					return nil
				}
				return err
			})
		}
	}
}

// collected waits until the garbage collector knows the kind of the operator's custom resource. On any cluster it looks for new kinds every 30
// seconds, and until then looks for an owner of such a kind less and less often, in the end every 17 minutes. When an operator gives what it
// has made to another owner meanwhile, as RabbitMQ's does that makes its custom resource anew, each of these objects makes that last longer.
func (o operator) collected(s *framework.Scenario) {
	s.Helper()
	var owner metav1.OwnerReference
	if err := yaml.Unmarshal([]byte(o.resource), &owner); err != nil {
		s.Fatal(err)
	}
	owner.Name = "nobody"
	orphans := s.Logical.Kube.CoreV1().ConfigMaps(s.Namespace)
	s.Logical.Within(patience).Poll("the garbage collector knows "+owner.Kind, func() error {
		// One after another is made, since each is looked at often for a moment only.
		owner.UID = uuid.NewUUID()
		orphan, err := orphans.Create(s.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", OwnerReferences: []metav1.OwnerReference{owner}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := orphans.Get(ctx, orphan.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
	})
}

// podsIn returns how many pods that are not about to go a cluster has for the scenario.
func podsIn(s *framework.Scenario, side *framework.Side, selector string) int {
	s.Helper()
	pods, err := side.Kube.CoreV1().Pods(side.Namespace).List(side.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		s.Fatal(err)
	}
	count := 0
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			count++
		}
	}
	return count
}
