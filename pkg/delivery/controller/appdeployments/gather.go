package appdeployments

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json" // it keeps whole numbers whole

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/places"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
)

// annotationRevision is where a ReplicaSet says which revision of its Deployment it is.
const annotationRevision = "deployment.kubernetes.io/revision"

// source is what a revision is made of.
type source struct {
	oam.Revision
	// of is the ApplicationRevision as delivery names it, or the state of a workload.
	of delivery.Revision
	// targets are those that it has manifests for, target returns the one that counts in a cluster, and content what that has.
	targets []string
	target  func(cluster string) string
	content func(target string) (oam.Content, error)
}

// find returns what a revision is made of, or says what is missing.
func (c *Controller) find(namespace string, revision oam.Revision, clusters []oam.Cluster) (source, error) {
	out := source{Revision: revision}
	if revision.Native() {
		objects, err := c.native(namespace, revision)
		if err != nil {
			return out, err
		}
		out.of, out.targets, out.target = delivery.Revision{Name: revision.Reference()}, []string{""}, func(string) string { return "" }
		out.content = func(string) (oam.Content, error) { return oam.Prepare(revision, objects) }
		return out, nil
	}
	found, err := c.revisions.ApplicationRevisions(namespace).Get(revision.Reference())
	if apierrors.IsNotFound(err) || err == nil && found.IsChunk() {
		return out, fmt.Errorf("there is no ApplicationRevision %s in namespace %s: kubectl get applicationrevisions -n %s", revision.Reference(), namespace, namespace)
	}
	if err != nil {
		return out, err
	}
	out.of = delivery.Revision{Name: found.Name, Hash: found.Spec.Hash}
	for _, target := range found.Spec.Targets {
		out.targets = append(out.targets, target.Name)
	}
	if len(out.targets) == 0 {
		return out, fmt.Errorf("ApplicationRevision %s has no manifests", found.Name)
	}
	out.target = c.targetOf(found, out.targets, clusters)
	out.content = func(target string) (oam.Content, error) {
		objects, err := c.Contents.Objects(namespace, found.Name, target)
		if err != nil {
			return oam.Content{}, err
		}
		return oam.Prepare(revision, objects)
	}
	return out, nil
}

// targetOf says whose manifests count in a cluster: those of the target of the Application that the cluster belongs to, or of the first that there is.
func (c *Controller) targetOf(revision *v1alpha1.ApplicationRevision, has []string, clusters []oam.Cluster) func(cluster string) string {
	belongs := map[string]string{}
	if app, err := c.applications.Applications(revision.Namespace).Get(revision.Spec.Application); err == nil && len(has) > 1 {
		known := map[string]delivery.Cluster{}
		for _, cluster := range clusters {
			known[cluster.Name] = delivery.Cluster{Labels: cluster.Labels}
		}
		targets := slices.DeleteFunc(read.Targets(read.Spec(app.Spec, revision).Targets), func(target delivery.Target) bool {
			_, there := known[target.Cluster]
			return !slices.Contains(has, target.Name) || target.Selector == nil && !there
		})
		found, _ := places.Resolve(targets, known) // without any, the first counts
		for _, place := range found {
			belongs[place.Cluster] = place.Target
		}
	}
	return func(cluster string) string {
		if target, is := belongs[cluster]; is {
			return target
		}
		return has[0]
	}
}

// errUnread says that something of the cache is not what it should be.
var errUnread = errors.New("cannot be read")

// asMap is a typed object as its manifest.
func asMap(object runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", kind.Kind, errUnread, err)
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(kind)
	return out, nil
}

// native returns the objects that stand for a state of a workload: itself, and the Services of the namespace that lead to it.
func (c *Controller) native(namespace string, revision oam.Revision) ([]*unstructured.Unstructured, error) {
	missing := fmt.Errorf("there is no %s %s in namespace %s", revision.Kind, revision.Workload, namespace)
	var workload *unstructured.Unstructured
	var template map[string]any
	var pods map[string]string
	switch revision.Kind {
	case "Deployment":
		found, err := c.deployments.Deployments(namespace).Get(revision.Workload)
		if err != nil {
			return nil, missing
		}
		if workload, err = asMap(found, appsv1.SchemeGroupVersion.WithKind("Deployment")); err != nil {
			return nil, err
		}
		if template, err = c.template(found, revision.History); err != nil {
			return nil, err
		}
		pods = found.Spec.Template.Labels
	case "StatefulSet":
		found, err := c.statefulSets.StatefulSets(namespace).Get(revision.Workload)
		if err != nil {
			return nil, missing
		}
		if workload, err = asMap(found, appsv1.SchemeGroupVersion.WithKind("StatefulSet")); err != nil {
			return nil, err
		}
		if template, err = c.templateOfSet(found, revision.History); err != nil {
			return nil, err
		}
		pods = found.Spec.Template.Labels
	}
	services, err := c.services.Services(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	var leading []*unstructured.Unstructured
	for _, service := range services {
		if len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pods)) || service.Labels[v1alpha1.LabelApplication] != "" {
			continue
		}
		object, err := asMap(service, corev1.SchemeGroupVersion.WithKind("Service"))
		if err != nil {
			return nil, err
		}
		leading = append(leading, object)
	}
	return oam.FromWorkload(workload, template, leading)
}

