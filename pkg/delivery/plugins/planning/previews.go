package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/drifts"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

// mostSummary bounds what is shown of what a plugin would change in a deploy target, in bytes.
const mostSummary = 500

// notKnown is what a summary begins with that says why there is none.
const notKnown = "not known: "

// Preview asks the plugins of an application what a release would change, of which there is none. Those that cannot tell are told of as such.
func (p *Planner) Preview(ctx context.Context, q Question) (out []v1alpha1.PluginPreview, err error) {
	q.Release = &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: q.Application.Namespace, Name: q.Application.Name}}
	a := &asking{Planner: p, Question: q}
	for i := range a.Application.Spec.Plugins {
		of := &a.Application.Spec.Plugins[i]
		member, err := a.member(of, i)
		if err != nil {
			out = append(out, unasked(of, err)...)
			continue
		}
		found, err := a.preview(ctx, &member)
		if err != nil {
			found = member.previewed(forecast{previews: true, err: err})
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out = append(out, found...)
	}
	return out, nil
}

// unasked has a line for each deploy target that an application names of a plugin that cannot be asked, one if it names none.
func unasked(of *v1alpha1.ApplicationPlugin, why error) (out []v1alpha1.PluginPreview) {
	for _, target := range of.DeployTargets {
		out = append(out, unknown(of.Name, target, why.Error()))
	}
	if len(out) == 0 {
		out = append(out, unknown(of.Name, "", why.Error()))
	}
	return out
}

func unknown(plugin, target, why string) v1alpha1.PluginPreview {
	return v1alpha1.PluginPreview{Plugin: plugin, DeployTarget: target, Unknown: true, Summary: text.Line(notKnown+why, mostSummary)}
}

// previews are what plugins would change in each of their deploy targets. They are shown and nothing depends on them, so that it is enough to say who
// cannot tell.
func (a *asking) previews(ctx context.Context) (out []v1alpha1.PluginPreview, err error) {
	for i := range a.members {
		found, err := a.preview(ctx, &a.members[i])
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && found[0].Unsupported {
			continue
		}
		out = append(out, found...)
	}
	return out, nil
}

// preview asks one plugin. An error is that it has gone, or that nobody waits for the answer any more.
func (a *asking) preview(ctx context.Context, of *member) ([]v1alpha1.PluginPreview, error) {
	if len(of.targets) == 0 {
		return nil, nil
	}
	var said forecast
	var err error
	said.previews, err = a.withSources(ctx, of, "GetPlanPreview", "", func(ctx context.Context, input *deployment.PlanPluginInput, o ...grpc.CallOption) (err error) {
		said.answer, err = planpreview.NewPlanPreviewServiceClient(of.Conn).GetPlanPreview(ctx, &planpreview.GetPlanPreviewRequest{
			ApplicationId: input.Deployment.ApplicationId, ApplicationName: input.Deployment.ApplicationName, PipedId: deployments.Piped,
			DeployTargets: of.targets, TargetDeploymentSource: input.TargetDeploymentSource, RunningDeploymentSource: input.RunningDeploymentSource,
		}, o...)
		return err
	})
	if said.err = err; lost(ctx, err) {
		return nil, cmp.Or(ctx.Err(), err)
	}
	if a.Running != nil && drifts.Served(of.Plugin) {
		said.drifts, err = a.withSources(ctx, of, "GetDrift", "", func(ctx context.Context, input *deployment.PlanPluginInput, o ...grpc.CallOption) (err error) {
			said.drift, err = drifts.Ask(ctx, of.Plugin, drifts.Question{
				Application: a.Application, Targets: of.targets, From: input.RunningDeploymentSource, To: input.TargetDeploymentSource,
			}, o...)
			return err
		})
		if said.driftErr = err; lost(ctx, err) {
			return nil, cmp.Or(ctx.Err(), err)
		}
	}
	return of.previewed(said), nil
}

// lost reports whether an error is none of the answer: the plugin has gone, or nobody waits any more.
func lost(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.As(err, &WaitError{})
}

// forecast is what a plugin has told about what a release would change.
type forecast struct {
	// previews is whether it supports previews, of which answer is one unless there was an error, and drifts the same of how two revisions differ.
	previews bool
	answer   *planpreview.GetPlanPreviewResponse
	err      error
	drifts   bool
	drift    map[string]drifts.Found
	driftErr error
}

// previewed has a line for each deploy target that was asked about. What is said of others does not count.
func (m *member) previewed(said forecast) (out []v1alpha1.PluginPreview) {
	of := map[string]*planpreview.PlanPreviewResult{}
	for _, result := range said.answer.GetResults() {
		if result != nil {
			of[result.DeployTarget] = result
		}
	}
	for _, target := range m.targets {
		made := v1alpha1.PluginPreview{Plugin: m.Name, DeployTarget: target}
		switch result := of[target]; {
		case said.err != nil:
			made = unknown(m.Name, target, said.err.Error())
		case !said.previews:
			made.Unsupported = true
		case result == nil:
			made = unknown(m.Name, target, fmt.Sprintf("plugin %q does not say", m.Name))
		default:
			made.Summary, made.NoChange = text.Line(result.Summary, mostSummary), result.NoChange
		}
		differs(&made, said, target)
		out = append(out, made)
	}
	return out
}

// differs adds how the revision differs from the one before, as the plugin says. It stands in for a preview where there is none.
func differs(made *v1alpha1.PluginPreview, said forecast, target string) {
	found := said.drift[target]
	wrong := found.Wrong
	if said.driftErr != nil {
		wrong = said.driftErr.Error()
	}
	switch {
	case !said.drifts && said.driftErr == nil:
		return
	case wrong != "" && made.Unsupported:
		*made = unknown(made.Plugin, target, wrong)
		return
	case wrong != "":
		return // the preview tells enough
	}
	made.Differences, made.DifferenceCount = found.Differences, found.Count
	if made.Unsupported {
		made.Unsupported, made.NoChange, made.Summary = false, found.Count == 0, counted(found)
	}
}

// counted says how many resources differ.
func counted(found drifts.Found) string {
	if found.Count == 0 {
		return "nothing differs from the revision that runs"
	}
	return fmt.Sprintf("resources that differ from the revision that runs: %d", found.Count)
}
