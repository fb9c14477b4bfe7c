// Package typed reaches objects of a kind that is only known at run time through client-go's typed clients, which speak protobuf where
// a dynamic client would not. Objects of custom kinds are reached in the same way, by a dynamic client.
package typed

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Object is a typed Kubernetes object, such as *appsv1.Deployment.
type Object interface {
	metav1.Object
	runtime.Object
}

// Client reads and changes objects of one kind in one namespace.
type Client interface {
	UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error)
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error)
	// List returns a list of the kind, whose items meta.ExtractList knows how to find.
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// For returns the client of a resource. The error is that of a resource whose status nobody here writes.
func For(client kubernetes.Interface, resource schema.GroupVersionResource, namespace string) (Client, error) {
	row, ok := clients[resource]
	if !ok {
		return nil, fmt.Errorf("no typed client for %s", resource)
	}
	return row(client, namespace), nil
}

// Custom is the client of a custom kind.
type Custom struct {
	Dynamic dynamic.ResourceInterface
	// Whole tells that the kind has no status subresource, so that a status is written with all the rest.
	Whole bool
}

// UpdateStatus implements Client.
func (c Custom) UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error) {
	if c.Whole {
		return c.Dynamic.Update(ctx, obj.(*unstructured.Unstructured), options)
	}
	return c.Dynamic.UpdateStatus(ctx, obj.(*unstructured.Unstructured), options)
}

// Patch implements Client.
func (c Custom) Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error) {
	return c.Dynamic.Patch(ctx, name, patch, data, options)
}

// List implements Client.
func (c Custom) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return c.Dynamic.List(ctx, options)
}

// REST returns the client that sends requests about objects of a group. The error is that of a group that is not known here.
func REST(client kubernetes.Interface, group string) (rest.Interface, error) {
	switch group {
	case corev1.GroupName:
		return client.CoreV1().RESTClient(), nil
	case appsv1.GroupName:
		return client.AppsV1().RESTClient(), nil
	case batchv1.GroupName:
		return client.BatchV1().RESTClient(), nil
	case networkingv1.GroupName:
		return client.NetworkingV1().RESTClient(), nil
	case policyv1.GroupName:
		return client.PolicyV1().RESTClient(), nil
	case discoveryv1.GroupName:
		return client.DiscoveryV1().RESTClient(), nil
	}
	return nil, fmt.Errorf("no typed client for group %q", group)
}

var clients = map[schema.GroupVersionResource]func(kubernetes.Interface, string) Client{
	appsv1.SchemeGroupVersion.WithResource("deployments"): func(c kubernetes.Interface, ns string) Client {
		return of(c.AppsV1().Deployments(ns))
	},
	appsv1.SchemeGroupVersion.WithResource("statefulsets"): func(c kubernetes.Interface, ns string) Client {
		return of(c.AppsV1().StatefulSets(ns))
	},
	appsv1.SchemeGroupVersion.WithResource("daemonsets"): func(c kubernetes.Interface, ns string) Client {
		return of(c.AppsV1().DaemonSets(ns))
	},
	appsv1.SchemeGroupVersion.WithResource("replicasets"): func(c kubernetes.Interface, ns string) Client {
		return of(c.AppsV1().ReplicaSets(ns))
	},
	batchv1.SchemeGroupVersion.WithResource("jobs"): func(c kubernetes.Interface, ns string) Client {
		return of(c.BatchV1().Jobs(ns))
	},
	corev1.SchemeGroupVersion.WithResource("replicationcontrollers"): func(c kubernetes.Interface, ns string) Client {
		return of(c.CoreV1().ReplicationControllers(ns))
	},
	corev1.SchemeGroupVersion.WithResource("pods"): func(c kubernetes.Interface, ns string) Client {
		return of(c.CoreV1().Pods(ns))
	},
	corev1.SchemeGroupVersion.WithResource("services"): func(c kubernetes.Interface, ns string) Client {
		return of(c.CoreV1().Services(ns))
	},
	corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"): func(c kubernetes.Interface, ns string) Client {
		return of(c.CoreV1().PersistentVolumeClaims(ns))
	},
	networkingv1.SchemeGroupVersion.WithResource("ingresses"): func(c kubernetes.Interface, ns string) Client {
		return of(c.NetworkingV1().Ingresses(ns))
	},
	policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"): func(c kubernetes.Interface, ns string) Client {
		return of(c.PolicyV1().PodDisruptionBudgets(ns))
	},
}

// stock is what client-go's typed clients have in common.
type stock[P Object, L runtime.Object] interface {
	UpdateStatus(ctx context.Context, obj P, options metav1.UpdateOptions) (P, error)
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (P, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

type client[P Object, L runtime.Object] struct{ stock stock[P, L] }

func of[P Object, L runtime.Object](s stock[P, L]) Client { return client[P, L]{s} }

// UpdateStatus implements Client.
func (c client[P, L]) UpdateStatus(ctx context.Context, obj Object, options metav1.UpdateOptions) (Object, error) {
	return c.stock.UpdateStatus(ctx, obj.(P), options)
}

// Patch implements Client.
func (c client[P, L]) Patch(ctx context.Context, name string, patch types.PatchType, data []byte, options metav1.PatchOptions) (Object, error) {
	return c.stock.Patch(ctx, name, patch, data, options)
}

// List implements Client.
func (c client[P, L]) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return c.stock.List(ctx, options)
}
