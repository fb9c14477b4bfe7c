package releases

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/contents"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/identity"
)

// revisions are what releases release.
type revisions struct {
	deliverylisters.ApplicationRevisionLister
	contents *contents.Reader
	// client is asked about what the lister may be about to show.
	client versioned.Interface
}

// contentsIn returns the rendered objects of parts in a namespace. Another revision of the same name is not the one that was released.
func (r revisions) contentsIn(namespace string) wanted.Contents {
	return func(part delivery.Part) ([]*unstructured.Unstructured, error) {
		found, err := r.contents.Objects(namespace, part.Revision.Name, part.Target)
		if err != nil {
			return nil, err
		}
		if revision, err := r.ApplicationRevisions(namespace).Get(part.Revision.Name); err != nil || revision.Spec.Hash != part.Revision.Hash {
			return nil, fmt.Errorf("ApplicationRevision %s/%s is not the one that was released: it has been deleted and made anew", namespace, part.Revision.Name)
		}
		return found, nil
	}
}

// holdsIn returns what revisions in a namespace have of objects.
func (r revisions) holdsIn(namespace string) objects.Holds {
	return func(key wanted.Key, of identity.Revision) (*unstructured.Unstructured, error) {
		found, err := r.contents.Find(namespace, of.Name, of.Target, schema.GroupKind{Group: key.Group, Kind: key.Kind}, key.Name)
		return found.Object, err
	}
}

// targetsIn returns the names of the targets that revisions in a namespace have manifests for.
func (r revisions) targetsIn(namespace string) func(delivery.Revision) []string {
	return func(of delivery.Revision) []string {
		revision, err := r.ApplicationRevisions(namespace).Get(of.Name)
		if err != nil {
			return nil // whoever reads its manifests says why there are none
		}
		var out []string
		for i := range revision.Spec.Targets {
			out = append(out, revision.Spec.Targets[i].Name)
		}
		return out
	}
}

// hashIn returns the hashes of what revisions in a namespace have for targets, "" if that is not known.
func (r revisions) hashIn(namespace string) func(delivery.Part) string {
	return func(part delivery.Part) string {
		revision, err := r.ApplicationRevisions(namespace).Get(part.Revision.Name)
		if err != nil {
			return ""
		}
		for _, target := range revision.Spec.Targets {
			if target.Name == part.Target {
				return target.Hash
			}
		}
		return ""
	}
}

// rendered are the objects of a revision, by target.
func (r revisions) rendered(revision *v1alpha1.ApplicationRevision) (map[string][]*unstructured.Unstructured, error) {
	out := map[string][]*unstructured.Unstructured{}
	for _, target := range revision.Spec.Targets {
		found, err := r.contents.Objects(revision.Namespace, revision.Name, target.Name)
		if errors.Is(err, contents.ErrMissing) {
			return nil, waitError{err.Error()}
		}
		if err != nil {
			return nil, err
		}
		out[target.Name] = found
	}
	return out, nil
}

// of is what a release releases. Of one that is gone the name is known, and what clusters were told of it.
func (r revisions) of(release *v1alpha1.Release) *v1alpha1.ApplicationRevision {
	if found, err := r.ApplicationRevisions(release.Namespace).Get(release.Spec.Revision); err == nil {
		return found
	}
	gone := &v1alpha1.ApplicationRevision{}
	gone.Name = release.Spec.Revision
	for _, variant := range release.Status.Variants {
		for _, cluster := range variant.Clusters {
			if cluster.Revision == gone.Name {
				gone.Spec.Hash = cluster.Hash
			}
		}
	}
	return gone
}

// before is the revision that ran when a release began, nil if there was none.
func (r revisions) before(release *v1alpha1.Release) (*v1alpha1.ApplicationRevision, error) {
	if release.Status.BeforeRevision == "" {
		return nil, nil
	}
	revision, err := r.ApplicationRevisions(release.Namespace).Get(release.Status.BeforeRevision)
	if apierrors.IsNotFound(err) {
		return nil, nil // a plugin does as if there had been none
	}
	return revision, err
}
