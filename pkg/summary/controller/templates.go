package controller

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/internal/caches"
	"github.com/manifold-dev/manifold/pkg/delivery/held"
	"github.com/manifold-dev/manifold/pkg/identity"
	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// mostTemplates is how many templates of one Deployment are kept that it had, and that have no ReplicaSet above.
const mostTemplates = 10

// templates are those that Deployments had for so short a time that there was no mirror of a ReplicaSet when they got another. A cluster may
// have begun to carry one out. Its word is not taken for what the template is: that was seen above, or there is no revision of it. A start
// forgets them, which loses a revision that was replaced within the same moment.
type templates struct {
	// versions are Deployments at the revisions that clusters hold, see Options.
	versions *held.Versions
	// taken reports whether there is a ReplicaSet above of that name.
	taken func(namespace, name string) bool

	mu   sync.Mutex
	byID map[types.UID][]recorded
}

type recorded struct {
	hash string
	*summary.Recorded
}

// note keeps the template of a Deployment before it changed.
func (t *templates) note(before *appsv1.Deployment, hash string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID == nil {
		t.byID = map[types.UID][]recorded{}
	}
	all := append(t.byID[before.UID], recorded{hash, summary.Record(before)})
	t.byID[before.UID] = all[max(0, len(all)-mostTemplates):]
}

// get returns what was kept of a template, nil if nothing was.
func (t *templates) get(uid types.UID, hash string) *summary.Recorded {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byID[uid] {
		if r.hash == hash {
			return r.Recorded
		}
	}
	return nil
}

func (t *templates) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, uid)
}

// record keeps the template of a Deployment that gets another one, unless its mirror does.
func (t *templates) record(old, obj summary.Object) {
	before, ok := old.(*appsv1.Deployment)
	if !ok || before.Generation == obj.GetGeneration() {
		return
	}
	after := obj.(*appsv1.Deployment)
	if before.UID != after.UID || equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
		return
	}
	hash := projection.TemplateHash(&before.Spec.Template)
	if !t.taken(before.Namespace, summary.ReplicaSetName(before.Name, hash)) {
		t.note(before, hash)
	}
}

// gone drops what was kept of a Deployment that is gone.
func (t *templates) gone(obj any) {
	obj = caches.Last(obj)
	if d, ok := obj.(*appsv1.Deployment); ok {
		t.forget(d.UID)
	}
}

// of returns a template that a Deployment has or had, nil if the logical cluster knows of none with that hash.
func (t *templates) of(d *appsv1.Deployment, hash string, mirror *appsv1.ReplicaSet) *summary.Recorded {
	switch {
	case mirror != nil && summary.ReplicaSetHash(mirror, nil) == hash:
		return &summary.Recorded{Template: mirror.Spec.Template, Annotations: mirror.Annotations}
	case projection.TemplateHash(&d.Spec.Template) == hash:
		return summary.Record(d)
	}
	return t.recorded(d, hash)
}

// recorded returns a template that a Deployment had, or has in a cluster that is held at a revision, nil if the logical cluster knows of none with that
// hash. What a target has may never have been the template of the object itself.
func (t *templates) recorded(d *appsv1.Deployment, hash string) *summary.Recorded {
	if known := t.get(d.UID, hash); known != nil || !identity.NamesRevisions(d) {
		return known
	}
	kind, _ := projection.ForResource(deploymentResource)
	versions, _ := t.versions.All(kind, d)
	for _, version := range versions {
		if at := version.Object.(*appsv1.Deployment); projection.TemplateHash(&at.Spec.Template) == hash {
			return summary.Record(at)
		}
	}
	return nil
}
