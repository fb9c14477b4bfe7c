package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/generated/clientset/versioned/fake"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
)

// Who has written an Application is answered once it is known, so that what he writes next is held.
func TestAnApplicationIsKnownBeforeItsWriterIsAnswered(t *testing.T) {
	made := func(uid types.UID, generation int64, selects bool) *delivery.Application {
		out := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid, Generation: generation}}
		if selects {
			out.Spec.Source.Selector = &delivery.ObjectSelector{}
		}
		return out
	}
	for name, test := range map[string]struct {
		// before is known when it is written, and written is what the answer waits for.
		before, written *delivery.Application
		waits           bool
	}{
		"one that is new":                           {written: made("one", 1, true), waits: true},
		"one that has changed":                      {before: made("one", 1, true), written: made("one", 2, true), waits: true},
		"one that is known already":                 {before: made("one", 2, true), written: made("one", 2, true)},
		"a newer one was written meanwhile":         {before: made("one", 3, true), written: made("one", 2, true)},
		"one in place of another":                   {before: made("another", 7, true), written: made("one", 1, true), waits: true},
		"nobody waits for one that selects nothing": {written: made("one", 1, false)},
	} {
		t.Run(name, func(t *testing.T) {
			informer := externalversions.NewSharedInformerFactory(fake.NewClientset(), 0).Delivery().V1alpha1().Applications()
			g := &Governing{}
			if g.Await(test.written); g.Known() {
				t.Error("without an informer all are known")
			}
			g.Follow(informer)
			if test.before != nil {
				if err := informer.Informer().GetIndexer().Add(test.before); err != nil {
					t.Fatal(err)
				}
			}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				g.Await(test.written)
			}()
			if test.waits {
				select {
				case <-answered:
					t.Error("it is answered before the Application is known")
				default:
				}
				if err := informer.Informer().GetIndexer().Add(test.written); err != nil {
					t.Fatal(err)
				}
			}
			<-answered
			if known := g.In("shop"); test.waits && (len(known) != 1 || known[0] != test.written) {
				t.Errorf("known are %v", known)
			}
		})
	}
}
