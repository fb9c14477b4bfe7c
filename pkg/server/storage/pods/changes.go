package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/server/identity"
	"github.com/manifold-dev/manifold/pkg/server/storage/await"
	"github.com/manifold-dev/manifold/pkg/server/storage/below"
	"github.com/manifold-dev/manifold/pkg/server/storage/metadata"
)

// patchStorage is what the stock endpoints of a pod's subresources implement.
type patchStorage interface {
	rest.Storage
	rest.Patcher
}

// podChangeREST is a subresource that changes a running pod: ephemeralcontainers, resize and status. The change of a mirrored pod is made
// to the pod itself, whose mirror then follows.
type podChangeREST struct {
	patchStorage
	subresource string
	// same reports whether two pods agree in what the subresource changes.
	same  func(a, b *api.Pod) bool
	below podsBelow
	pods  rest.Watcher
	// names are asked about what containers name that are added. It is nil for what adds none.
	names debugNames
}

// sameEphemeralContainers and its siblings are for podChangeREST.
func sameEphemeralContainers(a, b *api.Pod) bool {
	return equality.Semantic.DeepEqual(a.Spec.EphemeralContainers, b.Spec.EphemeralContainers)
}

func sameResources(a, b *api.Pod) bool {
	same := func(a, b []api.Container) bool {
		return slices.EqualFunc(a, b, func(a, b api.Container) bool { return equality.Semantic.DeepEqual(a.Resources, b.Resources) })
	}
	return same(a.Spec.Containers, b.Spec.Containers) && same(a.Spec.InitContainers, b.Spec.InitContainers) &&
		equality.Semantic.DeepEqual(a.Spec.Resources, b.Spec.Resources)
}

// sameConditions looks at what others than a kubelet write in a status; the rest may move on at any time.
func sameConditions(a, b *api.Pod) bool {
	return equality.Semantic.DeepEqual(a.Status.Conditions, b.Status.Conditions)
}

// sameMarks is for changes of the pod itself, of which a mirror takes labels, annotations, finalizers and scheduling gates alone.
func sameMarks(a, b *api.Pod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Finalizers, b.Finalizers) &&
		equality.Semantic.DeepEqual(a.Spec.SchedulingGates, b.Spec.SchedulingGates)
}

// Update asks the stock endpoint, by a dry run, what it would make of the mirror: patches, defaults, admission, validation and conflicts
// are its own. Then it has the cluster make the same change to the pod.
func (r *podChangeREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	found, err := r.below.get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, err
	}
	if clusterOf(found.(*api.Pod)) == "" {
		return r.patchStorage.Update(ctx, name, info, create, update, false, options)
	}
	c, err := r.try(ctx, name, info, create, update, options)
	if err != nil {
		return nil, false, err
	}
	if err := r.carryOut(ctx, name, c, options); err != nil {
		return nil, false, err
	}
	if kept := c.owners.toStore(identity.FromWithin(ctx)); !kept.empty() {
		stored, err := r.storeOwners(ctx, c.want, kept, options)
		if err != nil {
			return nil, false, err
		}
		c.want.OwnerReferences, c.want.ResourceVersion = stored.OwnerReferences, stored.ResourceVersion
	}
	if !c.same && !mirrored(c.old) { // a pod of the user's own is stored above as well
		return r.patchStorage.Update(ctx, name, info, create, update, false, options)
	}
	shown := r.shown(ctx, c, options)
	if r.subresource == "" && mirrored(c.old) {
		shown, err = metadata.StoreManagers(ctx, r.patchStorage, c.old, c.want, shown, options)
	}
	return shown, false, err
}

// podChange is an update of a pod that runs in a cluster.
type podChange struct {
	// old is the pod as it is stored, and want what the stock endpoint would make of it.
	old, want *api.Pod
	owners    ownerChange
	// same tells that it changes nothing but owners.
	same bool
	// recorded is the mirror as it was stored before the cluster was told, and made the pod as the cluster has it then. Both may be nil.
	recorded, made *api.Pod
}

// try returns what the stock endpoint would do.
func (r *podChangeREST) try(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, options *metav1.UpdateOptions,
) (*podChange, error) {
	tried := options.DeepCopy()
	tried.DryRun = []string{metav1.DryRunAll}
	based := &basedOn{UpdatedObjectInfo: info}
	obj, _, err := r.patchStorage.Update(ctx, name, based, create, update, false, tried)
	if err != nil {
		return nil, err
	}
	want, ok := obj.(*api.Pod)
	if !ok || based.pod == nil {
		return nil, fmt.Errorf("the stock endpoint of pods/%s returned a %T", r.subresource, obj)
	}
	old := based.pod
	return &podChange{
		old: old, want: want, owners: ownerChangeOf(old, want),
		same: sameMarks(want, old) && equality.Semantic.DeepEqual(want.Spec, old.Spec) && equality.Semantic.DeepEqual(want.Status, old.Status),
	}, nil
}