// template is that of a revision in the history of a Deployment, nil for what it is now.
func (c *Controller) template(of *appsv1.Deployment, revision int64) (map[string]any, error) {
	if revision == 0 {
		return nil, nil
	}
	sets, err := c.replicaSets.ReplicaSets(of.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if metav1.IsControlledBy(set, of) && set.Annotations[annotationRevision] == strconv.FormatInt(revision, 10) {
			return runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Spec.Template)
		}
	}
	return nil, noRevision("Deployment", of, revision)
}

// templateOfSet is that of a revision in the history of a StatefulSet, nil for what it is now.
func (c *Controller) templateOfSet(of *appsv1.StatefulSet, revision int64) (map[string]any, error) {
	if revision == 0 {
		return nil, nil
	}
	all, err := c.histories.ControllerRevisions(of.Namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, kept := range all {
		if !metav1.IsControlledBy(kept, of) || kept.Revision != revision {
			continue
		}
		var data struct {
			Spec struct {
				Template map[string]any `json:"template"`
			} `json:"spec"`
		}
		if err := utiljson.Unmarshal(kept.Data.Raw, &data); err != nil || data.Spec.Template == nil {
			return nil, fmt.Errorf("ControllerRevision %s %w: it has no template", kept.Name, errUnread)
		}
		delete(data.Spec.Template, "$patch") // it says how the template is put back
		return data.Spec.Template, nil
	}
	return nil, noRevision("StatefulSet", of, revision)
}

func noRevision(kind string, of metav1.Object, revision int64) error {
	return fmt.Errorf("no revision %d of %s %s: kubectl rollout history %s/%s -n %s", revision, kind, of.GetName(), strings.ToLower(kind), of.GetName(), of.GetNamespace())
}

// make returns the objects that a revision stands for with so many replicas in each cluster.
func (c *Controller) make(app wanted.Application, of source, size oam.Size) (wanted.Wanted, error) {
	contents := map[string]oam.Content{}
	read := func(target string) (oam.Content, error) {
		if found, known := contents[target]; known {
			return found, nil
		}
		found, err := of.content(target)
		if err == nil {
			contents[target] = found
		}
		return found, err
	}
	first, err := read(of.targets[0])
	if err != nil {
		return wanted.Wanted{}, err
	}
	app.Copies = first.Options()
	app.Targets = func(delivery.Revision) []string { return of.targets }
	return wanted.Make(app, setOf(of, size, first.Front != nil), of.of.Name, func(part delivery.Part) ([]*unstructured.Unstructured, error) {
		content, err := read(part.Target)
		return content.Objects, err
	})
}

// setOf is the variant set of one revision.
func setOf(of source, size oam.Size, service bool) delivery.Set {
	parts := map[string]delivery.Part{}
	for cluster, replicas := range size {
		parts[cluster] = delivery.Part{Revision: of.of, Target: of.target(cluster), Replicas: replicas}
	}
	return delivery.Set{of.Variant: {Suffix: of.Variant, Service: service, Clusters: parts}}
}

// known are the clusters that have joined and are not about to leave.
func (c *Controller) known() ([]oam.Cluster, []*manifold.Cluster, error) {
	all, err := c.clusters.List(labels.Everything())
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b *manifold.Cluster) int { return strings.Compare(a.Name, b.Name) })
	var out []oam.Cluster
	for _, cluster := range all {
		if cluster.DeletionTimestamp == nil {
			out = append(out, oam.Cluster{Name: cluster.Name, Labels: cluster.Labels})
		}
	}
	return out, all, nil
}

// home says which clusters may be the one of an object: the one that it names, or those that its namespace is pinned to, or all.
func (c *Controller) home(object *oam.Object) func(cluster string) bool {
	if named := object.Spec.HomeCluster; named != "" {
		return func(cluster string) bool { return cluster == named }
	}
	if namespace, err := c.namespaces.Get(object.Namespace); err == nil {
		if pin, err := manifold.ParsePin(namespace.Annotations[manifold.AnnotationClusters]); err == nil {
			return pin.Selects
		}
	}
	return manifold.Pin{All: true}.Selects
}
