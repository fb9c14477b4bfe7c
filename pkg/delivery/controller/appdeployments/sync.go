package appdeployments

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	manifold "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/oam"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/wanted"
	"github.com/manifold-dev/manifold/pkg/projection"
)

// run is one look at an ApplicationDeployment.
type run struct {
	*Controller
	key    key
	object *oam.Object
	memory *memory
	app    wanted.Application
	spec   oam.Deployment

	clusters []*manifold.Cluster
	present  []observe.Present
	picker   *oam.Picker
	// sources are what revisions are made of, by variant, and unknown says of the others why that is not known.
	sources map[string]source
	unknown map[string]string
	// sizes are what the spec asks for, unplaced what no cluster is there for, and made what variants stand for as they were ordered.
	sizes    map[string]oam.Size
	unplaced map[string][]oam.Unplaced
	made     map[string]wanted.Wanted
	seen     map[string]map[string]delivery.Cluster
	// fronts are the Services in front of what revisions are made of, by variant, nil where there is none.
	fronts map[string]*unstructured.Unstructured
	// undone says what of the spec and the revisions is not done, and unhealed what somebody has changed that cannot be put back.
	undone   []string
	unhealed []error
	routes   routes
}

// client reaches the objects of a resource.
func (c *Controller) client(k key) dynamic.ResourceInterface {
	return c.Dynamic.Resource(oam.GroupVersion.WithResource(k.resource)).Namespace(k.Namespace)
}

// read returns an ApplicationDeployment as it is now, nil if it is not there.
func (c *Controller) read(ctx context.Context, k key) (*oam.Object, error) {
	found, err := c.client(k).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", k.resource, k.ObjectName, err)
	}
	out := &oam.Object{}
	err = decode(found.Object, out)
	if err == nil {
		return out, nil
	}
	// It is not as the definition says. What can be told of it is told.
	out = &oam.Object{}
	if other := decode(map[string]any{"metadata": found.Object["metadata"], "status": found.Object["status"]}, out); other != nil {
		return nil, fmt.Errorf("read %s %s: %w", k.resource, k.ObjectName, errors.Join(err, other))
	}
	return out, unreadableError{err}
}

func decode(content map[string]any, into *oam.Object) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// unreadableError says why an object cannot be read.
type unreadableError struct{ error }

// sync brings an ApplicationDeployment as far as it gets now.
func (c *Controller) sync(ctx context.Context, k key) error {
	object, err := c.read(ctx, k)
	unreadable := unreadableError{}
	switch {
	case errors.As(err, &unreadable):
		return c.refuse(ctx, k, object, "Invalid", "spec: "+delivery.Said(unreadable.Error()))
	case err != nil:
		return err
	case object == nil:
		c.forget(k)
		return nil
	}
	r := &run{
		Controller: c, key: k, object: object, memory: c.memoryOf(k, object),
		sources: map[string]source{}, unknown: map[string]string{}, sizes: map[string]oam.Size{}, unplaced: map[string][]oam.Unplaced{},
		made: map[string]wanted.Wanted{}, seen: map[string]map[string]delivery.Cluster{}, fronts: map[string]*unstructured.Unstructured{},
	}
	r.app = wanted.Application{
		Namespace: k.Namespace, Name: r.memory.id, UID: object.UID, Pinned: true, Rights: true, // copies have none of what needs rights
		Stands: &metav1.OwnerReference{APIVersion: oam.GroupVersion.String(), Kind: oam.Kinds[k.resource], Name: k.Name, UID: object.UID},
	}
	if r.present, err = c.store.Of(cache.NewObjectName(k.Namespace, r.memory.id)); err != nil {
		return err
	}
	if object.DeletionTimestamp != nil {
		return r.leave(ctx)
	}
	if why, refused := projection.NamespaceRefusal(k.Namespace); refused {
		return c.refuse(ctx, k, object, "NamespaceRefused", why)
	}
	spec, errs := oam.Read(object.Spec)
	if len(errs) > 0 {
		return c.refuse(ctx, k, object, "Invalid", delivery.Said(errs.ToAggregate().Error()))
	}
	r.spec = spec
	if !slices.Contains(object.Finalizers, oam.Finalizer) {
		return r.hold(ctx)
	}
	if err := r.gather(); err != nil {
		return err
	}
	return r.proceed(ctx)
}

// hold adds our finalizer, before there is anything to be cleaned up. The watch shows it.
func (r *run) hold(ctx context.Context) error {
	return r.finalizers(ctx, append(slices.Clone(r.object.Finalizers), oam.Finalizer))
}

