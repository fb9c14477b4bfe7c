// Package live asks plugins what is there of applications, and whether that is what was released. It asks again and again, and keeps the last answers.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	informers "github.com/manifold-dev/manifold/generated/informers/externalversions/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/planning"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/livestate"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/source"
	"github.com/manifold-dev/manifold/pkg/delivery/read"
)

const (
	// every is how long after an answer plugins are asked again.
	every = time.Minute
	// answers bounds how long a plugin may take about one deploy target, and all about one application.
	answers, all = 15 * time.Second, 60 * time.Second
	// mostAnswer bounds an answer, in bytes.
	mostAnswer = 4 << 20
	mostSaid   = 250
	// atOnce is how many applications plugins are asked about at a time, and atOnceOf how many of those with the same plugins: one that does not answer holds up
	// its own users. There are more workers, so that somebody is left to see who is next.
	atOnce, atOnceOf = 12, 4
	workers          = atOnce + 2
	// comeAgain is how soon one is looked at again for which there was no place.
	comeAgain = time.Second

	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Options say whom to ask about what.
type Options struct {
	Applications informers.ApplicationInformer
	Revisions    informers.ApplicationRevisionInformer
	Directory    plugins.Directory
	Sources      deployments.Sources
	Queues       work.Names
}

// Board has what plugins say of all applications.
type Board struct {
	Options
	queue   workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced  []cache.InformerSynced
	changed func(cache.ObjectName)
	places  *work.Places
	// within is how long a plugin may take about one deploy target.
	within time.Duration

	mu    sync.Mutex
	found map[types.UID][]v1alpha1.PluginTargetStatus
	// lacking are the plugins that do not support it, by the start of their processes.
	lacking map[string]int64
}

// New registers with the informers, which the caller starts afterwards.
func New(o Options) (*Board, error) {
	b := &Board{
		Options: o, queue: work.NewQueue[cache.ObjectName](o.Queues.Of("live"), firstRetry, lastRetry), changed: func(cache.ObjectName) {},
		within: answers,
		places: work.NewPlaces(atOnce, atOnceOf),
		found:  map[types.UID][]v1alpha1.PluginTargetStatus{}, lacking: map[string]int64{},
	}
	tell := func(obj any) {
		if app, is := obj.(*v1alpha1.Application); is {
			b.queue.Add(cache.MetaObjectToName(app))
		}
	}
	registration, err := o.Applications.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: func(obj any) { b.forget(caches.Last(obj)) },
		UpdateFunc: func(old, obj any) {
			if differs(old.(*v1alpha1.Application), obj.(*v1alpha1.Application)) {
				tell(obj)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch applications that use plugins: %w", err)
	}
	b.synced = []cache.InformerSynced{registration.HasSynced, o.Revisions.Informer().HasSynced}
	o.Directory.Changed(b.pluginChanged)
	return b, nil
}

// differs reports whether plugins are to be asked anew, and not only by and by.
func differs(old, now *v1alpha1.Application) bool {
	return old.Generation != now.Generation || old.Status.LiveRevision != now.Status.LiveRevision || old.Status.ReleasePhase != now.Status.ReleasePhase
}

// pluginChanged has plugins asked about the applications that use one which has changed.
func (b *Board) pluginChanged(plugin string) {
	found, err := b.Applications.Lister().List(labels.Everything())
	if err != nil {
		return // a cache always lists
	}
	for _, app := range found {
		if planning.Uses(app, plugin) {
			b.queue.Add(cache.MetaObjectToName(app))
		}
	}
}

// Watch has changed called for every application of which something else is known. It is called before Run.
func (b *Board) Watch(changed func(cache.ObjectName)) { b.changed = changed }

// Of returns what plugins say of an application, for each of their deploy targets.
func (b *Board) Of(app types.UID) []v1alpha1.PluginTargetStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.found[app]
}

func (b *Board) forget(obj any) {
	if app, is := obj.(*v1alpha1.Application); is {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.found, app.UID)
	}
}

// Run asks until ctx ends.
func (b *Board) Run(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), b.synced...) {
		return ctx.Err()
	}
	work.Run(ctx, b.queue, workers, b.sync)
	return nil
}

