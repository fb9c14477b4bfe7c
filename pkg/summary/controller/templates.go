package controller

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/projection"
	"github.com/manifold-dev/manifold/pkg/summary"
)

// mostTemplates is how many templates of one Deployment are kept that it had, and that have no ReplicaSet above.
const mostTemplates = 10

// templates are those that Deployments had for so short a time that there was no mirror of a ReplicaSet when they got another. A cluster may
// have begun to carry one out. Its word is not taken for what the template is: that was seen above, or there is no revision of it. A start
// forgets them, which loses a revision that was replaced within the same moment.
type templates struct {
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

// recordTemplate keeps the template of a Deployment that gets another one, unless its mirror does.
func (c *Controller) recordTemplate(old, obj summary.Object) {
	before, ok := old.(*appsv1.Deployment)
	if !ok || before.Generation == obj.GetGeneration() {
		return
	}
	after := obj.(*appsv1.Deployment)
	if before.UID != after.UID || equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
		return
	}
	hash := projection.TemplateHash(&before.Spec.Template)
	if !c.taken(before.Namespace, summary.ReplicaSetName(before.Name, hash)) {
		c.templates.note(before, hash)
	}
}

// forgetTemplates drops what was kept of a Deployment that is gone.
func (c *Controller) forgetTemplates(obj any) {
	if tomb, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tomb.Obj
	}
	if d, ok := obj.(*appsv1.Deployment); ok {
		c.templates.forget(d.UID)
	}
}

// templateOf returns a template that a Deployment has or had, nil if the logical cluster knows of none with that hash.
func (c *Controller) templateOf(d *appsv1.Deployment, hash string, mirror *appsv1.ReplicaSet) *summary.Recorded {
	switch {
	case mirror != nil && summary.ReplicaSetHash(mirror, nil) == hash:
		return &summary.Recorded{Template: mirror.Spec.Template, Annotations: mirror.Annotations}
	case projection.TemplateHash(&d.Spec.Template) == hash:
		return summary.Record(d)
	}
	return c.templates.get(d.UID, hash)
}
