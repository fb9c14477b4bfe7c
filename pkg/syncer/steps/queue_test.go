package steps

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/manifold-dev/manifold/pkg/clusters/connection"
	"github.com/manifold-dev/manifold/pkg/syncer/writer"
)

func TestParking(t *testing.T) {
	refused := &url.Error{Op: "Post", URL: "https://east", Err: syscall.ECONNREFUSED}
	for _, test := range []struct {
		name   string
		silent bool
		err    error
		want   bool
	}{
		{name: "a step that has not reached a silent cluster waits until that answers", silent: true, err: fmt.Errorf("create: %w", refused), want: true},
		{name: "so does one whose answer has not come in time", silent: true, err: context.DeadlineExceeded, want: true},
		{name: "one that has succeeded does not", silent: true},
		{name: "one that the cluster has refused is tried again in time", silent: true, err: apierrors.NewInternalError(errors.New("no leader"))},
		{name: "one that waits for something else is tried again in time", silent: true, err: writer.ErrNotYet},
		{name: "one that fails in a cluster that answers is tried again in time", err: refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers := connection.NewAnswers()
			answers.Note(!test.silent)
			if got := NewQueue[string]("down-east", answers).park("web", test.err); got != test.want {
				t.Errorf("parked: %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhatIsParkedIsTriedWhenTheClusterAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answers := connection.NewAnswers()
		q := NewQueue[string]("down-east", answers)
		defer q.ShutDown()
		enqueued := func() (out []string) {
			for q.Len() > 0 {
				key, _ := q.Get()
				out = append(out, key)
				q.Done(key)
			}
			slices.Sort(out)
			return out
		}
		go q.listen(ctx)
		synctest.Wait()
		answers.Note(false)
		for _, name := range []string{"web", "api", "web"} {
			q.park(name, context.DeadlineExceeded)
		}
		synctest.Wait()
		if got := enqueued(); len(got) > 0 {
			t.Errorf("%v are tried while the cluster is silent", got)
		}
		answers.Note(true)
		synctest.Wait()
		if got, want := enqueued(), []string{"api", "web"}; !slices.Equal(got, want) {
			t.Errorf("%v are tried when it answers, want %v", got, want)
		}
	})
}
