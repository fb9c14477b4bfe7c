package storage

import (
	"context"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/apis/apps"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// deleting is a storage whose object stays when it is deleted, and what watches of it tell.
type deleting struct {
	workloadStorage
	left    runtime.Object
	changes []watch.Event
	watched bool
}

func (d *deleting) Delete(context.Context, string, rest.ValidateObjectFunc, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return d.left, false, nil
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
		"Manifold does not wait for itself":   {user: v1alpha1.ControllerUser, left: held, patience: time.Hour},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.user == "" {
				tt.user = "alice"
			}
			ctx, _ := as(t, tt.user)
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
