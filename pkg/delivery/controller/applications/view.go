package applications

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/automation"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
	"github.com/manifold-dev/manifold/pkg/delivery/render/revision"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
)

const (
	// byApplication finds the revisions and releases of an application, by its namespace and name.
	byApplication = "delivery.application"
	// bySelection finds the applications of a namespace that select objects.
	bySelection = "delivery.selection"
	// byCluster finds the applications that run in a cluster, by what their status shows.
	byCluster = "delivery.cluster"
	// byLabel finds the objects of an application by its namespace and name, as their label says.
	byLabel = "delivery.label"
	// byMadeOf finds the workloads that are copies of a revision, by its namespace and name.
	byMadeOf = "delivery.made-of"
)

// view is what the caches have of applications and of all that belongs to them. It only reads.
type view struct {
	applications, revisions, releases, clusters cache.Indexer
	secrets                                     corelisters.SecretLister
	contents                                    []contents
	customs                                     objects.Customs
}

// contents are caches of the kinds that go to clusters, by which the objects of applications are found.
type contents struct {
	kind     projection.Kind
	informer cache.SharedIndexInformer
}

// content is an object of an application.
type content struct {
	kind   projection.Kind
	object projection.Object
}

// newView indexes the caches of informers that are not started yet.
func newView(o Options) (*view, error) {
	own := o.Own.Delivery().V1alpha1()
	v := &view{
		applications: own.Applications().Informer().GetIndexer(),
		revisions:    own.ApplicationRevisions().Informer().GetIndexer(),
		releases:     own.Releases().Informer().GetIndexer(),
		clusters:     o.Own.Manifold().V1alpha1().Clusters().Informer().GetIndexer(),
		secrets:      o.Kube.Core().V1().Secrets().Lister(),
		customs:      o.Customs,
	}
	for _, kind := range projection.Kinds() {
		generic, err := o.Kube.ForResource(kind.Resource)
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", kind.Resource.Resource, err)
		}
		v.contents = append(v.contents, contents{kind, generic.Informer()})
	}
	return v, v.index()
}

func (v *view) index() error {
	by := func(obj any) ([]string, error) { return []string{applicationOf(obj).String()}, nil }
	selecting := func(obj any) ([]string, error) {
		if app, ok := obj.(*v1alpha1.Application); ok && app.Spec.Source.Selector != nil {
			return []string{app.Namespace}, nil
		}
		return nil, nil
	}
	errs := []error{indexBy(v.applications, bySelection, selecting), indexBy(v.applications, byCluster, running), indexBy(v.revisions, byApplication, by), indexBy(v.releases, byApplication, by)}
	for _, of := range v.contents {
		errs = append(errs, indexBy(of.informer.GetIndexer(), byLabel, labelled))
		if of.kind.Workload {
			errs = append(errs, indexBy(of.informer.GetIndexer(), byMadeOf, madeOf))
		}
	}
	return errors.Join(errs...)
}

// running are the clusters that an application runs in.
func running(obj any) ([]string, error) {
	app, ok := obj.(*v1alpha1.Application)
	if !ok {
		return nil, nil
	}
	var out []string
	for i := range app.Status.Targets {
		for j := range app.Status.Targets[i].Clusters {
			out = append(out, app.Status.Targets[i].Clusters[j].Name)
		}
	}
	return out, nil
}

func indexBy(indexer cache.Indexer, name string, by cache.IndexFunc) error {
	if _, there := indexer.GetIndexers()[name]; there {
		return nil
	}
	if err := indexer.AddIndexers(cache.Indexers{name: by}); err != nil {
		return fmt.Errorf("index %s: %w", name, err)
	}
	return nil
}

// applicationOf is the application that a revision or a release is of.
func applicationOf(obj any) cache.ObjectName {
	switch o := obj.(type) {
	case *v1alpha1.ApplicationRevision:
		return cache.ObjectName{Namespace: o.Namespace, Name: o.Spec.Application}
	case *v1alpha1.Release:
		return cache.ObjectName{Namespace: o.Namespace, Name: o.Spec.Application}
	}
	return cache.ObjectName{}
}

// labelled is the application that the label of an object names. Most objects have none.
func labelled(obj any) ([]string, error) {
	object, ok := obj.(metav1.Object)
	if !ok || object.GetLabels()[v1alpha1.LabelApplication] == "" {
		return nil, nil
	}
	return []string{cache.ObjectName{Namespace: object.GetNamespace(), Name: object.GetLabels()[v1alpha1.LabelApplication]}.String()}, nil
}

// madeOf is the revision that a workload says it is a copy of. Most say nothing.
func madeOf(obj any) ([]string, error) {
	object, ok := obj.(metav1.Object)
	if !ok || object.GetAnnotations()[v1alpha1.AnnotationMadeOf] == "" {
		return nil, nil
	}
	return []string{cache.ObjectName{Namespace: object.GetNamespace(), Name: object.GetAnnotations()[v1alpha1.AnnotationMadeOf]}.String()}, nil
}

