package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

// through has the plugin run a stage until it says how that has ended, or ctx ends. Whatever it says is a stranger's.
func (c *Calls) through(ctx context.Context, one *call) delivery.Outcome {
	var before int64
	for tries := 1; ; tries++ {
		plugin, err := c.ready(ctx, one, before)
		if err != nil {
			return over(err)
		}
		outcome, lost := c.execute(ctx, one, plugin)
		switch {
		case ctx.Err() != nil:
			return over(ctx.Err())
		case lost == "":
			return outcome
		case tries == mostTries:
			return failed("plugin %q has ended %d times while it ran the stage; see why in the status of the Plugin, then retry the stage; at last: %s",
				one.plugin, tries, delivery.Said(lost))
		}
		before = plugin.Incarnation
		c.say(one, fmt.Sprintf("plugin %q has ended while it ran the stage, which is entered again when it is back, try %d of %d: %s", one.plugin, tries+1, mostTries, delivery.Said(lost)))
	}
}

// over is what has come of a call that was given up.
func over(err error) delivery.Outcome {
	if errors.Is(err, context.DeadlineExceeded) {
		return failed("its plugin has not ended it in time")
	}
	return delivery.Outcome{Phase: delivery.Cancelled, Message: "it was given up"}
}

func failed(format string, args ...any) delivery.Outcome {
	return delivery.Outcome{Phase: delivery.Failed, Message: fmt.Sprintf(format, args...)}
}

// ready waits until the plugin is ready. One that has been lost is waited for until the host has noticed: it is there as before for some seconds.
func (c *Calls) ready(ctx context.Context, one *call, lost int64) (plugins.Plugin, error) {
	var patience <-chan time.Time
	if lost != 0 {
		timer := c.Clock.NewTimer(noticed)
		defer timer.Stop()
		patience = timer.C()
	}
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		plugin, why := c.Plugins.Get(one.plugin)
		if why == "" && plugin.Conn != nil && (lost == 0 || plugin.Incarnation != lost) {
			return plugin, nil
		}
		if why != "" {
			lost = 0
			c.say(one, fmt.Sprintf("waiting for plugin %q: %s", one.plugin, delivery.Said(why)))
		}
		select {
		case <-ctx.Done():
			return plugins.Plugin{}, ctx.Err()
		case <-changed:
		case <-patience:
			lost = 0
		}
	}
}

// execute calls the plugin once. If the plugin was lost over that, lost says how.
func (c *Calls) execute(ctx context.Context, one *call, plugin plugins.Plugin) (outcome delivery.Outcome, lost string) {
	stage := one.Release.Status.Plan.ByPlugin(one.Stage)
	if why := lacks(one, plugin); why != "" {
		return failed("%s", why), ""
	}
	if !slices.Contains(plugin.Stages, stage.Name) {
		return failed("plugin %q has no stage %s any more; it has %s", one.plugin, stage.Name, delivery.Said(strings.Join(plugin.Stages, ", "))), ""
	}
	request, cleanup, err := c.request(ctx, one, plugin)
	if err != nil {
		return failed("%s", delivery.Said(err.Error())), "" // unless ctx has ended
	}
	defer cleanup()
	c.enter(one)
	answer, err := deployment.NewDeploymentServiceClient(plugin.Conn).ExecuteStage(ctx, request)
	switch {
	case ctx.Err() != nil:
		return delivery.Outcome{}, ""
	case status.Code(err) == codes.DeadlineExceeded && late(ctx):
		return over(context.DeadlineExceeded), "" // the plugin's clock was a moment ahead
	}
	if err == nil && answer.GetStatus() == model.StageStatus_STAGE_SUCCESS {
		return outcomeOf(one, answer), ""
	}
	if how := c.gone(one, plugin, err); how != "" {
		return delivery.Outcome{}, how
	}
	if err != nil {
		return refused(one, stage.Name, err), ""
	}
	return outcomeOf(one, answer), ""
}

// late reports whether the time of a call is over, or as good as that.
func late(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return bounded && time.Until(end) < time.Second
}

// lacks says which deploy target of the plan a plugin does not have. It would answer with an error of its own, which nobody understands.
func lacks(one *call, plugin plugins.Plugin) string {
	for _, planned := range one.Release.Status.Plan.Plugins {
		if planned.Name != one.plugin {
			continue
		}
		for _, name := range planned.DeployTargets {
			if !slices.ContainsFunc(plugin.Targets, func(t plugins.Target) bool { return t.Name == name }) {
				return fmt.Sprintf("plugin %q has no deploy target %q any more: retry the stage when it has, or release again", one.plugin, name)
			}
		}
	}
	return ""
}

