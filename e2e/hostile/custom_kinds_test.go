package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// customGroup is the group of the custom kinds that these tests define, above and in both clusters, which let Manifold manage them.
const customGroup = "hostile.e2e.example.com"

// customKinds are one of which nobody knows what it means, and one of which a policy says where it has its pods.
func customKinds() []resourceOf { return []resourceOf{trinkets, flocks} }

func allowKinds() []string {
	var out []string
	for _, of := range append(customKinds(), exports, imports) {
		out = append(out, "--allow-kind", of.GroupResource().String())
	}
	return out
}

// definition returns the definition of a custom kind, whose objects may have anything.
func definition(of resourceOf) map[string]any {
	kind, _ := manifest(of, "x", "").Object["kind"].(string)
	return parse(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "`+of.GroupResource().String()+`"}, spec: {
  group: `+customGroup+`, scope: Namespaced, names: {plural: "%[1]s", singular: "`+strings.ToLower(kind)+`", kind: "`+kind+`"},
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
    spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}},
    status: {x-kubernetes-preserve-unknown-fields: true}}}}}]}}`, of.Resource)
}

// flocksPolicy says where Flocks have their pods, and sends none anywhere.
const flocksPolicy = `{apiVersion: manifold.dev/v1alpha1, kind: ClusterPlacementPolicy, metadata: {name: "%[1]s"}, spec: {
  namespaceSelector: {matchLabels: {no: where}}, workloads: {kinds: [Flock.` + customGroup + `]},
  customWorkloads: [{kind: Flock.` + customGroup + `, podTemplatePaths: [.spec.template], specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}]}}`

// define defines the custom kinds everywhere, and waits until they are served.
func define(ctx context.Context, e *framework.Environment) error {
	apis := []*framework.API{e.Logical, e.Physical["east"], e.Physical["west"]}
	for _, of := range customKinds() {
		for _, api := range apis {
			obj := &unstructured.Unstructured{Object: definition(of)}
			if _, err := api.Dynamic.Resource(definitions).Create(ctx, obj, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("define %s in %s: %w", of.Resource, api.Name, err)
			}
		}
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, framework.Deadline, true, func(ctx context.Context) (bool, error) {
		last = nil
		for _, of := range customKinds() {
			for _, api := range apis {
				_, err := api.Dynamic.Resource(of).List(ctx, metav1.ListOptions{})
				last = errors.Join(last, err)
			}
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the custom kinds are served: %w, %w", err, last)
	}
	policy := &unstructured.Unstructured{Object: parse(flocksPolicy, flocks.Resource)}
	_, err = e.Logical.Dynamic.Resource(clusterPolicies).Create(ctx, policy, metav1.CreateOptions{})
	return err
}

// copied returns an error unless clusters have their copies of an object, and this is told above.
func copied(ctx context.Context, e *framework.Environment, of resourceOf, namespace, name string, clusters ...string) error {
	above, err := e.Logical.Dynamic.Resource(of).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	told := identity.CopiesOf(above)
	for _, cluster := range clusters {
		below, err := e.Physical[cluster].Dynamic.Resource(of).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("cluster %s: %w", cluster, err)
		}
		if origin, owned := projection.OriginOf(below); !owned || origin.UID != above.GetUID() {
			return fmt.Errorf("cluster %s has %s %s/%s of somebody else", cluster, of.Resource, namespace, name)
		}
		if told[cluster].Generation != above.GetGeneration() {
			return fmt.Errorf("of cluster %s it is told of %s %s/%s that %+v", cluster, of.Resource, namespace, name, told[cluster])
		}
	}
	return nil
}

// awaitCopied waits until clusters have their copies of an object of the arena.
func (a *arena) awaitCopied(of resourceOf, name string, clusters ...string) {
	a.Helper()
	a.Logical.Poll(of.Resource+" "+name+" is copied to "+strings.Join(clusters, " and "), func() error {
		return copied(a.Context(), a.Environment, of, a.Namespace, name, clusters...)
	})
}

// custom makes an object of a custom kind in the arena, pinned to clusters, and waits until these have it.
func (a *arena) custom(of resourceOf, name string, clusters ...string) *unstructured.Unstructured {
	a.Helper()
	made := a.create(object{resource: of, manifest: pin(manifest(of, name, honestImage), strings.Join(clusters, ",")).Object})
	a.awaitCopied(of, name, clusters...)
	return made
}

// ownCustom makes something honest of each custom kind in west, so that what west has of these kinds is looked at.
func (a *arena) ownCustom() {
	a.Helper()
	for _, of := range customKinds() {
		a.custom(of, "own", "west")
	}
}

// customCanary has west say something of custom objects that are honest, twice, one after the other: what was said before was heard then.
func (a *arena) customCanary() {
	a.Helper()
	for range 2 {
		name := a.unique("canary")
		a.custom(trinkets, name, "west")
		a.says("west", trinkets, name, map[string]any{"phase": name})
		a.Logical.Poll("the status of "+name+" is shown", func() error {
			obj := a.getIn(a.Environment.Logical, trinkets, a.Namespace, name)
			if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); phase != name {
				return fmt.Errorf("it is %v", obj.Object["status"])
			}
			return nil
		})
	}
}

// says sets the status of an object in a cluster, as its operator there would.
func (a *arena) says(cluster string, of resourceOf, name string, status map[string]any) {
	a.Helper()
	api := a.Environment.Physical[cluster]
	obj := a.getIn(api, of, a.Namespace, name)
	obj.Object["status"] = status
	if _, err := api.Dynamic.Resource(of).Namespace(a.Namespace).UpdateStatus(a.Context(), obj, metav1.UpdateOptions{}); err != nil {
		a.Fatal(err)
	}
}

// ofArena reports whether an object is in the arena's namespace and has one of several names.
func (a *arena) ofArena(obj *unstructured.Unstructured, names ...string) bool {
	return obj.GetNamespace() == a.Namespace && slices.Contains(names, obj.GetName())
}
