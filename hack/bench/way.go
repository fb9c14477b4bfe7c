package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/hack/stock"
)

// api is one API server.
type api struct {
	name   string
	client kubernetes.Interface
}

// way is a way to get Deployments of two replicas onto two clusters.
type way struct {
	name string
	// targets are where a Deployment is created, each with as many replicas as said here, and replicas is what each is to be ready with.
	targets  []api
	replicas int32
	// clusters are where it must turn up.
	clusters []api
	// annotations are those of the namespace.
	annotations map[string]string
}

func newDirect(clusters []*stock.Cluster) way {
	below := apis(clusters)
	return way{name: "direct", targets: below, replicas: 1, clusters: below}
}

func newThrough(clusters []*stock.Cluster, hub *hub) way {
	below := apis(clusters)
	return way{
		name:        "through",
		targets:     []api{{name: "logical cluster", client: hub.client}},
		replicas:    int32(len(below)),
		clusters:    below,
		annotations: map[string]string{v1alpha1.AnnotationClusters: clusters[0].Name() + "," + clusters[1].Name()},
	}
}

func apis(clusters []*stock.Cluster) []api {
	var list []api
	for _, c := range clusters {
		list = append(list, api{name: c.Name(), client: kubernetes.NewForConfigOrDie(protobuf(c.RESTConfig()))})
	}
	return list
}

// protobuf keeps the cost of measuring low: the machine is shared with what is measured.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1
	return config
}

// createNamespace makes the namespace where Deployments are created, and waits until pods can be made in it.
func (w way) createNamespace(ctx context.Context, name string) error {
	return each(w.targets, func(target api) error {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: w.annotations}}
		if _, err := target.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create namespace %q in %s: %w", name, target.name, err)
		}
		return untilServiceAccount(ctx, target, name)
	})
}

// deleteNamespace removes the namespace and waits until it is gone everywhere.
func (w way) deleteNamespace(ctx context.Context, name string) error {
	err := each(w.targets, func(target api) error {
		if err := target.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete namespace %q in %s: %w", name, target.name, err)
		}
		return untilGone(ctx, target, name)
	})
	if err != nil {
		return err
	}
	return each(w.clusters, func(cluster api) error { return untilGone(ctx, cluster, name) })
}

func (w way) createDeployment(ctx context.Context, namespace, name string) error {
	return each(w.targets, func(target api) error {
		deployment := deployment(name, w.replicas)
		_, err := target.client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create deployment %s/%s in %s: %w", namespace, name, target.name, err)
		}
		return nil
	})
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	requests := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "app", Image: "app:1", Resources: corev1.ResourceRequirements{Requests: requests},
				}}},
			},
		},
	}
}

// each calls do for all at the same time.
func each(apis []api, do func(api) error) error {
	var group errgroup.Group
	for _, a := range apis {
		group.Go(func() error { return do(a) })
	}
	return group.Wait()
}
