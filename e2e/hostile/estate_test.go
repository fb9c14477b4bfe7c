package hostile

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

// estateName is the name of everything that the victim has: one object of every kind.
const estateName = "web"

// owned are the kinds of which users make objects.
func owned() []resourceOf {
	return append([]resourceOf{
		serviceAccounts, configMaps, services, claims, ingresses, networkPolicies, budgets, limitRanges, quotas,
		deployments, statefulSets, daemonSets, controllers, jobs, pods,
	}, customKinds()...)
}

// estate is what the victims have. All of it that runs is in east.
func estate() []object {
	var out []object
	for _, of := range owned() {
		obj := manifest(of, estateName, honestImage)
		selectOwn(of, obj)
		out = append(out, object{namespace: victim, resource: of, manifest: pin(obj, "east").Object})
	}
	out = append(out, object{
		namespace: metav1.NamespaceDefault, resource: deployments,
		manifest: pin(manifest(deployments, estateName, honestImage), "east").Object,
	})
	// What is in Manifold's own namespace goes nowhere.
	for _, namespace := range []string{metav1.NamespaceDefault, v1alpha1.SystemNamespace} {
		out = append(out, object{namespace: namespace, resource: trinkets, manifest: pin(manifest(trinkets, estateName, honestImage), "east").Object})
	}
	return out
}

// selectOwn gives every workload labels of its own, so that none takes the pods of another.
func selectOwn(of resourceOf, obj *unstructured.Unstructured) {
	if _, found, _ := unstructured.NestedMap(obj.Object, "spec", "template"); !found || of == jobs {
		return
	}
	own := map[string]any{"app": estateName, "kind": of.Resource}
	set(obj, own, "spec", "template", "metadata", "labels")
	if of == controllers {
		set(obj, own, "spec", "selector")
		return
	}
	set(obj, own, "spec", "selector", "matchLabels")
}

// quiet is for how many looks in a row nothing must have changed of what the victims have.
const quiet = 5

// awaitEstate waits until what the victims have runs and does not change any more.
func awaitEstate(ctx context.Context, e *framework.Environment) error {
	var last error
	same, before := 0, ""
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*framework.Deadline, true, func(ctx context.Context) (bool, error) {
		now, err := statuses(ctx, e)
		if err == nil {
			err = settled(ctx, e)
		}
		if ctx.Err() == nil {
			last = err
		}
		if same++; now != before || err != nil {
			same = 0
		}
		before = now
		return same == quiet, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the victims run, and nothing changes: %w, %w", err, last)
	}
	return nil
}

// statuses returns the versions of what the victims have above.
func statuses(ctx context.Context, e *framework.Environment) (string, error) {
	var out strings.Builder
	for _, of := range append(owned(), replicaSets, revisions, endpoints, endpointSlices) {
		for _, namespace := range []string{victim, metav1.NamespaceDefault} {
			list, err := e.Logical.Dynamic.Resource(of).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", err
			}
			for i := range list.Items {
				out.WriteString(list.Items[i].GetName() + " " + list.Items[i].GetResourceVersion() + " ")
			}
		}
	}
	return out.String(), nil
}

// settled reports whether all runs: below and above there are the same pods, and all are ready.
func settled(ctx context.Context, e *framework.Environment) error {
	for _, namespace := range []string{victim, metav1.NamespaceDefault} {
		above, err := e.Logical.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		// Deployment, StatefulSet, ReplicationController, a bare pod, and three nodes of a DaemonSet; a Deployment in "default".
		want := map[string]int{victim: 7, metav1.NamespaceDefault: 1}[namespace]
		if len(above.Items) != want {
			return fmt.Errorf("%d pods in %s, want %d", len(above.Items), namespace, want)
		}
		for _, pod := range above.Items {
			ready := false
			for _, c := range pod.Status.Conditions {
				ready = ready || c.Type == "Ready" && c.Status == "True"
			}
			if !ready {
				return fmt.Errorf("pod %s/%s is not ready", namespace, pod.Name)
			}
		}
	}
	slices, err := e.Logical.Kube.DiscoveryV1().EndpointSlices(victim).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(slices.Items) != 1 || len(slices.Items[0].Endpoints) != 7 {
		return fmt.Errorf("the Service of %s does not have the endpoints of all 7 pods: %v", victim, slices.Items)
	}
	for _, of := range []resourceOf{deployments, statefulSets, daemonSets, controllers} {
		obj, err := e.Logical.Dynamic.Resource(of).Namespace(victim).Get(ctx, estateName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		field := "readyReplicas"
		if of == daemonSets {
			field = "numberReady"
		}
		if ready, _, _ := unstructured.NestedInt64(obj.Object, "status", field); ready == 0 {
			return fmt.Errorf("the status of %s %s is %v", of.Resource, estateName, obj.Object["status"])
		}
	}
	for _, of := range customKinds() {
		if err := copied(ctx, e, of, victim, estateName, "east"); err != nil {
			return err
		}
	}
	return copied(ctx, e, trinkets, metav1.NamespaceDefault, estateName, "east")
}
