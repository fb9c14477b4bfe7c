package syncer

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/planning"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

// class is a PriorityClass of the logical cluster, or of a cluster by somebody else.
func class(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-high"}, Value: value}
}

// came is one that has come along.
func came(t *testing.T, name string, value int32) *schedulingv1.PriorityClass {
	t.Helper()
	out, err := projection.BroughtPriorityClass(class(name, value), projection.Target{LogicalCluster: logicalCluster, Cluster: "east"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPriorityClassComesAlong(t *testing.T) {
	named := func(name string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = name }
	}
	for name, test := range map[string]struct {
		class        string // "high" unless given
		above, below *schedulingv1.PriorityClass
		upTo         *int32
		unnamed      bool
		leaving      string // the manner in which the cluster is removed
		goes         bool
		want         string // what is done, "" for nothing
	}{
		"a class that a workload names is made":             {above: class("high", 7), upTo: ptr.To[int32](7), want: "create"},
		"not above the bound":                               {above: class("high", 8), upTo: ptr.To[int32](7)},
		"not where nobody has allowed it":                   {above: class("high", 7)},
		"not where nothing names it":                        {above: class("high", 7), upTo: ptr.To[int32](7), unnamed: true},
		"not over one of somebody else's":                   {above: class("high", 7), below: class("high", 3), upTo: ptr.To[int32](7)},
		"not one of Kubernetes itself":                      {class: "system-high", above: class("system-high", 7), upTo: ptr.To[int32](7)},
		"what is there stays":                               {above: class("high", 7), below: came(t, "high", 7), upTo: ptr.To[int32](7)},
		"what has another value makes room for that":        {above: class("high", 6), below: came(t, "high", 7), upTo: ptr.To[int32](7), want: "delete"},
		"what nothing names any more goes":                  {above: class("high", 7), below: came(t, "high", 7), upTo: ptr.To[int32](7), unnamed: true, want: "delete"},
		"what is gone above goes":                           {below: came(t, "high", 7), upTo: ptr.To[int32](7), want: "delete"},
		"what is not allowed any more goes":                 {above: class("high", 7), below: came(t, "high", 7), want: "delete"},
		"with the cluster it goes":                          {above: class("high", 7), below: came(t, "high", 7), upTo: ptr.To[int32](7), goes: true, want: "delete"},
		"with a cluster that is left as it is it is let go": {above: class("high", 7), below: came(t, "high", 7), upTo: ptr.To[int32](7), goes: true, leaving: v1alpha1.RemoveOrphan, want: "patch"},
	} {
		t.Run(name, func(t *testing.T) {
			key := classes.PriorityKey("high")
			if test.class != "" {
				key.Name = test.class
			}
			name := key.Name
			if test.unnamed {
				name = "other"
			}
			u := newUpstream(t, deployment("web", toEast, named(name)), namespace("shop"))
			s := attach(t, u, "east")
			s.Allows = func(string) v1alpha1.ClusterAllows { return v1alpha1.ClusterAllows{PriorityClassesUpTo: test.upTo} }
			s.Leaving = func(string) (bool, string) { return test.goes, test.leaving }
			client := s.client.(*fake.Clientset)
			if test.above != nil {
				must(t, u.classes[identity.Priorities].GetStore().Add(test.above))
			}
			if test.below != nil {
				must(t, s.below.classes[identity.Priorities].GetStore().Add(test.below))
				must(t, client.Tracker().Add(test.below.DeepCopy()))
			}
			must(t, s.sync(t.Context(), key))
			var done []string
			for _, action := range client.Actions() {
				done = append(done, action.GetVerb())
				if create, ok := action.(clienttesting.CreateAction); ok {
					if got := create.GetObject().(*schedulingv1.PriorityClass); got.Value != 7 || got.Labels[v1alpha1.LabelLogicalCluster] != logicalCluster {
						t.Errorf("made %+v", got)
					}
				}
			}
			if got := strings.Join(done, ","); got != test.want {
				t.Errorf("did %q, want %q", got, test.want)
			}
		})
	}
}

func TestAWorkloadWaitsForAClassThatComesAlong(t *testing.T) {
	web := deployment("web", toEast, important)
	u := newUpstream(t, web, namespace("shop"))
	s := attach(t, u, "east", namespace("shop"))
	s.Allows = func(string) v1alpha1.ClusterAllows {
		return v1alpha1.ClusterAllows{PriorityClassesUpTo: ptr.To[int32](7)}
	}
	must(t, u.classes[identity.Priorities].GetStore().Add(class("high", 7)))
	key := identity.KeyOf(deployments, web)
	must(t, s.sync(t.Context(), key))
	if st := s.states.Of(key); st.Problem != "" || st.Hash != "" {
		t.Errorf("it does not just wait: %+v", st)
	}
	// The cluster does not let it in.
	client := s.client.(*fake.Clientset)
	client.PrependReactor("create", "priorityclasses", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), "high", errors.New("not here"))
	})
	must(t, s.sync(t.Context(), classes.PriorityKey("high")))
	must(t, s.sync(t.Context(), key))
	if got := s.states.Of(key).Problem; !strings.Contains(got, "PriorityClass high cannot come along: ") || !strings.Contains(got, "not here") {
		t.Errorf("problem %q", got)
	}
	// It is there by now.
	must(t, s.below.classes[identity.Priorities].GetStore().Add(came(t, "high", 7)))
	must(t, s.sync(t.Context(), classes.PriorityKey("high")))
	kind, _ := projection.ForResource(key.Resource)
	if problem := s.states.Of(classes.PriorityKey("high")).Problem; problem != "" || len(s.classes.Missing(kind, web)) > 0 {
		t.Errorf("it still waits: %q", problem)
	}
}

// The namespace of a workload may take a while to be made, and its class is on its way meanwhile: that it has come is told before anybody waits.
func TestAClassThatComesWhileANamespaceIsMadeIsNotWaitedFor(t *testing.T) {
	web := deployment("web", toEast, important)
	u := newUpstream(t, web, namespace("shop"))
	s := attach(t, u, "east")
	s.Allows = func(string) v1alpha1.ClusterAllows {
		return v1alpha1.ClusterAllows{PriorityClassesUpTo: ptr.To[int32](7)}
	}
	must(t, u.classes[identity.Priorities].GetStore().Add(class("high", 7)))
	key := identity.KeyOf(deployments, web)
	l := planning.Look{Key: key, Kind: deployments, Above: web}
	p := s.planner.Plan(l)
	must(t, s.below.classes[identity.Priorities].GetStore().Add(came(t, "high", 7)))
	if there, err := s.meet(t.Context(), l, p, steps.NeedClasses); !there || err != nil {
		t.Errorf("it waits for a class that is there: %t, %v", there, err)
	}
}
