package promotions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/manifold-dev/manifold/pkg/delivery/controller/objects"
	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// writer writes versions into the objects of targets by the rights of a ServiceAccount.
type writer struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	// as names the account for people.
	as string
}

// writeTargets writes a version into all targets of an environment. One that fails does not keep the others from it.
func (c *Controller) writeTargets(ctx context.Context, p *weave.Pipeline, step promotion.Step) error {
	account := objects.Account{Namespace: p.Namespace, ServiceAccount: step.Promotion.Strategy.Direct.ServiceAccountName}
	if account.ServiceAccount == "" {
		return errors.New("no ServiceAccount is named to write as") // without one it would be as this controller
	}
	if err := c.entitled(p, step); err != nil {
		return err
	}
	client, err := c.Objects(account)
	if err != nil {
		return err
	}
	w := writer{client: client, mapper: c.Mapper, as: "ServiceAccount " + account.Namespace + "/" + account.ServiceAccount}
	versions := promotion.VersionsOf(p, step.Index, step.Next.Revision)
	var errs []error
	for _, target := range p.Spec.Environments[step.Index].Targets {
		workloads := workloadsOf(p, step.Environment, target)
		if len(workloads) == 0 {
			errs = append(errs, fmt.Errorf("target %s has nothing of the app that a version could be written into", promotion.Name(target)))
		}
		for _, of := range workloads {
			version, err := versions.Of(of.Kind.Kind, of.Name)
			if err == nil {
				err = w.write(ctx, target, of, version)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// workloadsOf are what a target runs of the app, or else the app itself.
func workloadsOf(p *weave.Pipeline, environment string, target weave.Target) (out []promotion.Reference) {
	app := p.Spec.AppRef
	var kind schema.GroupKind
	if app != nil {
		kind = schema.FromAPIVersionAndKind(app.APIVersion, app.Kind).GroupKind()
	}
	if status := p.Status.Environments[environment]; status != nil {
		if of := promotion.StatusOf(target, status.Targets); of != nil {
			for _, w := range of.Workloads {
				is, known := promotion.KindOf(w.Kind)
				if app != nil && w.Kind == app.Kind {
					is, known = kind, true
				}
				if known {
					out = append(out, promotion.Reference{Kind: is, Namespace: target.Namespace, Name: w.Name})
				}
			}
		}
	}
	if len(out) == 0 && app != nil {
		out = append(out, promotion.Reference{Kind: kind, Namespace: target.Namespace, Name: app.Name})
	}
	return out
}

// write writes a version into a workload of a target, or into that which has the version of it.
func (w writer) write(ctx context.Context, target weave.Target, of promotion.Reference, version promotion.Version) error {
	var err error
	for range mostConflicts {
		if err = w.try(ctx, target, of, version); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

func (w writer) try(ctx context.Context, target weave.Target, of promotion.Reference, version promotion.Version) error {
	live, resource, err := w.get(ctx, target, of)
	if err != nil {
		return err
	}
	if source, elsewhere := promotion.VersionIn(live); elsewhere {
		if source.Namespace != target.Namespace {
			return fmt.Errorf("%s gets its version of %s in namespace %s, which is not the one of the target", said(of), source.Kind.Kind, source.Namespace)
		}
		of = source
		if live, resource, err = w.get(ctx, target, of); err != nil {
			return err
		}
	}
	before := live.DeepCopy()
	changed, err := promotion.Edit(live, version)
	if err != nil || !changed {
		return err
	}
	patch, err := difference(before, live)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, of.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil {
		return fmt.Errorf("write version %s into %s as %s: %w", version.Revision, said(of), w.as, err)
	}
	return nil
}

// get reads an object of a target.
func (w writer) get(ctx context.Context, target weave.Target, of promotion.Reference) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	mapping, err := w.mapper.RESTMapping(of.Kind)
	if meta.IsNoMatchError(err) {
		w.mapper.Reset() // it may have been defined since
		mapping, err = w.mapper.RESTMapping(of.Kind)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find how %s is served: %w", said(of), err)
	}
	resource := w.client.Resource(mapping.Resource).Namespace(of.Namespace)
	live, err := resource.Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && target.ClusterRef != nil:
		return nil, nil, fmt.Errorf(
			"%s is not in the logical cluster: what is in cluster %q alone is not written directly; promote by pull-request or notification", said(of), target.ClusterRef.Name)
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("there is no %s", said(of))
	case err != nil:
		return nil, nil, fmt.Errorf("read %s as %s: %w", said(of), w.as, err)
	}
	return live, resource, nil
}

func said(of promotion.Reference) string { return of.Kind.Kind + " " + of.Namespace + "/" + of.Name }

// difference returns the patch that makes one of the other, if it is still the one.
func difference(before, after *unstructured.Unstructured) ([]byte, error) {
	was, err := before.MarshalJSON()
	if err != nil {
		return nil, err
	}
	is, err := after.MarshalJSON()
	if err != nil {
		return nil, err
	}
	text, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(text, &patch); err != nil {
		return nil, err
	}
	patch["metadata"] = map[string]any{"uid": before.GetUID(), "resourceVersion": before.GetResourceVersion()}
	return json.Marshal(patch)
}
