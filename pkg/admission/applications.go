package admission

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/delivery/v1alpha1"
	listers "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
)

// Governing are the Applications as GatePlugin knows them, once somebody watches them.
type Governing struct {
	// lister and synced are set before the server serves.
	lister listers.ApplicationLister
	synced cache.InformerSynced
}

var _ Applications = &Governing{}

// Follow has them known by an informer, which the caller starts afterwards.
func (g *Governing) Follow(informer informers.ApplicationInformer) {
	g.lister, g.synced = informer.Lister(), informer.Informer().HasSynced
}

// Known implements Applications.
func (g *Governing) Known() bool { return g.synced != nil && g.synced() }

// In implements Applications.
func (g *Governing) In(namespace string) []*delivery.Application {
	found, _ := g.lister.Applications(namespace).List(labels.Everything()) // listing from a cache cannot fail
	return found
}

const (
	// knownWithin bounds how long who has written an Application waits for the answer, and lookAgain is how often it is looked whether it is known.
	knownWithin = 5 * time.Second
	lookAgain   = 5 * time.Millisecond
)

// Await returns once they have an Application as it was written: what is written next, which it may select, is held then.
func (g *Governing) Await(written runtime.Object) {
	app, is := written.(*delivery.Application)
	if !is || app.Spec.Source.Selector == nil || g.lister == nil {
		return
	}
	// An error says that the time is over.
	_ = wait.PollUntilContextTimeout(context.Background(), lookAgain, knownWithin, true, func(context.Context) (bool, error) {
		seen, err := g.lister.Applications(app.Namespace).Get(app.Name)
		return err == nil && seen.UID == app.UID && seen.Generation >= app.Generation, nil
	})
}
