package promotions

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// KeyHMAC is the key of a Secret under which it has what signs calls.
const KeyHMAC = "hmac-key"

// reasonWebhook is that of events about calls that cannot be heard, whoever makes them.
const reasonWebhook = "WebhookUnusable"

// Find returns the pipeline of a name, nil if there is none. Where both groups have one it is that of the newer.
func (c *Controller) Find(ctx context.Context, name cache.ObjectName) (*weave.Pipeline, error) {
	for _, version := range weave.GroupVersions {
		p, err := c.read(ctx, Key{version.Group, name})
		if err != nil || p != nil {
			return p, err
		}
	}
	return nil, nil
}

// SigningKey returns what a Secret of a pipeline's namespace signs calls with. If there is nothing, or nothing that counts, the pipeline's events tell it.
func (c *Controller) SigningKey(p *weave.Pipeline, secret string) []byte {
	if lost := p.LostKey(secret, weave.Authors(p), c.May); lost != nil {
		c.Recorder.Eventf(reference(p), corev1.EventTypeWarning, reasonWebhook, "a call is not believed: %s", lost)
		return nil
	}
	found, err := c.Secrets.Secrets(p.Namespace).Get(secret)
	if err != nil {
		c.Recorder.Eventf(reference(p), corev1.EventTypeWarning, reasonWebhook, "a call cannot be checked: Secret %s/%s: %v", p.Namespace, secret, err)
		return nil
	}
	if len(found.Data[KeyHMAC]) == 0 {
		c.Recorder.Eventf(reference(p), corev1.EventTypeWarning, reasonWebhook, "a call cannot be checked: Secret %s/%s has no key %s", p.Namespace, secret, KeyHMAC)
	}
	return found.Data[KeyHMAC]
}

// Look has a pipeline looked at, and returns how it is then; nil if it is gone.
func (c *Controller) Look(ctx context.Context, p *weave.Pipeline) (*weave.Pipeline, error) {
	k := KeyOf(p)
	if err := c.look(ctx, k); err != nil {
		return nil, err
	}
	return c.read(ctx, k)
}

// Ask asks for a version as a person would. It is refused if the version does not wait for that any more.
func (c *Controller) Ask(ctx context.Context, p *weave.Pipeline, environment, revision, by string) (waits bool, err error) {
	k := KeyOf(p)
	p = &weave.Pipeline{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta, Spec: p.Spec, Status: p.Status}
	there, err := c.patch(ctx, k, p, func(before own) own {
		at := before.Environments[environment]
		if waits = at != nil && at.WaitingStatus != nil && at.WaitingStatus.Revision == revision; !waits {
			return before
		}
		after := own{Environments: maps.Clone(before.Environments), Conditions: before.Conditions}
		asked := *at
		asked.Asked = &weave.Ask{Revision: revision, By: by, At: metav1.NewTime(c.Clock.Now()), Message: "by a call of the webhook"}
		after.Environments[environment] = &asked
		return after
	})
	if err != nil {
		return false, fmt.Errorf("ask for %s in %s: %w", revision, environment, err)
	}
	return there && waits, nil
}
