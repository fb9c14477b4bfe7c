package promotions

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// firstGlance is after how long a repository that has refused is looked at for the first time. From one time to the next it is twice as long, up to asksForges.
const firstGlance = 2 * time.Second

// circumstances are what a pull request goes by of the logical cluster.
type circumstances struct {
	pipeline   types.UID
	generation int64
	revision   string
	// named is the name of the Secret, there says whether there was one, and secret and version which.
	named   string
	there   bool
	secret  types.UID
	version string
}

func circumstancesOf(p *weave.Pipeline, step promotion.Step, secret *corev1.Secret) circumstances {
	out := circumstances{pipeline: p.UID, generation: p.Generation, revision: step.Next.Revision, named: step.Promotion.Strategy.PullRequest.SecretRef.Name}
	if secret != nil {
		out.there, out.secret, out.version = true, secret.UID, secret.ResourceVersion
	}
	return out
}

// refusal is how things stood when a pull request was refused. Nothing but calls is lost with it.
type refusal struct {
	circumstances
	// commit is that of the base branch if its content was the reason. Then nothing else is looked at of the repository until it has another.
	commit string
	// waits says that the repository was not the reason, and need not be looked at.
	waits bool
	// at is when it was refused, and looked when the repository was looked at last.
	at, looked time.Time
}

// pause is how long the repository is left alone after it was looked at last: twice as long as before each time.
func (r refusal) pause() time.Duration {
	if r.commit == "" {
		return asksForges
	}
	return min(max(firstGlance, r.looked.Sub(r.at)), asksForges)
}

// refuse remembers that a pull request was refused.
func (c *Controller) refuse(of pullRequest, now refusal) {
	now.at = c.Clock.Now()
	now.looked = now.at
	if !now.waits {
		c.queue.AddAfter(of.Key, now.pause())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals[of] = now
}

// changed reports whether a promotion that was refused is to be tried again, since something has changed that it goes by. What it does not hear of by a watch it
// looks at now and then: the commit of the base branch, and whether a forge that knew nobody does so now.
func (c *Controller) changed(ctx context.Context, p *weave.Pipeline, step promotion.Step) bool {
	if step.Next.Strategy != promotion.PullRequest {
		return true
	}
	of, now := pullRequest{KeyOf(p), step.Environment}, c.Clock.Now()
	secret, err := c.credential(p, step)
	if err != nil {
		return true // which is told then
	}
	last := c.refusal(of, circumstancesOf(p, step, secret), now)
	if last.circumstances != circumstancesOf(p, step, secret) {
		return true
	}
	if last.waits {
		return false
	}
	if left := last.pause() - now.Sub(last.looked); left > 0 {
		c.queue.AddAfter(of.Key, left)
		return false
	}
	if last.commit == "" {
		return true
	}
	base, err := c.Pulls.Base(ctx, request(p, step, secret))
	if err == nil && base != last.commit {
		return true
	}
	last.looked = now
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals[of] = last
	c.queue.AddAfter(of.Key, last.pause())
	return false
}

// refusal returns how things stood when a pull request was refused. After a start that is not known: then they are taken to be as they were, and the repository to have
// been looked at some time before, so that not all of them are asked at once.
func (c *Controller) refusal(of pullRequest, now circumstances, at time.Time) refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.refusals[of]
	if !known {
		last = refusal{circumstances: now, at: of.before(at), looked: of.before(at)}
		c.refusals[of] = last
	}
	return last
}

// SecretChanged has pipelines looked at that were refused what they asked for with a Secret of this name, or since there was none.
func (c *Controller) SecretChanged(secret cache.ObjectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, last := range c.refusals {
		if of.Namespace == secret.Namespace && last.named == secret.Name {
			c.queue.Add(of.Key)
		}
	}
}
