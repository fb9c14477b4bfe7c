package applications

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	deliveryclient "github.com/manifold-dev/manifold/generated/clientset/versioned/typed/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery/automation"
	"github.com/manifold-dev/manifold/pkg/delivery/render"
	"github.com/manifold-dev/manifold/pkg/delivery/render/revision"
)

// history stores the revisions of applications, and deletes those, and releases, that are not kept.
type history struct {
	view    *view
	client  deliveryclient.DeliveryV1alpha1Interface
	secrets coreclient.SecretsGetter
}

// store makes the objects of a revision, its head last. What was begun and cannot be finished is left, and its number is not used again.
func (h *history) store(ctx context.Context, p *plan, r *result, number int64, key string) (*v1alpha1.ApplicationRevision, error) {
	parts, err := r.set.Parts(revision.About{
		Application: p.app, Number: number, Origin: p.found.Origin, Images: r.images, Charts: r.charts, Warnings: r.warnings,
	})
	if err != nil {
		return nil, err
	}
	parts.Head.Annotations = map[string]string{v1alpha1.AnnotationSource: key}
	parts.Head.Spec.Delivery, parts.Head.Spec.Changes = p.delivery, r.changes
	for _, secret := range parts.Secrets {
		if _, err := h.secrets.Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return nil, notStored("Secret", secret.Name, err)
		}
	}
	client := h.client.ApplicationRevisions(p.app.Namespace)
	for _, chunk := range parts.Chunks {
		if _, err := client.Create(ctx, chunk, metav1.CreateOptions{}); err != nil {
			return nil, notStored("ApplicationRevision", chunk.Name, err)
		}
	}
	head, err := client.Create(ctx, parts.Head, metav1.CreateOptions{})
	if err != nil {
		return nil, notStored("ApplicationRevision", parts.Head.Name, err)
	}
	return head, nil
}

// notStored explains why a part of a revision is not there.
func notStored(kind, name string, err error) error {
	err = fmt.Errorf("make %s %s: %w", kind, name, err)
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return fmt.Errorf("%w: %w", render.ErrInvalid, err)
	}
	return err
}

// forget deletes what of the history is not kept: releases, revisions with their parts, and parts that never became a revision.
func (h *history) forget(ctx context.Context, app *v1alpha1.Application, state automation.State) error {
	var errs []error
	named := h.view.named(app)
	state.Parts = h.view.partCounts(app)
	for _, release := range state.SpentReleases(named) {
		errs = append(errs, unlessGone(h.client.Releases(app.Namespace).Delete(ctx, release.Name, that(release.UID))))
	}
	gone := map[string]bool{}
	for _, revision := range state.SpentRevisions(named) {
		gone[revision.Name] = true
		errs = append(errs, h.deleteRevision(ctx, revision))
	}
	return errors.Join(append(errs, h.deleteParts(ctx, app, state, gone))...)
}

// deleteParts deletes chunks and Secrets of revisions that are gone or never came to be. Those with the highest number may be on their way.
func (h *history) deleteParts(ctx context.Context, app *v1alpha1.Application, state automation.State, gone map[string]bool) error {
	latest := state.Latest()
	if latest == nil {
		return nil
	}
	whole := map[int64]bool{}
	for _, revision := range state.Revisions {
		whole[revision.Spec.Number] = !gone[revision.Name]
	}
	var errs []error
	for _, part := range h.view.partsOf(app) {
		if part.IsChunk() && !whole[part.Spec.Number] && part.Spec.Number < latest.Spec.Number && owned(part, app) {
			errs = append(errs, h.deleteRevision(ctx, part))
		}
	}
	for _, secret := range h.view.secretsOf(app) {
		number, ok := numberOf(app, secret)
		if ok && !whole[number] && number < latest.Spec.Number {
			errs = append(errs, unlessGone(h.secrets.Secrets(app.Namespace).Delete(ctx, secret.Name, that(secret.UID))))
		}
	}
	return errors.Join(errs...)
}

// deleteAll deletes the revisions and releases of an application, which mean nothing without it. The garbage collector leaves them where objects
// are orphaned.
func (h *history) deleteAll(ctx context.Context, app *v1alpha1.Application) error {
	of := h.view.state(app)
	var errs []error
	for _, release := range of.Releases {
		errs = append(errs, unlessGone(h.client.Releases(app.Namespace).Delete(ctx, release.Name, that(release.UID))))
	}
	for _, revision := range h.view.partsOf(app) {
		if owned(revision, app) {
			errs = append(errs, h.deleteRevision(ctx, revision))
		}
	}
	for _, secret := range h.view.secretsOf(app) {
		errs = append(errs, unlessGone(h.secrets.Secrets(app.Namespace).Delete(ctx, secret.Name, that(secret.UID))))
	}
	return errors.Join(errs...)
}

func (h *history) deleteRevision(ctx context.Context, revision *v1alpha1.ApplicationRevision) error {
	return unlessGone(h.client.ApplicationRevisions(revision.Namespace).Delete(ctx, revision.Name, that(revision.UID)))
}

// numberOf is the number of the revision that a Secret holds manifests of.
func numberOf(app *v1alpha1.Application, secret *corev1.Secret) (int64, bool) {
	name, _, ok := strings.Cut(secret.Name, "-secrets-")
	number := v1alpha1.RevisionNumber(app.Name, name)
	return number, ok && number > 0
}

// unlessGone leaves out errors about what is no longer there.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// that is for the very object that was looked at.
func that(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(uid)}}
}