func (r *run) finalizers(ctx context.Context, all []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": all, "resourceVersion": r.object.ResourceVersion, "uid": r.object.UID,
	}})
	if err != nil {
		return err
	}
	_, err = r.client(r.key).Patch(ctx, r.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// gather finds what revisions are made of, where they are to run, and what is seen of them.
func (r *run) gather() error {
	known, all, err := r.known()
	if err != nil {
		return err
	}
	r.clusters = all
	r.picker = &oam.Picker{Clusters: known, Home: r.home(r.object), Owner: r.object.Namespace + "/" + r.object.Name, Recorded: r.object.Status.Picks}
	r.goesByWorkloads(r.memory, slices.ContainsFunc(r.spec.Revisions, oam.Revision.Native))
	for _, revision := range r.spec.Revisions {
		if err := r.revision(revision, known); err != nil {
			r.keep(revision.Variant, err)
		}
	}
	return nil
}

// keep has a revision stay as it is, as nobody knows what it is.
func (r *run) keep(variant string, why error) {
	r.unknown[variant] = delivery.Said(why.Error())
	delete(r.sources, variant)
	delete(r.sizes, variant)
	delete(r.made, variant)
	delete(r.fronts, variant)
}

// revision gathers what is known of one revision. An error says why it stays as it is.
func (r *run) revision(revision oam.Revision, known []oam.Cluster) error {
	found, err := r.find(r.key.Namespace, revision, known)
	if err != nil {
		return err
	}
	content, err := found.content(found.targets[0])
	if err != nil {
		return err
	}
	variant := revision.Variant
	r.sources[variant], r.fronts[variant] = found, content.Front
	r.sizes[variant], r.unplaced[variant] = oam.Place(revision, content.Workloads, r.picker)
	if len(content.LeftOut) > 0 {
		r.undone = append(r.undone, fmt.Sprintf("%s: no copies are made of %s", revision.Reference(), strings.Join(content.LeftOut, ", ")))
	}
	ordered, has := r.object.Status.Ordered[variant]
	if !has {
		return nil
	}
	made, err := r.make(r.app, found, ordered)
	if err != nil {
		return err
	}
	r.made[variant] = made
	r.seen[variant] = r.observe(found, ordered, made)
	return nil
}

// observe says what is seen of a revision in each cluster.
func (r *run) observe(of source, ordered oam.Size, made wanted.Wanted) map[string]delivery.Cluster {
	edits := map[string]int64{}
	for _, cluster := range r.clusters {
		edits[cluster.Name] = 1
	}
	return observe.Clusters(observe.World{
		Set: setOf(of, ordered, true), Edits: edits, Wanted: made, Pinned: true, Present: r.present, Clusters: r.clusters,
		Failures: r.memory.of(of.Variant).Failures(), Silent: func(*manifold.Cluster) time.Time { return time.Time{} }, Now: r.Clock.Now(),
	})
}

// lacking says what keeps a revision from being ready in a cluster, "" if nothing does.
func (r *run) lacking(variant, cluster string) string {
	for _, c := range r.clusters {
		if c.Name == cluster && observe.Silent(c) {
			return "the cluster does not answer"
		}
	}
	seen, there := r.seen[variant][cluster]
	report := seen.Variants[variant]
	want := r.sizes[variant].Total(cluster)
	switch {
	case !there:
		return "the cluster has left"
	case report.Failure != "":
		return report.Failure
	case seen.Edit != 1:
		return "it is about to be applied"
	case report.Ready || report.Current && report.Pods >= want:
		return ""
	}
	return cmp.Or(report.Waiting, fmt.Sprintf("%d of %d pods are ready", report.Pods, want))
}

// pods is how many pods of a revision are ready in a cluster.
func (r *run) pods(variant, cluster string) int32 {
	return r.seen[variant][cluster].Variants[variant].Pods
}

// endpoints is how many pods of a revision requests get to in a cluster.
func (r *run) endpoints(variant, cluster string) int32 {
	return r.seen[variant][cluster].Variants[variant].Endpoints
}

// proceed decides what is done now, notes it, and does it.
func (r *run) proceed(ctx context.Context) error {
	step, err := r.decide()
	if err != nil {
		return errors.Join(err, r.refuse(ctx, r.key, r.object, "Failing", delivery.Said(err.Error())))
	}
	// What is decided is noted before it is done, so that whoever goes on after a restart knows of it.
	if err := r.tell(ctx, step); err != nil {
		return err
	}
	err = r.carry(ctx, step)
	r.trouble(errors.Join(append(r.unhealed, err)...))
	if step.Again > 0 {
		const margin = 10 * time.Millisecond
		r.queue.AddAfter(r.key, step.Again+margin)
	}
	return err
}

// decide says what is done now. A revision that stands for no objects stays as it is.
func (r *run) decide() (oam.Step, error) {
	for {
		var err error
		if r.routes, err = r.route(); err != nil {
			return oam.Step{}, err
		}
		step, broken := r.next(), false
		for _, variant := range slices.Sorted(maps.Keys(step.Sizes)) {
			if made := r.made[variant]; len(made.Objects) > 0 && step.Sizes[variant].Equal(r.object.Status.Ordered[variant]) {
				continue
			}
			made, err := r.make(r.app, r.sources[variant], step.Sizes[variant])
			if err != nil {
				r.keep(variant, err)
				broken = true
				continue
			}
			r.made[variant] = made
		}
		if !broken {
			return step, nil
		}
	}
}

func (r *run) next() oam.Step {
	kept := map[string]bool{}
	for variant := range r.unknown {
		kept[variant] = true
	}
	since := time.Time{}
	if r.object.Status.DrainingSince != nil {
		since = r.object.Status.DrainingSince.Time
	}
	return oam.Next(oam.Situation{
		Wanted: r.sizes, Ordered: r.object.Status.Ordered, Kept: kept, Unrouted: r.routes.waits, Since: since, Now: r.Clock.Now(), Drain: r.spec.Drain,
		Lacking: func(variant string) string {
			for _, cluster := range slices.Sorted(maps.Keys(r.sizes[variant])) {
				if lacks := r.lacking(variant, cluster); lacks != "" {
					return fmt.Sprintf("in cluster %q: %s", cluster, lacks)
				}
			}
			return ""
		},
	})
}

// carry does what was decided. What fails of one revision does not keep the others.
func (r *run) carry(ctx context.Context, step oam.Step) error {
	var errs []error
	wants := wanted.Wanted{}
	for _, variant := range slices.Sorted(maps.Keys(step.Sizes)) {
		made := r.made[variant]
		made.Objects = append(slices.Clone(made.Objects), r.routes.hosts[variant]...)
		errs = append(errs, r.bring(ctx, variant, made))
		wants.Objects, wants.Policies = append(wants.Objects, made.Objects...), append(wants.Policies, made.Policies...)
	}
	rules := wanted.Wanted{Objects: r.routes.rules}
	errs = append(errs, r.bring(ctx, oam.Routes, rules), r.share(ctx))
	wants.Objects = append(wants.Objects, rules.Objects...)
	if err := errors.Join(errs...); err != nil {
		return err // what goes is not to go before what comes is there
	}
	order := r.order(wants)
	order.Keeps = func(variant string) bool {
		_, unknown := r.unknown[variant]
		going := slices.Contains(step.Diff.Del, variant) && !slices.Contains(step.Remove, variant)
		return unknown || going || variant == oam.Routes && r.routes.held != ""
	}
	return r.carrier.Prune(ctx, order)
}

// trouble remembers what went wrong, for the status to tell.
func (r *run) trouble(err error) {
	said := ""
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // which the watch is about to show
		said = delivery.Said(err.Error())
	}
	if r.memory.trouble != said {
		r.memory.trouble = said
		r.queue.AddAfter(r.key, settle)
	}
}