// request is what the plugin is asked, with copies of the files that are its own for as long as it takes.
func (c *Calls) request(ctx context.Context, one *call, plugin plugins.Plugin) (*deployment.ExecuteStageRequest, func(), error) {
	stage, position := one.Release.Status.Plan.Stage(one.Stage)
	of := deployments.Of(deployments.Release{
		Application: one.Application, Release: one.Release, Revision: one.Revision, Running: one.Before, Plan: one.Release.Status.Plan,
		Plugin: one.plugin, Called: plugin.Called,
	})
	entered := deployments.Stage(stage, position, one.Release)
	entered.Status, entered.RetriedCount, entered.CompletedAt = model.StageStatus_STAGE_RUNNING, max(0, one.Attempt-1), 0
	input := &deployment.ExecutePluginInput{Deployment: of, Stage: entered}
	switch {
	case stage.With != nil && len(stage.With.Raw) > 0:
		input.StageConfig = stage.With.Raw
	case one.Release.Status.Plan.Strategy == v1alpha1.StrategyPipeline:
		input.StageConfig = []byte("{}")
	}
	for {
		cleanup, err := c.sources(ctx, one, input)
		switch {
		case err == nil:
			return &deployment.ExecuteStageRequest{Input: input}, cleanup, nil
		case errors.Is(err, deployments.ErrFiles):
			return nil, nil, err
		}
		again := c.Clock.After(sourcesAgain)
		c.say(one, "waiting for the files of the revision: "+delivery.Said(err.Error()))
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-again:
		}
	}
}

// sources puts the files into a request.
func (c *Calls) sources(ctx context.Context, one *call, into *deployment.ExecutePluginInput) (cleanup func(), err error) {
	var clean func() error
	into.TargetDeploymentSource, into.RunningDeploymentSource, clean, err = deployments.Both(ctx, c.Sources, one.Application, one.Revision, one.Before, one.plugin)
	if err != nil {
		return nil, err
	}
	return func() {
		if err := clean(); err != nil {
			klog.FromContext(ctx).Error(err, "The files that a plugin has worked with cannot be removed; the next start tries again", "plugin", one.plugin)
		}
	}, nil
}

// enter notes that the plugin is called now.
func (c *Calls) enter(one *call) {
	c.mu.Lock()
	one.entry = max(one.entry+1, c.Clock.Now().UnixNano())
	c.mu.Unlock()
	c.say(one, "")
}

// gone says how a plugin was lost in a call that has not succeeded, "" if it was not: a plugin that is stopped has its stages fail, though there is
// nothing wrong with them.
func (c *Calls) gone(one *call, called plugins.Plugin, err error) string {
	switch now, why := c.Plugins.Get(one.plugin); {
	case why != "":
		return why
	case now.Incarnation != called.Incarnation:
		return "it was started again"
	case status.Code(err) == codes.Unavailable:
		return status.Convert(err).Message()
	}
	return ""
}

// refused is what has come of a stage about which the plugin answers with an error.
func refused(one *call, stage string, err error) delivery.Outcome {
	says := status.Convert(err)
	if says.Code() == codes.Unimplemented {
		return failed("plugin %q runs no stages, though it says that it has %s", one.plugin, stage)
	}
	return failed("plugin %q: %s: %s", one.plugin, says.Code(), delivery.Said(says.Message()))
}

// outcomeOf is what a plugin says of a stage.
func outcomeOf(one *call, answer *deployment.ExecuteStageResponse) delivery.Outcome {
	phase, words := delivery.Phase(""), ""
	switch answer.GetStatus() {
	case model.StageStatus_STAGE_SUCCESS:
		phase, words = delivery.Succeeded, "is done"
	case model.StageStatus_STAGE_FAILURE:
		phase, words = delivery.Failed, fmt.Sprintf("has failed: see why by manifold release logs %s --stage %s", one.Release.Name, one.Stage)
	case model.StageStatus_STAGE_CANCELLED:
		phase, words = delivery.Cancelled, "has cancelled it"
	case model.StageStatus_STAGE_SKIPPED:
		phase, words = delivery.Skipped, "has left it out"
	case model.StageStatus_STAGE_EXITED:
		phase, words = delivery.Exited, "has ended the pipeline"
	default:
		return failed("plugin %q answers that the stage is in state %d, which is none of one that has ended", one.plugin, answer.GetStatus())
	}
	if said := answer.GetMessage(); said != "" {
		words = delivery.Said(said)
	}
	return delivery.Outcome{Phase: phase, Message: fmt.Sprintf("plugin %q: %s", one.plugin, words)}
}
