package simulate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/generated/clientset/versioned"
	"github.com/manifold-dev/manifold/generated/informers/externalversions"
	"github.com/manifold-dev/manifold/pkg/placement/engine"
)

// ask runs a question to an engine that knows the world.
func (w *world) ask(ctx context.Context, now time.Time, question func(*engine.Engine) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kube := informers.NewSharedInformerFactory(nil, 0)
	manifold := externalversions.NewSharedInformerFactory(nil, 0)
	for _, k := range kinds() {
		var objects still
		for _, o := range w.objects[k.GroupKind()] {
			objects = append(objects, o)
		}
		informer := cache.NewSharedIndexInformer(objects, k.new(), 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		if k.own {
			manifold.InformerFor(k.new(), func(versioned.Interface, time.Duration) cache.SharedIndexInformer { return informer })
		} else {
			kube.InformerFor(k.new(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return informer })
		}
	}
	options := w.settings
	options.Kube, options.Manifold, options.Requested, options.Clock = kube, manifold, reported, stopped(now)
	e, err := engine.New(options)
	if err != nil {
		return err
	}
	kube.Start(ctx.Done())
	manifold.Start(ctx.Done())
	defer manifold.Shutdown()
	defer kube.Shutdown()
	defer cancel() // Before the shutdowns, which wait for what this ends.
	synced := func(context.Context) (bool, error) { return e.HasSynced(), nil }
	if err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, synced); err != nil {
		return fmt.Errorf("read what decisions depend on: %w", err)
	}
	return question(e)
}

// reported knows nothing newer about a cluster's requests than its status.
func reported(string) (corev1.ResourceList, bool) { return nil, false }

// still are objects that do not change, as an informer lists and watches them.
type still []runtime.Object

// List implements cache.ListerWatcher.
func (s still) List(metav1.ListOptions) (runtime.Object, error) {
	out := &metav1.List{}
	for _, o := range s {
		out.Items = append(out.Items, runtime.RawExtension{Object: o})
	}
	return out, nil
}

// Watch implements cache.ListerWatcher.
func (s still) Watch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

// IsWatchListSemanticsUnSupported tells informers to list first.
func (s still) IsWatchListSemanticsUnSupported() bool { return true }

// stopped is a clock that stands still: a simulation takes no time.
type stopped time.Time

// Now implements clock.PassiveClock.
func (s stopped) Now() time.Time { return time.Time(s) }

// Since implements clock.PassiveClock.
func (s stopped) Since(t time.Time) time.Duration { return time.Time(s).Sub(t) }
