package pushes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	deliverylisters "github.com/manifold-dev/manifold/generated/listers/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
	workers    = 2
	// pause is how long an application is left alone after a push was announced to it. What comes meanwhile is announced once, at its end.
	pause = 5 * time.Second
	// mostPaused bounds how many applications are remembered for that, the last ones.
	mostPaused = 4096
)

// Options say what an Announcer works with.
type Options struct {
	Applications deliverylisters.ApplicationLister
	Secrets      corelisters.SecretLister
	// Synced report whether the caches of both are filled.
	Synced []cache.InformerSynced
	// Client annotates applications.
	Client   deliveryclient.ApplicationsGetter
	Recorder record.EventRecorder
	Queues   work.Names
	Clock    clock.PassiveClock
}

// Announcer has applications look at their repositories, by the annotation that users may write too. It need not be remembered over a restart, after
// which all repositories are asked.
type Announcer struct {
	Options
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// announced is when each application was annotated last.
	announced *lru.Cache
}

// NewAnnouncer returns an Announcer, which works while it runs.
func NewAnnouncer(o Options) *Announcer {
	return &Announcer{Options: o, queue: work.NewQueue[cache.ObjectName](o.Queues.Of("pushes"), firstRetry, lastRetry), announced: lru.New(mostPaused)}
}

// HasSynced implements Applications.
func (a *Announcer) HasSynced() bool {
	for _, synced := range a.Synced {
		if !synced() {
			return false
		}
	}
	return true
}

// Hook implements Applications.
func (a *Announcer) Hook(name cache.ObjectName) (*v1alpha1.Application, []byte) {
	app, err := a.Applications.Applications(name.Namespace).Get(name.Name)
	if err != nil || app.Spec.Source.Git == nil || app.Spec.Source.Git.Webhook == nil {
		return nil, nil
	}
	secret, err := a.Secrets.Secrets(name.Namespace).Get(app.Spec.Source.Git.Webhook.SecretRef.Name)
	if err != nil {
		return nil, nil
	}
	return app, secret.Data[v1alpha1.WebhookSecretToken]
}

// Announce implements Applications.
func (a *Announcer) Announce(name cache.ObjectName) { a.queue.Add(name) }

// Run works until ctx ends.
func (a *Announcer) Run(ctx context.Context) error {
	work.Run(ctx, a.queue, workers, a.announce)
	return nil
}

// announce annotates an application, unless it was a moment ago: then later.
func (a *Announcer) announce(ctx context.Context, name cache.ObjectName) error {
	now := a.Clock.Now()
	if last, ok := a.announced.Get(name); ok {
		if left := pause - now.Sub(last.(time.Time)); left > 0 {
			a.queue.AddAfter(name, left)
			return nil
		}
	}
	app, err := a.Applications.Applications(name.Namespace).Get(name.Name)
	if err != nil {
		return nil // it is gone
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": app.UID, "annotations": map[string]string{v1alpha1.AnnotationRefresh: now.UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return err
	}
	_, err = a.Client.Applications(app.Namespace).Patch(ctx, app.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil // it is another one by now
	case err != nil:
		return fmt.Errorf("annotate Application %s for a push: %w", name, err)
	}
	a.announced.Add(name, now)
	a.Recorder.Event(app, corev1.EventTypeNormal, "PushAnnounced", "a push is announced: the repository is asked")
	return nil
}
