package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// kept is what there is of an application.
type kept struct {
	application *v1alpha1.Application
	releases    []*v1alpha1.Release
	// committed are the times of the commits that revisions come from, by the names of the revisions.
	committed map[string]time.Time
}

// read returns what there is of the applications that are asked for, by namespace and name.
func (o *Options) read(ctx context.Context) ([]kept, error) {
	applications, err := o.applications(ctx)
	if err != nil {
		return nil, err
	}
	var all []kept
	for i := range applications {
		one := kept{application: &applications[i], committed: map[string]time.Time{}}
		if err := o.readOne(ctx, &one); err != nil {
			return nil, fmt.Errorf("application %q in namespace %q: %w", one.application.Name, one.application.Namespace, err)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b kept) int {
		return cmp.Or(cmp.Compare(a.application.Namespace, b.application.Namespace), cmp.Compare(a.application.Name, b.application.Name))
	})
	return all, nil
}

func (o *Options) applications(ctx context.Context) ([]v1alpha1.Application, error) {
	client := o.client.DeliveryV1alpha1()
	if len(o.Names) == 0 {
		namespace := o.Namespace
		if o.AllNamespaces {
			namespace = metav1.NamespaceAll
		}
		list, err := client.Applications(namespace).List(ctx, metav1.ListOptions{LabelSelector: o.Selector})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	var out []v1alpha1.Application
	names := slices.Clone(o.Names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		application, err := client.Applications(o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		out = append(out, *application)
	}
	return out, nil
}

// readOne reads page by page: revisions have manifests, which may be large.
func (o *Options) readOne(ctx context.Context, one *kept) error {
	client, namespace, name := o.client.DeliveryV1alpha1(), one.application.Namespace, one.application.Name
	releases := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Releases(namespace).List(ctx, options)
	})
	err := releases.EachListItem(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelApplication + "=" + name}, func(object runtime.Object) error {
		if release, ok := object.(*v1alpha1.Release); ok && release.Spec.Application == name {
			one.releases = append(one.releases, release)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("releases: %w", err)
	}
	revisions := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.ApplicationRevisions(namespace).List(ctx, options)
	})
	revisions.PageSize, revisions.PageBufferSize = 10, 0
	err = revisions.EachListItem(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelApplication + "=" + name}, func(object runtime.Object) error {
		revision, ok := object.(*v1alpha1.ApplicationRevision)
		if ok && revision.Spec.Application == name && revision.Spec.Origin != nil && revision.Spec.Origin.Time != nil {
			one.committed[revision.Name] = revision.Spec.Origin.Time.Time
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("revisions: %w", err)
	}
	return nil
}
