package pods

import (
	"context"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/pkg/server/storage/storagetest"
)

// changing are the changes of an object, for who watches it alone.
type changing []watch.Event

func (c changing) Watch(_ context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	if got, want := options.FieldSelector.String()+" from "+options.ResourceVersion, "metadata.name=web from 7"; got != want {
		panic("watches " + got + ", want " + want)
	}
	w := watch.NewFakeWithChanSize(len(c), false)
	for _, e := range c {
		w.Action(e.Type, e.Object)
	}
	return w, nil
}

func TestDeletedPodIsToldAsItsMirrorIs(t *testing.T) {
	pod := func(uid types.UID, version string, deleted bool) *api.Pod {
		p := &api.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid, ResourceVersion: version}}
		if deleted {
			p.DeletionTimestamp = &metav1.Time{}
		}
		return p
	}
	tests := map[string]struct {
		changes []watch.Event
		// patience is an hour where waiting longer than for what happens would not end.
		patience time.Duration
		want     string // the version of the answer
		wantGone bool
	}{
		"it is waited for until it is told to be going": {
			changes: []watch.Event{
				{Type: watch.Modified, Object: pod("1", "8", false)}, {Type: watch.Modified, Object: pod("1", "9", true)},
				{Type: watch.Deleted, Object: pod("1", "10", true)},
			},
			patience: time.Hour, want: "9",
		},
		"it may be gone at once": {
			changes: []watch.Event{{Type: watch.Deleted, Object: pod("1", "8", false)}}, patience: time.Hour, want: "8", wantGone: true,
		},
		"the next pod of the name is another": {
			changes:  []watch.Event{{Type: watch.Modified, Object: pod("2", "8", true)}, {Type: watch.Deleted, Object: pod("1", "9", true)}},
			patience: time.Hour, want: "9", wantGone: true,
		},
		"a mirror that tells nothing is not waited for long": {patience: time.Millisecond, want: "7"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, _ := storagetest.As(t, "alice")
			got, gone := awaitTold(ctx, changing(tt.changes), pod("1", "7", false), tt.patience)
			if got.ResourceVersion != tt.want || gone != tt.wantGone {
				t.Errorf("awaitTold() = version %s, gone: %t, want %s and %t", got.ResourceVersion, gone, tt.want, tt.wantGone)
			}
		})
	}
}
