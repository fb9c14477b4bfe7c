package promotions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/pulls"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// reasonUnreadable is that of the event of a pipeline that cannot be read.
const reasonUnreadable = "Unreadable"

// client reaches pipelines.
func (c *Controller) client(k Key) dynamic.ResourceInterface {
	return c.Dynamic.Resource(schema.GroupVersionResource{Group: k.Group, Version: weave.Version, Resource: weave.Resource}).Namespace(k.Namespace)
}

// read returns a pipeline as it is now, nil if it is not there.
func (c *Controller) read(ctx context.Context, k Key) (*weave.Pipeline, error) {
	found, err := c.client(k).Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Pipeline %s of %s: %w", k.ObjectName, k.Group, err)
	}
	return decode(found)
}

func decode(found *unstructured.Unstructured) (*weave.Pipeline, error) {
	text, err := found.MarshalJSON()
	if err != nil {
		return nil, err
	}
	out := &weave.Pipeline{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, &unreadableError{found, err}
	}
	return out, nil
}

// unreadableError says why a pipeline cannot be read, which somebody has defined otherwise than we do.
type unreadableError struct {
	found *unstructured.Unstructured
	err   error
}

// Error names the pipeline.
func (e *unreadableError) Error() string {
	return fmt.Sprintf("Pipeline %s/%s of %s does not read as one: %v", e.found.GetNamespace(), e.found.GetName(), e.found.GroupVersionKind().Group, e.err)
}

// sync promotes what is to be promoted now.
func (c *Controller) sync(ctx context.Context, k Key) error {
	defer c.looking(k)()
	p, err := c.read(ctx, k)
	if unreadable := (*unreadableError)(nil); errors.As(err, &unreadable) {
		c.Recorder.Event(unreadable.found, corev1.EventTypeWarning, reasonUnreadable, delivery.Said(unreadable.Error()))
		return nil // until it is changed
	}
	if err != nil {
		return err
	}
	if p == nil || p.DeletionTimestamp != nil {
		c.forget(k)
		return nil
	}
	for range 2 {
		if begun, err := c.promote(ctx, k, p); err != nil || !begun {
			return err
		}
	}
	message := "the definition of the kind keeps nothing of status.environments.*.promotion: apply config/crds/weave"
	c.Recorder.Event(reference(p), corev1.EventTypeWarning, reasonUnreadable, message)
	return nil // until it is changed
}

// promote does what is decided about a pipeline, and reports whether something has begun that is to be carried out next.
func (c *Controller) promote(ctx context.Context, k Key, p *weave.Pipeline) (begun bool, err error) {
	now := c.Clock.Now()
	decision := promotion.Decide(p, now)
	events := decision.Events
	tell := func(step promotion.Step, status weave.PromotionStatus, event *promotion.Event) {
		told := decision.Environments[step.Environment]
		told.Promotion = &status
		decision.Environments[step.Environment] = told
		if event != nil {
			events = append(events, *event)
		}
	}
	for _, step := range decision.Steps {
		status, event := step.Done(c.carryOut(ctx, p, step))
		tell(step, status, event)
	}
	for _, step := range decision.Open {
		if status, event, changed := c.follow(ctx, p, step); changed {
			tell(step, status, event)
		}
	}
	for _, step := range decision.Refused {
		if c.changed(ctx, p, step) {
			status, event := step.Done(c.carryOut(ctx, p, step))
			tell(step, status, event)
		}
	}
	if len(decision.Steps)+len(decision.Open)+len(decision.Refused) > 0 {
		decision.Condition = promotion.Decide(asTold(p, decision), now).Condition
	}
	written, err := c.write(ctx, k, p, decision)
	if err != nil || !written {
		return false, err
	}
	for _, event := range events {
		c.Recorder.Event(reference(p), event.Type, event.Reason, event.Message)
	}
	if decision.Begun {
		return true, nil
	}
	if again := promotion.Decide(p, now).Again; !again.IsZero() {
		c.queue.AddAfter(k, max(again.Sub(c.Clock.Now()), firstRetry))
	}
	return false, nil
}

// asTold is a pipeline as it is once it is told what was decided.
func asTold(p *weave.Pipeline, decision promotion.Decision) *weave.Pipeline {
	out := *p
	out.Status.Environments = map[string]*weave.EnvironmentStatus{}
	for name, status := range p.Status.Environments {
		if status == nil {
			continue
		}
		one, told := *status, decision.Environments[name]
		one.WaitingStatus, one.Promotion = told.Waiting, told.Promotion
		out.Status.Environments[name] = &one
	}
	return &out
}

// carryOut does one step. What has been done already is not done again.
func (c *Controller) carryOut(ctx context.Context, p *weave.Pipeline, step promotion.Step) promotion.Result {
	switch step.Next.Strategy {
	case promotion.Direct:
		return promotion.Result{Err: c.writeTargets(ctx, p, step)}
	case promotion.Notification:
		return promotion.Result{Err: c.notify(ctx, p, step)}
	case promotion.PullRequest:
		return c.open(ctx, p, step)
	}
	return promotion.Result{Message: "whoever has asked for it carries it out"}
}

// reference names a pipeline in events.
func reference(p *weave.Pipeline) *corev1.ObjectReference {
	version, kind := p.GroupVersionKind().ToAPIVersionAndKind()
	return &corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}
}

