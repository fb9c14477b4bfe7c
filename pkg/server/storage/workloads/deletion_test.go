package workloads

import (
	"cmp"
	"context"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// deleting is a storage whose object stays when it is deleted, and what watches of it tell.
type deleting struct {
	workloadStorage
	left    runtime.Object
	list    []*apps.Deployment
	changes []watch.Event
	watched bool
}

func (d *deleting) Delete(context.Context, string, rest.ValidateObjectFunc, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return d.left, false, nil
}

func (d *deleting) DeleteCollection(context.Context, rest.ValidateObjectFunc, *metav1.DeleteOptions, *metainternalversion.ListOptions,
) (runtime.Object, error) {
	return &apps.DeploymentList{}, nil
}

func (d *deleting) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &apps.DeploymentList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, item := range d.list {
		list.Items = append(list.Items, *item)
	}
	return list, nil
}

func (d *deleting) Watch(_ context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	d.watched = true
	if got, want := options.FieldSelector.String()+" from "+options.ResourceVersion, "metadata.name=web from 7"; got != want {
		panic("watches " + got + ", want " + want)
	}
	w := watch.NewFakeWithChanSize(len(d.changes), false)
	for _, e := range d.changes {
		w.Action(e.Type, e.Object)
	}
	return w, nil
}

func leaving(uid string, finalizers ...string) *apps.Deployment {
	d := deployment(3)
	d.UID, d.ResourceVersion, d.Finalizers = "1", "7", finalizers
	if uid != "" {
		d.UID = "2"
	}
	return d
}

func TestDeleteReturnsOnceTheWorkloadIsGone(t *testing.T) {
	held := leaving("", v1alpha1.FinalizerProjection)
	tests := map[string]struct {
		user    string
		left    *apps.Deployment
		options metav1.DeleteOptions
		changes []watch.Event
		// patience is so long that a case that waits for nothing would not end.
		patience time.Duration
		wantGone bool
		// wantWait is that a watch was opened.
		wantWait bool
	}{
		"what our finalizer alone holds is waited for": {
			left: held, patience: time.Hour, wantGone: true, wantWait: true,
			changes: []watch.Event{{Type: watch.Modified, Object: held}, {Type: watch.Deleted, Object: held}},
		},
		"another object of the name that goes is not it": {
			left: held, patience: time.Millisecond, wantWait: true,
			changes: []watch.Event{{Type: watch.Deleted, Object: leaving("other")}},
		},
		"a cluster that does not answer is not waited for long": {left: held, patience: time.Millisecond, wantWait: true},
		"what others hold too is not waited for": {
			left: leaving("", v1alpha1.FinalizerProjection, metav1.FinalizerDeleteDependents), patience: time.Hour,
		},
		"a dry run deletes nothing": {
			left: held, options: metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, patience: time.Hour,
		},
		"the garbage collector does not wait": {user: user.APIServerUser, left: held, patience: time.Hour},
		"Manifold does not wait for itself":   {user: v1alpha1.SummaryUser, left: held, patience: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.user == "" {
				tt.user = "alice"
			}
			ctx, _ := storagetest.As(t, tt.user)
			inner := &deleting{left: tt.left, changes: tt.changes}
			obj, gone, err := (&awaitedDeletion{inner, tt.patience}).Delete(ctx, "web", nil, &tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if gone != tt.wantGone || inner.watched != tt.wantWait {
				t.Errorf("gone is %t and it waited: %t, want %t and %t", gone, inner.watched, tt.wantGone, tt.wantWait)
			}
			status, ok := obj.(*metav1.Status)
			if ok != tt.wantGone {
				t.Fatalf("the answer is a %T, want a Status when it is gone and the object otherwise", obj)
			}
			if ok && (status.Status != metav1.StatusSuccess || status.Details.Name != "web" || status.Details.UID != "1") {
				t.Errorf("the answer is %+v, want the success of deleting web with its UID", status)
			}
		})
	}
}

func TestDeleteOfACollectionReturnsOnceAllAreGone(t *testing.T) {
	going := func(uid types.UID, finalizers ...string) *apps.Deployment {
		d := leaving("", finalizers...)
		d.UID, d.DeletionTimestamp = uid, &metav1.Time{}
		return d
	}
	first, second := going("1", v1alpha1.FinalizerProjection), going("2", v1alpha1.FinalizerProjection)
	tests := map[string]struct {
		user    string
		list    []*apps.Deployment
		changes []watch.Event
		// patience is an hour where waiting longer than for what happens would not end.
		patience time.Duration
		wantWait bool
	}{
		"each is waited for": {
			list: []*apps.Deployment{first, second}, patience: time.Hour, wantWait: true,
			changes: []watch.Event{{Type: watch.Deleted, Object: second}, {Type: watch.Deleted, Object: first}},
		},
		"a cluster that does not answer is not waited for long": {
			list: []*apps.Deployment{first, second}, patience: time.Millisecond, wantWait: true,
			changes: []watch.Event{{Type: watch.Deleted, Object: second}},
		},
		"what others hold too is not waited for":      {list: []*apps.Deployment{going("1", v1alpha1.FinalizerProjection, "x/y")}, patience: time.Hour},
		"what is not deleted is not waited for":       {list: []*apps.Deployment{leaving("", v1alpha1.FinalizerProjection)}, patience: time.Hour},
		"where nothing is left nothing is waited for": {patience: time.Hour},
		"the controller of namespaces waits as well": {
			user: user.APIServerUser, list: []*apps.Deployment{first, second}, wantWait: true,
			changes: []watch.Event{{Type: watch.Deleted, Object: second}, {Type: watch.Deleted, Object: first}},
		},
		"but not for what does not go": {
			user: user.APIServerUser, list: []*apps.Deployment{first, second}, patience: time.Hour, wantWait: true,
			changes: []watch.Event{{Type: watch.Deleted, Object: second}},
		},
		"Manifold does not wait for itself": {user: v1alpha1.SummaryUser, list: []*apps.Deployment{first}, patience: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, cmp.Or(tt.user, "alice"))
			inner := &deleting{list: tt.list, changes: tt.changes}
			which := &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "web"), Limit: 1}
			if _, err := (&awaitedDeletion{inner, tt.patience}).DeleteCollection(ctx, nil, &metav1.DeleteOptions{}, which); err != nil {
				t.Fatal(err)
			}
			if inner.watched != tt.wantWait {
				t.Errorf("it waited: %t, want %t", inner.watched, tt.wantWait)
			}
		})
	}
}
