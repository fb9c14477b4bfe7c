package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/records"
)

// departing is a StatefulSet with claims that is being deleted, and that nobody holds but us.
func departing(claims ...string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "db", UID: "uid-of-db", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: now},
		Finalizers: []string{v1alpha1.FinalizerProjection},
	}}
	for _, name := range claims {
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return set
}

func TestAStatefulSetThatGoesIsKnownForItsLastClaims(t *testing.T) {
	namespace := func(deleted bool) *corev1.Namespace {
		out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		if deleted {
			out.DeletionTimestamp, out.Finalizers = &metav1.Time{Time: now}, []string{"kubernetes"}
		}
		return out
	}
	refused := func(err error) func(*harness) {
		return func(h *harness) {
			h.kube.PrependReactor("create", "controllerrevisions", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	for name, test := range map[string]struct {
		set     *appsv1.StatefulSet
		also    runtime.Object
		before  func(*harness)
		want    []string
		wantErr bool
	}{
		"one with claims is noted before it goes": {
			set: departing("data"), also: namespace(false), want: []string{"create controllerrevisions", "patch statefulsets"},
		},
		"one without has none to come": {set: departing(), also: namespace(false), want: []string{"patch statefulsets"}},
		"in a namespace that goes, claims go as well": {
			set: departing("data"), also: namespace(true), want: []string{"patch statefulsets"},
		},
		"one that was noted goes": {
			set: departing("data"), also: namespace(false),
			before: refused(apierrors.NewAlreadyExists(appsv1.Resource("controllerrevisions"), "x")), want: []string{"create controllerrevisions", "patch statefulsets"},
		},
		"nothing is held up by a namespace of the system that is gone": {
			set: departing("data"), also: namespace(false),
			before: refused(apierrors.NewNotFound(corev1.Resource("namespaces"), v1alpha1.SystemNamespace)), want: []string{"create controllerrevisions", "patch statefulsets"},
		},
		"one that cannot be noted is tried again": {
			set: departing("data"), also: namespace(false),
			before: refused(apierrors.NewInternalError(context.DeadlineExceeded)), want: []string{"create controllerrevisions"}, wantErr: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, test.set, test.also)
			if test.before != nil {
				test.before(h)
			}
			err := h.sync(t.Context(), task{Key: identity.Key{Resource: identity.StatefulSets, Namespace: "shop", Name: "db"}})
			if (err != nil) != test.wantErr {
				t.Fatal(err)
			}
			if got := h.writes(); !slices.Equal(got, test.want) {
				t.Errorf("wrote %q, want %q", got, test.want)
			}
		})
	}
}

func TestAStatefulSetThatHasGoneIsForgottenAfterAWhile(t *testing.T) {
	departure, err := records.Departure(departing("data"))
	if err != nil {
		t.Fatal(err)
	}
	departure.CreationTimestamp.Time = now
	history := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "history"}}
	h := start(t, departure, history)
	look := func() []string {
		for _, revision := range []*appsv1.ControllerRevision{departure, history} {
			if err := h.sync(t.Context(), task{Key: identity.Key{Resource: revisionResource, Namespace: revision.Namespace, Name: revision.Name}}); err != nil {
				t.Fatal(err)
			}
		}
		return h.writes()
	}
	if got := look(); len(got) > 0 {
		t.Errorf("at once, wrote %q", got)
	}
	h.Clock.(*testingclock.FakePassiveClock).SetTime(now.Add(records.DepartedFor - time.Second))
	if got := look(); len(got) > 0 {
		t.Errorf("a second before the end, wrote %q", got)
	}
	h.Clock.(*testingclock.FakePassiveClock).SetTime(now.Add(records.DepartedFor))
	if got, want := look(), []string{"delete controllerrevisions"}; !slices.Equal(got, want) {
		t.Errorf("wrote %q, want %q", got, want)
	}
	if left, err := h.kube.AppsV1().ControllerRevisions("").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 1 || left.Items[0].Name != "history" {
		t.Errorf("left are %v, %v", left, err)
	}
}