func (r *run) order(wants wanted.Wanted) objects.Order {
	return objects.Order{
		Account: objects.Account{Namespace: r.key.Namespace}, Owner: objects.Owner{Name: r.memory.id, UID: r.object.UID}, Wanted: wants, Present: r.present,
		// What was refused is tried again when the spec is another one, and now and then.
		Edition: fmt.Sprintf("%d/%d", r.object.Generation, r.Clock.Now().Unix()/int64(tryAgain.Seconds())),
		Drift:   objects.Drift{Heal: true, Now: r.Clock.Now()},
	}
}

// bring brings about the objects of one variant.
func (r *run) bring(ctx context.Context, variant string, wants wanted.Wanted) error {
	memory := r.memory.of(variant)
	before := memory.Failures()
	order := r.order(wants)
	_, err := r.carrier.Bring(ctx, order, memory)
	if err == nil {
		err = r.putBack(ctx, order, memory)
	}
	switch now := memory.Failures(); {
	case !maps.Equal(before, now):
		r.queue.AddAfter(r.key, settle) // the status tells it
	case len(now) > 0:
		r.queue.AddAfter(r.key, tryAgain)
	}
	return err
}

// putBack puts back what somebody has changed of what was made.
func (r *run) putBack(ctx context.Context, order objects.Order, memory *objects.Memory) error {
	rescaled := false
	for _, object := range order.Wanted.Objects {
		if present, _ := r.store.Get(r.key.Namespace, object.Key); scaled(object, present) {
			rescaled = true
			if _, err := r.carrier.Apply(ctx, order.Account, order.Owner, object); err != nil {
				return err
			}
		}
	}
	if rescaled {
		return nil // the watch is about to show it, and what else was changed
	}
	result, err := r.carrier.Inspect(ctx, order, memory)
	if !result.Again.IsZero() {
		r.queue.AddAfter(r.key, max(result.Again.Sub(order.Drift.Now), settle))
	}
	for _, found := range result.Found {
		if why := cmp.Or(found.Unhealed, found.Unclear); why != "" {
			r.unhealed = append(r.unhealed, fmt.Errorf("%s/%s is not as it was made, and cannot be put back: %s", found.Kind, found.Name, why))
		}
	}
	return err
}

// leave cleans up. The object stays until nothing is left in any cluster, also in one that does not answer.
func (r *run) leave(ctx context.Context) error {
	if !slices.Contains(r.object.Finalizers, oam.Finalizer) {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(r.object.Finalizers), func(f string) bool { return f == oam.Finalizer })
	if slices.Contains(others, metav1.FinalizerOrphanDependents) {
		return r.finalizers(ctx, others)
	}
	if len(r.present) > 0 {
		if err := r.tellLeaving(ctx); err != nil {
			return err
		}
	}
	if err := r.carrier.Prune(ctx, r.order(wanted.Wanted{})); err != nil || len(r.present) > 0 {
		return err
	}
	return r.finalizers(ctx, others)
}
