package logical

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/records"
)

func TestADepartedStatefulSetIsKnownForItsLastClaims(t *testing.T) {
	db := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}}
	db.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	client := fake.NewClientset(db)
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(factory, Options{})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	t.Cleanup(factory.Shutdown)

	claim := func(name string) identity.Key {
		return identity.Key{Resource: identity.Claims, Namespace: "shop", Name: name}
	}
	if c.Departing("shop", "db") != nil {
		t.Error("one that lives is departing")
	}
	if w := c.Maker(claim("data-db-0"), "db"); w == nil || w.GetUID() != "db" {
		t.Errorf("its claim is made by %v, want it", w)
	}
	if err := client.AppsV1().StatefulSets("shop").Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return c.Departing("shop", "db") != nil, nil
	})
	if err != nil {
		t.Fatal("it is not known any more once it has gone")
	}
	if w := c.Maker(claim("data-db-0"), "db"); w == nil || w.GetUID() != "db" {
		t.Errorf("its last claim is made by %v, want it", w)
	}
	if w := c.Maker(claim("logs-db-0"), "db"); w != nil {
		t.Errorf("a claim that it has no template for is made by %v", w)
	}
	if c.Departing("bank", "db") != nil {
		t.Error("one of another namespace is known")
	}
	next := db.DeepCopy()
	next.UID = "next"
	if err := c.Stores[identity.StatefulSets].Add(next); err != nil {
		t.Fatal(err)
	}
	if got := c.Departing("shop", "db"); got != nil {
		t.Errorf("%s stands in for its successor", got.UID)
	}
}

func TestADepartedStatefulSetIsKnownAfterARestart(t *testing.T) {
	departure := func(name string, ago time.Duration) *appsv1.ControllerRevision {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		out, err := records.Departure(set)
		if err != nil {
			t.Fatal(err)
		}
		out.CreationTimestamp = metav1.NewTime(time.Now().Add(-ago))
		return out
	}
	forged := departure("forged", 0)
	forged.Namespace = "shop"
	factory := informers.NewSharedInformerFactory(fake.NewClientset(departure("db", time.Second), departure("old", records.DepartedFor), forged), 0)
	c, err := New(factory, Options{})
	if err != nil {
		t.Fatal(err)
	}
	registration, err := factory.Apps().V1().ControllerRevisions().Informer().AddEventHandler(c.Departures())
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	if !cache.WaitForCacheSync(t.Context().Done(), registration.HasSynced) {
		t.Fatal("the caches do not sync")
	}
	for name, known := range map[string]bool{"db": true, "old": false, "forged": false} {
		w := c.Maker(identity.Key{Resource: identity.Claims, Namespace: "shop", Name: "data-" + name + "-0"}, name)
		if (w != nil) != known || known && w.GetUID() != types.UID("uid-of-"+name) {
			t.Errorf("the last claim of %s is made by %v", name, w)
		}
	}
}
