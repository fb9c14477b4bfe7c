package pipelines

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/internal/caches"
	texts "github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// watchRights hears of rights that are given and taken away.
func (c *Controller) watchRights() error {
	rbac := c.Kube.Rbac().V1()
	for _, informer := range []cache.SharedIndexInformer{
		rbac.Roles().Informer(), rbac.RoleBindings().Informer(), rbac.ClusterRoles().Informer(), rbac.ClusterRoleBindings().Informer(),
	} {
		concerned := func(obj any) { c.rightChanged(caches.Last(obj).(metav1.Object)) }
		if err := c.follow(informer, cache.ResourceEventHandlerFuncs{
			AddFunc: concerned, DeleteFunc: concerned,
			UpdateFunc: func(old, obj any) {
				if old.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion() {
					concerned(obj)
				}
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// rightChanged has pipelines looked at when a right may have been given or taken away: those in the namespace, or with a target there, or all of them.
func (c *Controller) rightChanged(of metav1.Object) {
	if of.GetNamespace() == "" {
		c.again(c.known.all())
		return
	}
	c.again(c.known.inNamespace(of.GetNamespace(), nil))
	c.again(c.known.livingIn(of.GetNamespace()))
}

// denial says which rights have been taken from whoever has said what is done with them, "" for none.
type denial struct {
	// promotion is to what versions are promoted with to an environment, webhook to the key of the calls about that.
	promotion, webhook string
}

// denial looks whether those who have the pipeline use something for an environment may still use it themselves.
func (l *look) denial(index int) (out denial) {
	if lost := l.pipeline.LostTo(index, l.authors, l.May); lost != nil {
		out.promotion = texts.Said(lost.String())
	}
	if lost := l.pipeline.LostKey(l.pipeline.SigningSecret(index), l.authors, l.May); lost != nil {
		out.webhook = texts.Said(lost.String())
	}
	return out
}

// lacks says which right has been taken from whoever has named a target, "" if he has all that it takes, or nobody is known.
func (l *look) lacks(t weave.Target) string {
	author, known := weave.AuthorOf(l.authors, t)
	if !known {
		return ""
	}
	for _, right := range l.pipeline.Shown(t) {
		if !l.May(author, right) {
			return fmt.Sprintf("%q, who has named this target, has lost the right to %s: give it back, or have somebody write the pipeline who has it", author.User, right)
		}
	}
	return ""
}