// sync asks about an application, and comes back to it after a while.
func (b *Board) sync(ctx context.Context, name cache.ObjectName) error {
	app, err := b.Applications.Lister().Applications(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(app.Spec.Plugins) == 0 || app.DeletionTimestamp != nil || app.Status.LiveRevision == "" {
		b.keep(app, nil)
		return nil
	}
	revision, err := b.Revisions.Lister().ApplicationRevisions(app.Namespace).Get(app.Status.LiveRevision)
	if err != nil {
		return err // it is about to be shown, or the status is about to name another one
	}
	free, ok := b.places.Take(pluginsOf(app))
	if !ok {
		b.queue.AddAfter(name, comeAgain)
		return nil
	}
	defer free()
	looking, enough := context.WithTimeout(ctx, all)
	defer enough()
	found := b.look(looking, app, revision)
	fit(found)
	b.keep(app, found)
	b.queue.AddAfter(name, every)
	return nil
}

// pluginsOf names the plugins of an application. Those with the same ones wait for one another.
func pluginsOf(app *v1alpha1.Application) string {
	var names []string
	for i := range app.Spec.Plugins {
		names = append(names, app.Spec.Plugins[i].Name)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func (b *Board) keep(app *v1alpha1.Application, found []v1alpha1.PluginTargetStatus) {
	b.mu.Lock()
	same := reflect.DeepEqual(b.found[app.UID], found)
	if found == nil {
		delete(b.found, app.UID)
	} else {
		b.found[app.UID] = found
	}
	b.mu.Unlock()
	if !same {
		b.changed(cache.MetaObjectToName(app))
	}
}

// look asks all plugins of an application about all of its deploy targets.
func (b *Board) look(ctx context.Context, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision) (out []v1alpha1.PluginTargetStatus) {
	spec := read.Spec(app.Spec, revision)
	before := b.Of(app.UID)
	for i := range spec.Plugins {
		of := &spec.Plugins[i]
		plugin, why := b.Directory.Get(of.Name)
		if why != "" {
			out = append(out, unknown(of, before, fmt.Sprintf("plugin %q is not ready: %s", of.Name, why))...)
			continue
		}
		targets, err := planning.Targets(of, plugin.Targets, i)
		if err != nil {
			out = append(out, unknown(of, before, err.Error())...)
			continue
		}
		for _, target := range targets {
			if b.lacks(plugin) {
				break
			}
			status, supported := b.ask(ctx, app, revision, plugin, target)
			if !supported {
				b.note(plugin)
				break
			}
			out = append(out, status)
		}
	}
	return out
}

// unknown says of the deploy targets that are known of a plugin that it cannot be asked.
func unknown(of *v1alpha1.ApplicationPlugin, before []v1alpha1.PluginTargetStatus, why string) (out []v1alpha1.PluginTargetStatus) {
	names := of.DeployTargets
	for i := range before {
		if len(of.DeployTargets) == 0 && before[i].Plugin == of.Name {
			names = append(names, before[i].DeployTarget)
		}
	}
	for _, name := range names {
		out = append(out, failed(of.Name, name, why))
	}
	return out
}

func failed(plugin, target, why string) v1alpha1.PluginTargetStatus {
	return v1alpha1.PluginTargetStatus{
		Plugin: plugin, DeployTarget: target, Sync: v1alpha1.SyncUnknown, Health: v1alpha1.HealthUnknown, Message: text.Line(why, mostSaid),
	}
}

// lacks reports whether a plugin is known not to support it.
func (b *Board) lacks(plugin plugins.Plugin) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, known := b.lacking[plugin.Name]
	return known && at == plugin.Incarnation
}

func (b *Board) note(plugin plugins.Plugin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lacking[plugin.Name] = plugin.Incarnation
}

// ask asks a plugin about one deploy target, and reports whether it supports that.
func (b *Board) ask(
	ctx context.Context, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, plugin plugins.Plugin, target string,
) (status v1alpha1.PluginTargetStatus, supported bool) {
	ctx, enough := context.WithTimeout(ctx, b.within)
	defer enough()
	var answer *livestate.GetLivestateResponse
	supported, why := b.withFiles(ctx, app, revision, plugin, "what is there", func(files *source.DeploymentSource) (err error) {
		answer, err = livestate.NewLivestateServiceClient(plugin.Conn).GetLivestate(ctx, &livestate.GetLivestateRequest{
			PipedId: deployments.Piped, ApplicationId: deployments.ApplicationID(app), ApplicationName: app.Name, DeploySource: files, DeployTargets: []string{target},
		}, grpc.MaxCallRecvMsgSize(mostAnswer))
		return err
	})
	switch {
	case why != "":
		return failed(plugin.Name, target, why), true
	case supported:
		status = Status(plugin.Name, target, answer)
	default:
		status = failed(plugin.Name, target, "")
	}
	if !drifts.Served(plugin) {
		return status, supported
	}
	var found map[string]drifts.Found
	asked, why := b.withFiles(ctx, app, revision, plugin, "what differs", func(files *source.DeploymentSource) (err error) {
		found, err = drifts.Ask(ctx, plugin, drifts.Question{Application: app, Targets: []string{target}, To: files}, grpc.MaxCallRecvMsgSize(mostAnswer))
		return err
	})
	if !asked && why == "" {
		return status, supported // it has said that it does, and does not
	}
	of := found[target]
	addDrift(&status, of.Differences, of.Count, cmp.Or(why, of.Wrong))
	return status, true
}

// withFiles calls a plugin with files of its own, and reports whether it supports the call, or why there is no answer.
func (b *Board) withFiles(
	ctx context.Context, app *v1alpha1.Application, revision *v1alpha1.ApplicationRevision, plugin plugins.Plugin, about string, call func(*source.DeploymentSource) error,
) (supported bool, why string) {
	files, clean, err := b.Sources.Prepare(ctx, app, revision, plugin.Name)
	if err != nil {
		return false, err.Error()
	}
	err = call(files)
	cleaned := clean()
	switch code := grpcstatus.Code(err); {
	case code == codes.Unimplemented:
		return false, ""
	case code == codes.DeadlineExceeded, errors.Is(ctx.Err(), context.DeadlineExceeded): // the plugin may tell first that the time is over
		return false, fmt.Sprintf("plugin %q has not told within %s %s", plugin.Name, b.within, about)
	case err != nil:
		return false, fmt.Sprintf("plugin %q does not tell %s: %s: %s", plugin.Name, about, code, grpcstatus.Convert(err).Message())
	case cleaned != nil:
		return false, cleaned.Error()
	}
	return true, ""
}
