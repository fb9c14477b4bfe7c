package syncer

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/syncer/classes"
	"github.com/manifold-dev/manifold/pkg/syncer/states"
	"github.com/manifold-dev/manifold/pkg/syncer/steps"
)

func important(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "high" }

// addClass makes an API have a PriorityClass.
func addClass(t *testing.T, c classes.Set, name string) {
	t.Helper()
	if err := c[identity.Priorities].GetStore().Add(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func TestAWorkloadWaitsForTheClassOfItsPods(t *testing.T) {
	web := deployment("web", toEast, important)
	u := newUpstream(t, web, namespace("shop"))
	s := attach(t, u, "east", namespace("shop"))
	addClass(t, u.classes, "high")
	if err := s.sync(t.Context(), identity.KeyOf(deployments, web)); err != nil {
		t.Fatal(err)
	}
	const problem = `it has no PriorityClass "high", without which it makes no pod of this: create it there, or name another one`
	if got := s.states.Of(identity.KeyOf(deployments, web)).Problem; got != problem {
		t.Errorf("problem %q, want %q", got, problem)
	}
	if got, want := <-s.events.Events, `Warning ClassMissing cluster "east": `+problem; got != want {
		t.Errorf("event %q, want %q", got, want)
	}
	addClass(t, s.below.classes, "high")
	s.classes.Handler().OnAdd(nil, false)
	if got := s.enqueued(); !slices.Equal(got, []string{"deployments shop/web"}) {
		t.Errorf("%v are looked at once the class is there, want the Deployment", got)
	}
}

// A class that no cluster has, and by which claims and volumes made by hand find each other, is nothing that a cluster lacks which takes such volumes.
func TestAClassOfVolumesMadeByHandIsMissedWhereTheyDoNotGo(t *testing.T) {
	const class = "manual"
	for name, test := range map[string]struct {
		allows bool
		want   string
	}{
		"a cluster that takes them":         {allows: true},
		"a cluster that takes none of them": {want: `Warning ClassMissing cluster "east": it has no StorageClass "manual", so no volume is made there for this: install what serves it, or name another one`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta("data")}
			claim.Spec.StorageClassName = new(class)
			web := deployment("web", toEast, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			})
			u := newUpstream(t, web, claim, namespace("shop"))
			must(t, u.classes[storagev1.SchemeGroupVersion.WithResource("storageclasses")].GetStore().Add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}}))
			must(t, u.Volumes.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: class}}))
			s := attach(t, u, "east", namespace("shop"))
			s.Allows = func(string) v1alpha1.ClusterAllows { return v1alpha1.ClusterAllows{Volumes: test.allows} }
			kind, _ := projection.KindOf(claim)
			sent, err := kind.Project(claim, projection.Part{}, s.target)
			must(t, err)
			must(t, s.below.Stores[claimResource].Add(sent))
			must(t, s.sync(t.Context(), identity.KeyOf(kind, claim)))
			if !s.states.Of(identity.KeyOf(kind, claim)).Holds(claim.UID) {
				t.Fatal("the cluster does not have the claim")
			}
			got := ""
			select {
			case got = <-s.events.Events:
			default:
			}
			if got != test.want {
				t.Errorf("event %q, want %q", got, test.want)
			}
		})
	}
}

func TestAProblemThatHasPassedIsToldOnTheWorkloads(t *testing.T) {
	web := deployment("web", toEast, usingSecret("key"))
	u := newUpstream(t, web, secret("key"))
	s := attach(t, u, "east")
	kind, _ := projection.KindOf(secret("key"))
	key := identity.KeyOf(kind, secret("key"))
	s.fail(key, secret("key"), steps.ReasonNotApplied, "no room")
	s.changes = nil
	s.done(key, kind, states.State{Hash: "1"})
	s.done(key, kind, states.State{Hash: "2"})
	if want := []change{{identity.KeyOf(deployments, web), false}}; !slices.Equal(s.changes, want) {
		t.Errorf("told of %+v, want %+v", s.changes, want)
	}
}
