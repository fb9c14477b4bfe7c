package promotions

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// busy is until when a forge is left alone that was called too often with a credential, and what it has said. Nothing but calls is lost with it.
type busy struct {
	until   time.Time
	version string
	err     error
}

// call has a pull request opened or looked at, unless the forge has asked to be left alone by whoever comes with this credential. Many pipelines may share one.
func (c *Controller) call(ctx context.Context, p *weave.Pipeline, step promotion.Step, secret *corev1.Secret) (pulls.Result, error) {
	name := cache.MetaObjectToName(secret)
	if err := c.leftAlone(name, secret.ResourceVersion); err != nil {
		return pulls.Result{}, err
	}
	result, err := c.Pulls.Open(ctx, request(p, step, secret))
	if pause, is := pulls.Busy(err); is {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.busy[name] = busy{c.Clock.Now().Add(pause), secret.ResourceVersion, err}
	}
	return result, err
}

// leftAlone returns what a forge has said that is still to be left alone, nil if none is. Another credential may be welcome.
func (c *Controller) leftAlone(secret cache.ObjectName, version string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.busy[secret]
	if known && (last.version != version || !c.Clock.Now().Before(last.until)) {
		delete(c.busy, secret)
		return nil
	}
	return last.err
}