// application is the one of a name, nil if there is none.
func (v *view) application(name cache.ObjectName) *v1alpha1.Application {
	return caches.Named[*v1alpha1.Application](v.applications, name.String())
}

// state is what the caches have of an application.
func (v *view) state(app *v1alpha1.Application) automation.State {
	out := automation.State{Application: app}
	for _, revision := range v.partsOf(app) {
		if !revision.IsChunk() && owned(revision, app) {
			out.Revisions = append(out.Revisions, revision)
		}
	}
	out.Releases = caches.Indexed[*v1alpha1.Release](v.releases, byApplication, cache.MetaObjectToName(app).String())
	out.Targets = read.Spec(app.Spec, out.Latest()).Targets
	return out
}

// deliveredAs is the revision whose file says how what a release has left is delivered, nil if that is gone.
func (v *view) deliveredAs(release *v1alpha1.Release) *v1alpha1.ApplicationRevision {
	return caches.Named[*v1alpha1.ApplicationRevision](v.revisions, cache.NewObjectName(release.Namespace, release.DeliveredAs()).String())
}

// partsOf are the revisions of an application, chunks among them.
func (v *view) partsOf(app *v1alpha1.Application) []*v1alpha1.ApplicationRevision {
	return caches.Indexed[*v1alpha1.ApplicationRevision](v.revisions, byApplication, cache.MetaObjectToName(app).String())
}

// partCounts are how many chunks and Secrets the revisions of an application have, by their numbers.
func (v *view) partCounts(app *v1alpha1.Application) map[int64]int {
	out := map[int64]int{}
	for _, part := range v.partsOf(app) {
		if part.IsChunk() {
			out[part.Spec.Number]++
		}
	}
	for _, secret := range v.secretsOf(app) {
		if number, ok := numberOf(app, secret); ok {
			out[number]++
		}
	}
	return out
}

// owned reports whether a revision is not one of an application that had the same name before.
func owned(revision *v1alpha1.ApplicationRevision, app *v1alpha1.Application) bool {
	owner := metav1.GetControllerOfNoCopy(revision)
	return owner == nil || owner.UID == app.UID
}

// contentsOf are the objects of built-in kinds that carry the label of an application.
func (v *view) contentsOf(app *v1alpha1.Application) []content {
	var out []content
	for _, of := range v.contents {
		for _, object := range caches.Indexed[projection.Object](of.informer.GetIndexer(), byLabel, cache.MetaObjectToName(app).String()) {
			out = append(out, content{of.kind, object})
		}
	}
	return out
}

// named are the revisions that objects of an application name in their shares, and those that other workloads are copies of.
func (v *view) named(app *v1alpha1.Application) map[string]bool {
	out := map[string]bool{}
	for _, revision := range v.partsOf(app) {
		name := cache.MetaObjectToName(revision).String()
		for _, of := range v.contents {
			if of.kind.Workload && len(caches.Indexed[projection.Object](of.informer.GetIndexer(), byMadeOf, name)) > 0 {
				out[revision.Name] = true
			}
		}
	}
	for _, of := range v.contentsOf(app) {
		for _, share := range identity.DecisionOf(of.object) {
			out[share.Revision] = true
		}
	}
	return out
}

// secretsOf are the Secrets that hold manifests of an application.
func (v *view) secretsOf(app *v1alpha1.Application) []*corev1.Secret {
	found, _ := v.secrets.Secrets(app.Namespace).List(labels.SelectorFromSet(labels.Set{v1alpha1.LabelApplication: app.Name})) // a cache always lists
	var out []*corev1.Secret
	for _, secret := range found {
		if owner := metav1.GetControllerOfNoCopy(secret); secret.Type == revision.SecretType && (owner == nil || owner.UID == app.UID) {
			out = append(out, secret)
		}
	}
	return out
}

// follow reports whether targets of any application follow their clusters at once.
func (v *view) follow() bool {
	return slices.ContainsFunc(caches.All[*v1alpha1.Application](v.applications), func(app *v1alpha1.Application) bool {
		return slices.ContainsFunc(app.Spec.Targets, follows)
	})
}

// follows reports whether a target follows its clusters at once.
func follows(target v1alpha1.Target) bool { return target.Follow == v1alpha1.FollowImmediately }

// silent are the clusters that do not answer.
func (v *view) silent() map[string]bool {
	out := map[string]bool{}
	for _, cluster := range caches.All[*manifold.Cluster](v.clusters) {
		if observe.Silent(cluster) {
			out[cluster.Name] = true
		}
	}
	return out
}

// unready are the clusters that are not known to be well.
func (v *view) unready() map[string]bool {
	out := map[string]bool{}
	for _, cluster := range caches.All[*manifold.Cluster](v.clusters) {
		if !ready(cluster) {
			out[cluster.Name] = true
		}
	}
	return out
}

// ready reports whether a cluster is known to be well. One that has just joined is not yet.
func ready(cluster *manifold.Cluster) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, manifold.ClusterReady) && !observe.Silent(cluster)
}
