package held

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// ErrNotYet is wrapped by errors about what is not known yet, or about an object that is not applied yet as its clusters are to hold it.
var ErrNotYet = errors.New("the object is not applied yet")

// Customs says at which revisions clusters hold objects of custom kinds. Their shares name none, since they are not decided about while they are stored:
// what a cluster holds follows from the last release of their application.
type Customs struct {
	reader                 *contents.Reader
	applications, releases cache.SharedIndexInformer
}

// Hold is what a cluster is to hold of an object. The zero value is the object as it stands.
type Hold struct {
	// Revision is the one that the cluster is to hold, the zero value for an object of no application.
	Revision identity.Revision
	// Content is the manifest of that, nil where it is what the object stands at, and Hash its hash.
	Content *unstructured.Unstructured
	Hash    string
	// Older says that the object stands at a newer revision, and Absent that the one which the cluster is to hold has nothing of it.
	Older, Absent bool
}

// byReleased indexes releases by their application.
const byReleased = "delivery.manifold.dev/held"

// NewCustoms registers with the informers of Applications and Releases, which the caller starts afterwards.
func NewCustoms(reader *contents.Reader, applications, releases cache.SharedIndexInformer) (*Customs, error) {
	c := &Customs{reader: reader, applications: applications, releases: releases}
	err := c.releases.AddIndexers(cache.Indexers{byReleased: func(obj any) ([]string, error) {
		release, is := obj.(*v1alpha1.Release)
		if !is {
			return nil, nil
		}
		return []string{release.Namespace + "/" + release.Spec.Application}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index Releases by their applications: %w", err)
	}
	return c, nil
}

// Watch has changed called for an application whose clusters are to hold something else.
func (c *Customs) Watch(changed func(application cache.ObjectName)) error {
	tell := func(release *v1alpha1.Release) {
		changed(cache.NewObjectName(release.Namespace, release.Spec.Application))
	}
	_, err := c.releases.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { tell(obj.(*v1alpha1.Release)) },
		UpdateFunc: func(old, obj any) {
			if before, now := old.(*v1alpha1.Release), obj.(*v1alpha1.Release); !equality.Semantic.DeepEqual(before.Status.Variants, now.Status.Variants) ||
				before.Status.Sequence != now.Status.Sequence {
				tell(now)
			}
		},
		DeleteFunc: func(obj any) { tell(caches.Last(obj).(*v1alpha1.Release)) },
	})
	if err != nil {
		return fmt.Errorf("watch what is released: %w", err)
	}
	return nil
}

// In returns what a cluster is to hold of an object. The error wraps ErrNotYet or ErrUnreadable.
func (c *Customs) In(kind schema.GroupKind, above metav1.Object, cluster string) (Hold, error) {
	application, stands := above.GetLabels()[v1alpha1.LabelApplication], identity.ParseRevision(above.GetAnnotations()[v1alpha1.AnnotationContent])
	if application == "" || stands == (identity.Revision{}) {
		return Hold{}, nil
	}
	if !c.applications.HasSynced() || !c.releases.HasSynced() {
		return Hold{}, fmt.Errorf("what is released is not known: %w", ErrNotYet)
	}
	at, awaits := c.wanted(above, application, cluster)
	if awaits || at == (identity.Revision{}) || at == stands {
		return Hold{Revision: at, Absent: awaits}, nil
	}
	return c.at(kind, above, cluster, stands, at)
}

// at is what a cluster holds that is to hold another manifest than the one that the object stands at.
func (c *Customs) at(kind schema.GroupKind, above metav1.Object, cluster string, stands, at identity.Revision) (Hold, error) {
	_, newest, _ := v1alpha1.ParseRevisionName(stands.Name)
	_, number, _ := v1alpha1.ParseRevisionName(at.Name)
	out := Hold{Revision: at, Older: number < newest}
	fail := func(err error) (Hold, error) {
		return Hold{}, fmt.Errorf("%s %s/%s is to be held at revision %q in cluster %q: %w", kind.Kind, above.GetNamespace(), above.GetName(), at.Name, cluster, err)
	}
	found, same, err := find(c.reader, kind, above, at)
	switch {
	case errors.Is(err, contents.ErrAbsent):
		out.Absent = true
		return out, nil
	case err != nil:
		return fail(err)
	case same:
		return out, nil
	}
	if number > newest { // the server may refuse it still
		return fail(ErrNotYet)
	}
	out.Content, out.Hash = found.Object, found.Hash
	return out, nil
}

// find returns what a revision has of an object, and reports whether that is the same as what the object stands at.
func find(reader *contents.Reader, kind schema.GroupKind, above metav1.Object, at identity.Revision) (found contents.Content, same bool, err error) {
	found, err = reader.Find(above.GetNamespace(), at.Name, at.Target, kind, above.GetName())
	if err != nil {
		return found, false, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	stands := identity.ParseRevision(above.GetAnnotations()[v1alpha1.AnnotationContent])
	now, err := reader.Find(above.GetNamespace(), stands.Name, stands.Target, kind, above.GetName())
	return found, err == nil && now.Hash == found.Hash, nil
}

// CustomAt returns an object of a custom kind as clusters hold it at a revision: as it stands where that says the same of it. The error wraps ErrUnreadable.
func CustomAt(reader *contents.Reader, kind schema.GroupKind, above *unstructured.Unstructured, at identity.Revision) (*unstructured.Unstructured, error) {
	if at == identity.ParseRevision(above.GetAnnotations()[v1alpha1.AnnotationContent]) {
		return above, nil
	}
	found, same, err := find(reader, kind, above, at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %s/%s at revision %q: %w", kind.Kind, above.GetNamespace(), above.GetName(), at.Name, err)
	case same:
		return above, nil
	}
	return found.Object, nil
}

// wanted is the revision that a cluster is to hold by the last release that has begun, the zero value if none says so. A cluster may await that the release
// comes to it for the first time.
func (c *Customs) wanted(above metav1.Object, application, cluster string) (at identity.Revision, awaits bool) {
	app := caches.Named[*v1alpha1.Application](c.applications.GetIndexer(), above.GetNamespace()+"/"+application)
	if app == nil || app.DeletionTimestamp != nil || !owns(app, above) {
		return identity.Revision{}, false
	}
	var last *v1alpha1.Release
	for _, release := range caches.Indexed[*v1alpha1.Release](c.releases.GetIndexer(), byReleased, above.GetNamespace()+"/"+application) {
		if release.Status.Sequence > 0 && (last == nil || release.Status.Sequence > last.Status.Sequence) {
			last = release
		}
	}
	if last == nil {
		return identity.Revision{}, false
	}
	for _, variant := range last.Status.Variants {
		if variant.Name != v1alpha1.VariantPrimary {
			continue
		}
		for _, of := range variant.Clusters {
			if of.Cluster == cluster {
				return identity.Revision{Name: cmp.Or(of.Revision, variant.Revision), Target: of.Target}, false
			}
		}
	}
	return identity.Revision{}, planned(last, cluster)
}

// planned reports whether a release is to come to a cluster.
func planned(release *v1alpha1.Release, cluster string) bool {
	return release.Status.Plan != nil && slices.ContainsFunc(release.Status.Plan.Targets, func(target v1alpha1.ResolvedTarget) bool {
		return slices.Contains(target.Clusters, cluster)
	})
}

func owns(app *v1alpha1.Application, object metav1.Object) bool {
	for _, ref := range object.GetOwnerReferences() {
		if ref.UID == app.UID {
			return true
		}
	}
	return false
}