// open sees to a pull request.
func (c *Controller) open(ctx context.Context, p *weave.Pipeline, step promotion.Step) promotion.Result {
	of := pullRequest{KeyOf(p), step.Environment}
	c.noteAsked(of, asked{c.Clock.Now(), behind(p, step)})
	secret, err := c.credential(p, step)
	if err != nil {
		return promotion.Result{Err: err}
	}
	if secret == nil {
		c.refuse(of, refusal{circumstances: circumstancesOf(p, step, nil), waits: true})
		return promotion.Result{Refused: true, Err: fmt.Errorf(
			"there is no Secret %s/%s, which is to have the credential of the repository", p.Namespace, step.Promotion.Strategy.PullRequest.SecretRef.Name)}
	}
	result, err := c.call(ctx, p, step, secret)
	refused := pulls.Permanent(err)
	if refused {
		c.refuse(of, refusal{circumstances: circumstancesOf(p, step, secret), commit: pulls.At(err), waits: errors.Is(err, pulls.ErrRefused)})
	}
	return promotion.Result{URL: result.URL, Message: result.Message, Declined: result.State == pulls.Closed, Err: err, Refused: refused}
}

// entitled returns an error if whoever has the pipeline use a Secret or a ServiceAccount for a promotion may not use it himself any more. The status says so within a
// moment, and then nothing is begun: this is for what has been taken away since.
func (c *Controller) entitled(p *weave.Pipeline, step promotion.Step) error {
	if lost := p.LostTo(step.Index, weave.Authors(p), c.May); lost != nil {
		return errors.New(lost.String())
	}
	return nil
}

// credential is the Secret that a pull request is opened with, nil if it is not there.
func (c *Controller) credential(p *weave.Pipeline, step promotion.Step) (*corev1.Secret, error) {
	if err := c.entitled(p, step); err != nil {
		return nil, err
	}
	secret, err := c.Secrets.Secrets(p.Namespace).Get(step.Promotion.Strategy.PullRequest.SecretRef.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}

// request is what is asked for of a repository.
func request(p *weave.Pipeline, step promotion.Step, secret *corev1.Secret) pulls.Request {
	of := step.Promotion.Strategy.PullRequest
	out := pulls.Request{
		Forge: of.Type, URL: of.URL, BaseBranch: of.BaseBranch, Path: of.Path, Credentials: secret.Data,
		Pipeline:    pulls.Pipeline{Group: p.GroupVersionKind().Group, Namespace: p.Namespace, Name: p.Name},
		Environment: step.Environment, Version: versionOf(promotion.VersionsOf(p, step.Index, step.Next.Revision).All()), Known: step.Next.URL,
	}
	if app := p.Spec.AppRef; app != nil {
		out.App.Kind, out.App.Name = app.Kind, app.Name
	}
	for _, target := range p.Spec.Environments[step.Index].Targets {
		out.App.Namespaces = append(out.App.Namespaces, target.Namespace)
	}
	return out
}

// versionOf is a version as pull requests take it: images by their tags, which manifests have apart from the repository.
func versionOf(version promotion.Version) pulls.Version {
	out := pulls.Version{Revision: version.Revision, Images: map[string]string{}}
	for repository, rest := range version.Images {
		if tag := promotion.Tag(rest); tag != "" {
			out.Images[repository] = tag
		}
	}
	return out
}

// asked is when a forge was asked about a pull request, and which version waited behind it then.
type asked struct {
	at     time.Time
	behind string
}

// behind is the version that the environment before has instead of the one that a pull request is for, "" if it has that.
func behind(p *weave.Pipeline, step promotion.Step) string {
	if step.Index == 0 {
		return ""
	}
	before := p.Spec.Environments[step.Index-1]
	if revision := promotion.Observe(before, p.Status.Environments[before.Name]).Revision; revision != step.Next.Revision {
		return revision
	}
	return ""
}

// follow asks the forge now and then about a pull request that waits for people, and at once when a version comes to wait behind it: that need not wait for one
// that somebody has closed.
func (c *Controller) follow(ctx context.Context, p *weave.Pipeline, step promotion.Step) (status weave.PromotionStatus, event *promotion.Event, changed bool) {
	of, now := pullRequest{KeyOf(p), step.Environment}, c.Clock.Now()
	last := c.lastAsked(of, now)
	waits := behind(p, step)
	if left := asksForges - now.Sub(last.at); left > 0 && (waits == "" || waits == last.behind) {
		c.queue.AddAfter(of.Key, left)
		return status, nil, false
	}
	c.queue.AddAfter(of.Key, asksForges)
	result := c.open(ctx, p, step)
	status = step.Next
	switch {
	case result.Err != nil:
		status.Message = delivery.Said("the pull request cannot be looked at: " + result.Err.Error())
	case result.Declined:
		step.Next.Attempts--
		status, event = step.Done(result)
	default:
		status.URL, status.Message = cmp.Or(result.URL, status.URL), delivery.Said(result.Message)
	}
	return status, event, status != step.Next || result.Declined
}

// lastAsked is when the forge was asked about a pull request. After a start that is anywhere in the time before, so that not all of them are asked for at
// once.
func (c *Controller) lastAsked(of pullRequest, now time.Time) asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.asked[of]
	if !known {
		last = asked{at: of.before(now)}
		c.asked[of] = last
	}
	return last
}

// before is a time within asksForges before now, which is another for each pull request.
func (of pullRequest) before(now time.Time) time.Time {
	hash := fnv.New32a()
	_, _ = fmt.Fprint(hash, of) // it never fails
	return now.Add(-time.Duration(hash.Sum32()) % asksForges)
}

func (c *Controller) noteAsked(of pullRequest, now asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[of] = now
}

// forget drops what is remembered of a pipeline that is gone.
func (c *Controller) forget(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.asked, func(of pullRequest, _ asked) bool { return of.Key == k })
	maps.DeleteFunc(c.refusals, func(of pullRequest, _ refusal) bool { return of.Key == k })
}