// carryOut has the cluster make the change, if there is anything for it to do.
func (r *podChangeREST) carryOut(ctx context.Context, name string, c *podChange, options *metav1.UpdateOptions) error {
	if c.same && !c.owners.concernsCluster(identity.FromWithin(ctx)) {
		return nil
	}
	_, connection, err := r.below.find(ctx, name)
	if err != nil {
		return err
	}
	if c.recorded, err = r.recordLabels(ctx, c.old, c.want, options); err != nil {
		return err
	}
	if c.made, err = r.changeBelow(ctx, connection, c.old, c.want, options); err != nil {
		if c.recorded != nil {
			r.unrecordLabels(ctx, c.want, c.old, options)
		}
		return fromCluster(err, c.old)
	}
	return nil
}

// shown returns the mirror as it shows the change, which it may have to wait for.
func (r *podChangeREST) shown(ctx context.Context, c *podChange, options *metav1.UpdateOptions) *api.Pod {
	switch {
	case c.same, dryrun.IsDryRun(options.DryRun):
		return c.want
	case c.recorded != nil && r.same(c.recorded, c.want): // nothing more comes to the mirror
		return c.want
	case r.subresource == "":
		return r.awaitMirror(ctx, c.want, c.want) // the metadata of a mirror is not quite that of its pod
	}
	return r.awaitMirror(ctx, c.want, c.made)
}

// basedOn remembers the object that an update was applied to.
type basedOn struct {
	rest.UpdatedObjectInfo
	pod *api.Pod
}

func (b *basedOn) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	if pod, ok := old.(*api.Pod); ok {
		b.pod = pod.DeepCopy()
	}
	return b.UpdatedObjectInfo.UpdatedObject(ctx, old)
}

// changeBelow makes the change from old to want in the cluster and returns the pod as it is there.
func (r *podChangeREST) changeBelow(ctx context.Context, connection *below.Connection, old, want *api.Pod, options *metav1.UpdateOptions) (*api.Pod, error) {
	collected := identity.FromWithin(ctx)
	ctx, cancel := context.WithTimeout(ctx, below.Timeout)
	defer cancel()
	if r.names != nil {
		if err := r.names.check(ctx, connection, old, want); err != nil {
			return nil, err
		}
	}
	patch, err := podPatch(old, want)
	if err != nil {
		return nil, err
	}
	owners, err := ownersBelow(ctx, connection, old, ownerChangeOf(old, want), collected)
	if err != nil {
		return nil, err
	}
	if patch, err = withMetadata(patch, uidBelow(old), owners, takenOff(old, want)); err != nil {
		return nil, fmt.Errorf("encode the change of pod %s/%s: %w", old.Namespace, old.Name, err)
	}
	pod, err := connection.Client.CoreV1().Pods(old.Namespace).Patch(ctx, old.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{DryRun: options.DryRun, FieldManager: v1alpha1.FieldManager}, r.subresource)
	if err != nil {
		return nil, err
	}
	made := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(pod, made, nil); err != nil {
		return nil, fmt.Errorf("convert what the cluster made of pod %s/%s: %w", old.Namespace, old.Name, err)
	}
	return made, nil
}

// podPatch is the difference between two pods in labels, annotations, spec and status, for the pod that old is in its cluster alone.
func podPatch(old, want *api.Pod) ([]byte, error) {
	encode := func(pod *api.Pod, uid types.UID) ([]byte, error) {
		out := &corev1.Pod{}
		if err := legacyscheme.Scheme.Convert(pod, out, nil); err != nil {
			return nil, err
		}
		return json.Marshal(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: uid, Labels: out.Labels, Annotations: out.Annotations,
		}, Spec: out.Spec, Status: out.Status})
	}
	before, err := encode(old, "")
	if err != nil {
		return nil, fmt.Errorf("encode pod %s/%s: %w", old.Namespace, old.Name, err)
	}
	after, err := encode(want, uidBelow(old))
	if err != nil {
		return nil, fmt.Errorf("encode pod %s/%s: %w", want.Namespace, want.Name, err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, &corev1.Pod{})
}

// takenOff are the finalizers that an update takes off a pod. The pod has others in its cluster, which its mirror does not show.
func takenOff(old, want *api.Pod) []string {
	return slices.DeleteFunc(slices.Clone(old.Finalizers), func(f string) bool { return slices.Contains(want.Finalizers, f) })
}

// awaitMirror returns the mirror once it shows what was made, so that who reads it next, or sends another change based on it, finds it
// there. When that takes too long it returns want, which is the mirror to come.
func (r *podChangeREST) awaitMirror(ctx context.Context, want, made *api.Pod) *api.Pod {
	shown := want
	await.Event(ctx, r.pods, await.Only(want), await.MirrorTimeout, func(event watch.Event, obj metav1.Object) bool {
		pod, ok := obj.(*api.Pod)
		if !ok || event.Type == watch.Deleted || pod.UID != want.UID {
			return true
		}
		if r.same(pod, made) {
			shown = pod
			return true
		}
		return false
	})
	return shown
}
