package framework

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Object is a pointer to one of the kinds that can be waited for, see resourceOf.
type Object interface {
	runtime.Object
	metav1.Object
}

// Await waits until the object exists and is as claimed, and returns it. The claim is a sentence for the failure, which ends the test
// and shows the object as it was seen last.
func Await[T Object](s *Side, name, claim string, is func(T) bool) T {
	s.t.Helper()
	var found T
	err := observe(s, fields.OneTermEqualSelector(metav1.ObjectNameField, name), func(objects []T) bool {
		found = *new(T)
		for _, o := range objects {
			found = o
		}
		return len(objects) == 1 && is(found)
	})
	if err != nil {
		s.t.Fatalf("%s: %s %s: not so after %s: %v\nlast seen:\n%s", s.Name, describe[T](s), name+": "+claim, s.deadline, err, show(found))
	}
	return found
}

// AwaitGone waits until there is no such object.
func AwaitGone[T Object](s *Side, name string) {
	s.t.Helper()
	var last T
	err := observe(s, fields.OneTermEqualSelector(metav1.ObjectNameField, name), func(objects []T) bool {
		for _, o := range objects {
			last = o
		}
		return len(objects) == 0
	})
	if err != nil {
		s.t.Fatalf("%s: %s %s is not gone after %s: %v\nlast seen:\n%s", s.Name, describe[T](s), name, s.deadline, err, show(last))
	}
}

// AwaitList waits until the objects of the namespace that the label selector selects, all if it is empty, are as claimed together, and
// returns them.
func AwaitList[T Object](s *Side, selector, claim string, are func([]T) bool) []T {
	s.t.Helper()
	selected, err := labels.Parse(selector)
	if err != nil {
		s.t.Fatalf("label selector %q: %v", selector, err)
	}
	var found []T
	err = observe(s, fields.Everything(), func(objects []T) bool {
		found = nil
		for _, o := range objects {
			if selected.Matches(labels.Set(o.GetLabels())) {
				found = append(found, o)
			}
		}
		return are(found)
	})
	if err != nil {
		var shown string
		for _, o := range found {
			shown += show(o) + "---\n"
		}
		s.t.Fatalf("%s: %s %q: %s: not so after %s: %v\nlast seen %d:\n%s",
			s.Name, describe[T](s), selector, claim, s.deadline, err, len(found), shown)
	}
	return found
}

// Exists is for Await when being there is all that is claimed.
func Exists[T Object](T) bool { return true }

// observe calls done with all objects of the side's namespace that the fields select, on every change, until it returns true.
func observe[T Object](s *Side, selector fields.Selector, done func([]T) bool) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.deadline)
	defer cancel()
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default: // One look is due already.
		}
	}
	store, informer, err := inform[T](s, selector, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	})
	if err != nil {
		return err
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		informer.RunWithContext(ctx)
	}()
	defer func() {
		cancel()
		<-stopped
	}()
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return errors.New("no list was had")
	}
	for {
		var objects []T
		for _, o := range store.List() {
			objects = append(objects, o.(T).DeepCopyObject().(T))
		}
		if done(objects) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func inform[T Object](s *Side, selector fields.Selector, handler cache.ResourceEventHandler) (cache.Store, cache.Controller, error) {
	client, resource, err := resourceOf[T](s.API)
	if err != nil {
		return nil, nil, err
	}
	namespace := s.Namespace
	if clusterScoped[T]() {
		namespace = ""
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, resource, namespace, selector),
		ObjectType:    newObject[T](),
		Handler:       handler,
	})
	return store, informer, nil
}

func clusterScoped[T Object]() bool {
	switch any(*new(T)).(type) {
	case *corev1.Namespace, *corev1.Node, *corev1.PersistentVolume, *schedulingv1.PriorityClass, *v1alpha1.Cluster, *v1alpha1.ClusterPlacementPolicy:
		return true
	}
	return false
}

// resourceOf returns the client and the resource of the kind.
func resourceOf[T Object](a *API) (cache.Getter, string, error) {
	core, apps, manifold := a.Kube.CoreV1().RESTClient(), a.Kube.AppsV1().RESTClient(), a.Manifold.ManifoldV1alpha1().RESTClient()
	discovery := a.Kube.DiscoveryV1().RESTClient()
	switch any(*new(T)).(type) {
	case *corev1.ConfigMap:
		return core, "configmaps", nil
	case *corev1.Event:
		return core, "events", nil
	case *corev1.Namespace:
		return core, "namespaces", nil
	case *corev1.Node:
		return core, "nodes", nil
	case *corev1.PersistentVolume:
		return core, "persistentvolumes", nil
	case *corev1.PersistentVolumeClaim:
		return core, "persistentvolumeclaims", nil
	case *corev1.Pod:
		return core, "pods", nil
	case *corev1.ReplicationController:
		return core, "replicationcontrollers", nil
	case *corev1.Secret:
		return core, "secrets", nil
	case *corev1.Service:
		return core, "services", nil
	case *corev1.ServiceAccount:
		return core, "serviceaccounts", nil
	case *corev1.LimitRange:
		return core, "limitranges", nil
	case *corev1.ResourceQuota:
		return core, "resourcequotas", nil
	case *policyv1.PodDisruptionBudget:
		return a.Kube.PolicyV1().RESTClient(), "poddisruptionbudgets", nil
	case *networkingv1.Ingress:
		return a.Kube.NetworkingV1().RESTClient(), "ingresses", nil
	case *networkingv1.NetworkPolicy:
		return a.Kube.NetworkingV1().RESTClient(), "networkpolicies", nil
	case *rbacv1.RoleBinding:
		return a.Kube.RbacV1().RESTClient(), "rolebindings", nil
	case *coordinationv1.Lease:
		return a.Kube.CoordinationV1().RESTClient(), "leases", nil
	case *batchv1.Job:
		return a.Kube.BatchV1().RESTClient(), "jobs", nil
	case *batchv1.CronJob:
		return a.Kube.BatchV1().RESTClient(), "cronjobs", nil
	case *appsv1.Deployment:
		return apps, "deployments", nil
	case *appsv1.DaemonSet:
		return apps, "daemonsets", nil
	case *appsv1.ReplicaSet:
		return apps, "replicasets", nil
	case *appsv1.StatefulSet:
		return apps, "statefulsets", nil
	case *appsv1.ControllerRevision:
		return apps, "controllerrevisions", nil
	case *discoveryv1.EndpointSlice:
		return discovery, "endpointslices", nil
	case *schedulingv1.PriorityClass:
		return a.Kube.SchedulingV1().RESTClient(), "priorityclasses", nil
	case *v1alpha1.Cluster:
		return manifold, "clusters", nil
	case *v1alpha1.ClusterPlacementPolicy:
		return manifold, "clusterplacementpolicies", nil
	case *v1alpha1.PlacementPolicy:
		return manifold, "placementpolicies", nil
	}
	return nil, "", fmt.Errorf("waiting for a %T is not known here; add it to resourceOf", *new(T))
}

func newObject[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

func describe[T Object](s *Side) string {
	kind := reflect.TypeFor[T]().Elem().Name()
	if clusterScoped[T]() {
		return kind
	}
	return kind + " of namespace " + s.Namespace + ":"
}

// show returns the object as YAML, without who managed which field.
func show[T Object](o T) string {
	if reflect.ValueOf(o).IsNil() {
		return "nothing\n"
	}
	o = o.DeepCopyObject().(T)
	o.SetManagedFields(nil)
	data, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
