package logs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
)

// world is what outlives controllers: the store, and the cache that shows releases.
type world struct {
	client  *fake.Clientset
	factory externalversions.SharedInformerFactory
	version int
}

func newWorld() *world {
	w := &world{client: fake.NewClientset()}
	w.factory = externalversions.NewSharedInformerFactory(w.client, 0)
	// The fake does not count versions, and so takes what a real store refuses.
	stamp := func(action clienttesting.Action) (bool, runtime.Object, error) {
		part := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.ReleaseLogPart)
		if action.GetVerb() == "update" {
			old, err := w.client.Tracker().Get(action.GetResource(), part.Namespace, part.Name)
			if err != nil {
				return true, nil, err
			}
			if old.(*v1alpha1.ReleaseLogPart).ResourceVersion != part.ResourceVersion {
				return true, nil, apierrors.NewConflict(v1alpha1.Resource("releaselogparts"), part.Name, errors.New("changed"))
			}
		}
		w.version++
		part.ResourceVersion = fmt.Sprint(w.version)
		return false, nil, nil
	}
	w.client.PrependReactor("create", "releaselogparts", stamp)
	w.client.PrependReactor("update", "releaselogparts", stamp)
	return w
}

// controller is one that begins anew.
func (w *world) controller(t *testing.T) *Controller {
	t.Helper()
	c, err := New(Options{Informers: w.factory, Client: w.client, Clock: clocktesting.NewFakePassiveClock(now)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) show(t *testing.T, release *v1alpha1.Release) {
	t.Helper()
	if err := w.factory.Delivery().V1alpha1().Releases().Informer().GetIndexer().Update(release); err != nil {
		t.Fatal(err)
	}
}

// lines are all of the log, in their order.
func (w *world) lines(t *testing.T) (lines []string, parts int) {
	t.Helper()
	list, err := w.client.DeliveryV1alpha1().ReleaseLogParts("web").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range list.Items {
		lines = append(lines, show(part.Spec.Lines)...)
	}
	return lines, len(list.Items)
}

var key = types.NamespacedName{Namespace: "web", Name: "shop-1"}

func TestOneThatBeginsAnewGoesOnWhereTheLastStopped(t *testing.T) {
	w := newWorld()
	w.show(t, release(nil))
	one := w.controller(t)
	for range 2 {
		if err := one.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	w.show(t, release(func(s *v1alpha1.ReleaseStatus) { s.Phase, s.EndTime = v1alpha1.ReleaseSucceeded, at(50) }))
	other := w.controller(t)
	if err := other.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	// The first one, which still runs in another replica, finds that it was written.
	if err := one.sync(t.Context(), key); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if err := one.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	got, parts := w.lines(t)
	if len(got) != len(first)+1 || got[len(got)-1] != "0:50  / release Succeeded" || parts != 1 {
		t.Errorf("%d parts with the lines %q", parts, got)
	}
	if len(one.last)+len(other.last) != 0 {
		t.Errorf("releases that have ended are remembered")
	}
}

func TestALogHasABound(t *testing.T) {
	w := newWorld()
	c := w.controller(t)
	for round := range 40 {
		w.show(t, release(func(s *v1alpha1.ReleaseStatus) {
			for i := range 150 {
				s.Stages[0].Targets = append(s.Stages[0].Targets, v1alpha1.StageTargetStatus{
					Name: "all", Cluster: fmt.Sprintf("cluster-%d", i), Phase: v1alpha1.TargetRunning, Message: fmt.Sprint(round, strings.Repeat("x", 500)),
				})
			}
		}))
		if err := c.sync(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	got, parts := w.lines(t)
	if parts != mostParts {
		t.Errorf("%d parts, want %d", parts, mostParts)
	}
	if !strings.Contains(got[len(got)-1], "Running: 39x") {
		t.Errorf("the last line is %q", got[len(got)-1])
	}
	seen := map[string]bool{}
	for _, line := range got {
		if seen[line] {
			t.Fatalf("twice: %s", line)
		}
		seen[line] = true
	}
}

func TestAReleaseThatIsGoneIsNotWrittenOf(t *testing.T) {
	w := newWorld()
	gone := release(nil)
	gone.DeletionTimestamp = at(0)
	w.show(t, gone)
	c := w.controller(t)
	if err := c.sync(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := c.sync(t.Context(), types.NamespacedName{Namespace: "web", Name: "never"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := w.lines(t); len(got) != 0 {
		t.Errorf("written is %q", got)
	}
}
