package planning

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/planpreview"
)

// mostSummary bounds what is shown of what a plugin would change in a deploy target, in bytes.
const mostSummary = 500

// previews are what plugins would change in each of their deploy targets. They are shown and nothing depends on them, so that it is enough to say who
// cannot tell.
func (a *asking) previews(ctx context.Context) (out []v1alpha1.PluginPreview, err error) {
	for i := range a.members {
		of := &a.members[i]
		if len(of.targets) == 0 {
			continue
		}
		var answer *planpreview.GetPlanPreviewResponse
		supported, err := a.withSources(ctx, of, "GetPlanPreview", "", func(ctx context.Context, input *deployment.PlanPluginInput, o ...grpc.CallOption) (err error) {
			answer, err = planpreview.NewPlanPreviewServiceClient(of.Conn).GetPlanPreview(ctx, &planpreview.GetPlanPreviewRequest{
				ApplicationId: input.Deployment.ApplicationId, ApplicationName: input.Deployment.ApplicationName, PipedId: deployments.Piped,
				DeployTargets: of.targets, TargetDeploymentSource: input.TargetDeploymentSource, RunningDeploymentSource: input.RunningDeploymentSource,
			}, o...)
			return err
		})
		switch wait := (WaitError{}); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &wait):
			return nil, err
		case err == nil && !supported:
			continue
		}
		out = append(out, of.previewed(answer, err)...)
	}
	return out, nil
}

// previewed has a line for each deploy target that was asked about. What is said of others does not count.
func (m *member) previewed(answer *planpreview.GetPlanPreviewResponse, err error) (out []v1alpha1.PluginPreview) {
	said := map[string]*planpreview.PlanPreviewResult{}
	for _, result := range answer.GetResults() {
		if result != nil {
			said[result.DeployTarget] = result
		}
	}
	for _, target := range m.targets {
		made := v1alpha1.PluginPreview{Plugin: m.Name, DeployTarget: target}
		switch result := said[target]; {
		case err != nil:
			made.Summary = text.Line("not known: "+err.Error(), mostSummary)
		case result == nil:
			made.Summary = fmt.Sprintf("not known: plugin %q does not say", m.Name)
		default:
			made.Summary, made.NoChange = text.Line(result.Summary, mostSummary), result.NoChange
		}
		out = append(out, made)
	}
	return out
}
