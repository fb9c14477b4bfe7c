package views

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	serveridentity "github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// plain is what somebody makes of an object at the logical cluster itself. What clusters hold of it by their views is none of his: he is refused, or takes the
// object back by a pin of his own.
type plain struct {
	rest.UpdatedObjectInfo
	looker looker
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (p plain) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	obj, err := p.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil || obj == nil || serveridentity.WritesMirrors(ctx) {
		return obj, err
	}
	is, was := obj.(metav1.Object), old.(metav1.Object)
	if was.GetUID() == "" {
		return obj, nil // it is made by this, and starts without
	}
	metadata.KeepAnnotations(ctx, obj, old, metadata.ViewAnnotations)
	viewed := identity.Viewed(was)
	if !viewed && (!p.looker.kind.Workload || len(identity.MadeThrough(was)) == 0) {
		return obj, nil
	}
	if !samePin(is, was) {
		for _, key := range metadata.ViewAnnotations {
			metadata.SetAnnotation(is, key, "")
		}
		if viewed {
			warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is not held any more as it was written through the views of clusters: they all are to hold what it says here",
				p.looker.kind.GVK.Kind, was.GetName()))
		}
		return obj, nil
	}
	if who, _ := request.UserFrom(ctx); !viewed || serveridentity.IsController(who) && !serveridentity.Delivers(who) {
		return obj, nil // a controller of ours notes something on it
	}
	return obj, p.refuse(old, obj)
}

// refuse returns why the content of an object is not changed that clusters hold by their views, nil if it is not changed.
func (p plain) refuse(old, obj runtime.Object) error {
	l := p.looker
	before, err := l.versioned(old)
	if err != nil {
		return err
	}
	after, err := l.versioned(obj)
	if err != nil || l.same(before, after) {
		return err
	}
	return apierrors.NewForbidden(l.kind.Resource.GroupResource(), before.GetName(), l.byViews(before))
}

// byViews says of an object that it is written through views.
func (l looker) byViews(above projection.Object) error {
	var names, paths []string
	for _, cluster := range identity.ViewsOf(above).Clusters() {
		names, paths = append(names, cluster), append(paths, v1alpha1.ViewPath(cluster))
	}
	return fmt.Errorf("clusters %s hold it each as it was written through its own view: write it there, by the same address with %s. To have them all hold what "+
		"is written here, change the annotation %s with it", strings.Join(names, ", "), strings.Join(paths, " or "), v1alpha1.AnnotationClusters)
}

// samePin reports whether two versions of an object are pinned to the same clusters.
func samePin(a, b metav1.Object) bool {
	one, other := a.GetAnnotations()[v1alpha1.AnnotationClusters], b.GetAnnotations()[v1alpha1.AnnotationClusters]
	if one == other {
		return true
	}
	first, err := v1alpha1.ParsePin(one)
	if err != nil {
		return false
	}
	second, err := v1alpha1.ParsePin(other)
	return err == nil && first.All == second.All && slices.Equal(first.Names, second.Names)
}
