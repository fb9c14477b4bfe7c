package promotions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// mostConflicts is how often a write is tried again because others have written meanwhile.
const mostConflicts = 10

// own is what a status has of this controller's. Conditions are a list, which a patch replaces as one: therefore no write goes by without the version that
// it was made of.
type own struct {
	Environments map[string]*ownEnvironment `json:"environments,omitempty"`
	Conditions   []metav1.Condition         `json:"conditions,omitempty"`
}

type ownEnvironment struct {
	WaitingStatus *weave.WaitingStatus   `json:"waitingStatus,omitempty"`
	Promotion     *weave.PromotionStatus `json:"promotion,omitempty"`
	// Asked is written where a webhook asks, see ask.
	Asked *weave.Ask `json:"asked,omitempty"`
}

// owned is what the status of a pipeline has of this controller's.
func owned(p *weave.Pipeline) own {
	out := own{Environments: map[string]*ownEnvironment{}, Conditions: slices.Clone(p.Status.Conditions)}
	for name, status := range p.Status.Environments {
		if status != nil {
			out.Environments[name] = &ownEnvironment{WaitingStatus: status.WaitingStatus, Promotion: status.Promotion}
		}
	}
	return out
}

// write tells what was decided, where that differs from what is told, and returns whether the pipeline is still there. Others may write theirs meanwhile. The pipeline is
// afterwards as it was written.
func (c *Controller) write(ctx context.Context, k Key, p *weave.Pipeline, decision promotion.Decision) (bool, error) {
	return c.patch(ctx, k, p, func(before own) own {
		after := own{Environments: maps.Clone(before.Environments), Conditions: slices.Clone(before.Conditions)}
		for name := range after.Environments {
			if _, decided := decision.Environments[name]; !decided {
				after.Environments[name] = &ownEnvironment{} // it is in the pipeline no more
			}
		}
		for name, told := range decision.Environments {
			if after.Environments[name] == nil && told == (promotion.Told{}) {
				continue
			}
			after.Environments[name] = &ownEnvironment{WaitingStatus: told.Waiting, Promotion: told.Promotion}
		}
		meta.SetStatusCondition(&after.Conditions, decision.Condition)
		return after
	})
}

// patch changes what a status has of this controller's.
func (c *Controller) patch(ctx context.Context, k Key, p *weave.Pipeline, change func(own) own) (bool, error) {
	uid := p.UID
	for range mostConflicts {
		before := owned(p)
		body, err := patchOf(p, before, change(before))
		if err != nil || body == nil {
			return err == nil, err
		}
		stored, err := c.client(k).Patch(ctx, k.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, "status")
		switch {
		case err == nil:
			written, err := decode(stored)
			if err != nil {
				return false, err
			}
			*p = *written
			return true, nil
		case apierrors.IsNotFound(err):
			return false, nil
		case !apierrors.IsConflict(err):
			return false, fmt.Errorf("write the status of Pipeline %s of %s: %w", k.ObjectName, k.Group, err)
		}
		latest, err := c.read(ctx, k)
		if err != nil {
			return false, err
		}
		if latest == nil || latest.UID != uid {
			return false, nil
		}
		*p = *latest
	}
	return false, fmt.Errorf("write the status of Pipeline %s of %s: others have written %d times meanwhile", k.ObjectName, k.Group, mostConflicts)
}

// patchOf returns the patch that makes one of the other, nil if they are the same.
func patchOf(p *weave.Pipeline, before, after own) ([]byte, error) {
	was, err := json.Marshal(map[string]any{"status": before})
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(map[string]any{"status": after})
	if err != nil {
		return nil, err
	}
	difference, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(difference, &patch); err != nil {
		return nil, err
	}
	if len(patch) == 0 {
		return nil, nil
	}
	patch["metadata"] = map[string]any{"uid": p.UID, "resourceVersion": p.ResourceVersion}
	return json.Marshal(patch)
}
