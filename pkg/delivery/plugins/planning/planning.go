// Package planning asks plugins how a release goes: whether it needs the pipeline, by which stages, and what it consists of. What they answer is input
// from strangers. It is compared with what they were asked, and bounded.
package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery/planner"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/deployments"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/deployment"
	"github.com/manifold-dev/manifold/pkg/delivery/plugins/wire/model"
)

const (
	// usual is how long a plugin may take to answer.
	usual = 30 * time.Second
	// mostAnswer bounds an answer, in bytes.
	mostAnswer = 4 << 20
	// mostNames bounds what a message shows of names, in bytes, and mostSaid what it shows of a plugin's own words.
	mostNames = 120
	mostSaid  = 160
)

// WaitError says what a release waits for before it can be planned.
type WaitError struct{ What string }

// Error implements error.
func (e WaitError) Error() string { return e.What }

func waits(format string, arguments ...any) error {
	return WaitError{fmt.Sprintf(format, arguments...)}
}

// Question is about a release that is to begin.
type Question struct {
	// Application is as it counts for the revision.
	Application *v1alpha1.Application
	Release     *v1alpha1.Release
	Revision    *v1alpha1.ApplicationRevision
	// Running is the revision that was released with success before, nil if there is none.
	Running *v1alpha1.ApplicationRevision
	// Change is what of the strategy can be told without plugins.
	Change planner.Change
}

// Answer is how the release goes.
type Answer struct {
	Strategy, Reason string
	// Stages are those of the release, each with its id, those that take it back last.
	Stages   []v1alpha1.Stage
	Plugins  []v1alpha1.PlannedPlugin
	Versions []v1alpha1.ArtifactVersion
	Previews []v1alpha1.PluginPreview
}

// Planner asks plugins.
type Planner struct {
	Directory plugins.Directory
	Sources   deployments.Sources
	// Timeout bounds each answer. The zero value is the usual time.
	Timeout time.Duration
}

// Plan asks all plugins of an application. A WaitError says what is waited for; any other error is why the release cannot be planned.
func (p *Planner) Plan(ctx context.Context, q Question) (*Answer, error) {
	a := &asking{Planner: p, Question: q}
	if err := a.gather(); err != nil {
		return nil, err
	}
	stages, err := a.owned()
	if err != nil {
		return nil, err
	}
	out := &Answer{}
	for i := range a.members {
		of := &a.members[i]
		out.Plugins = append(out.Plugins, v1alpha1.PlannedPlugin{Name: of.Name, DeployTargets: of.targets})
	}
	if out.Strategy, out.Reason, err = a.strategy(ctx); err != nil {
		return nil, err
	}
	if out.Strategy == planner.Pipeline {
		out.Stages, err = a.pipeline(ctx, stages)
	} else {
		out.Stages, err = a.quick(ctx)
	}
	if err != nil {
		return nil, err
	}
	var untold string
	if out.Versions, untold, err = a.versions(ctx); untold != "" {
		out.Reason += "; " + untold
	}
	if err == nil {
		out.Previews, err = a.previews(ctx)
	}
	return out, err
}

// asking is one question on its way.
type asking struct {
	*Planner
	Question
	members []member
}

// member is a plugin that an application uses.
type member struct {
	plugins.Plugin
	service deployment.DeploymentServiceClient
	targets []string
}

// gather finds the plugins of the application.
func (a *asking) gather() error {
	for i := range a.Application.Spec.Plugins {
		found, err := a.member(&a.Application.Spec.Plugins[i], i)
		if err != nil {
			return err
		}
		a.members = append(a.members, found)
	}
	return nil
}

// member finds a plugin, which is at a place among those of the application.
func (a *asking) member(of *v1alpha1.ApplicationPlugin, place int) (member, error) {
	found, why := a.Directory.Get(of.Name)
	if why != "" {
		return member{}, waits("spec.plugins[%d]: plugin %q is not ready: %s", place, of.Name, text.Line(why, mostSaid))
	}
	targets, err := Targets(of, found.Targets, place)
	if err != nil {
		return member{}, err
	}
	return member{Plugin: found, service: deployment.NewDeploymentServiceClient(found.Conn), targets: targets}, nil
}

// Targets are the deploy targets that an application goes to by a plugin, which is at a place among its plugins: those that it names, which the plugin must
// have, or all.
func Targets(of *v1alpha1.ApplicationPlugin, there []plugins.Target, place int) ([]string, error) {
	var known []string
	for _, target := range there {
		known = append(known, target.Name)
	}
	for i, name := range of.DeployTargets {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("spec.plugins[%d].deployTargets[%d]: plugin %q has no deploy target %q; it has %s", place, i, of.Name, name, listed(known))
		}
	}
	if len(of.DeployTargets) > 0 {
		return of.DeployTargets, nil
	}
	return known, nil
}

// listed shows names, as many as fit.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return text.Line(strings.Join(names, ", "), mostNames)
}

// owned are the stages of the pipeline, each with the plugin that runs it. A stage that is built in has none.
func (a *asking) owned() ([]v1alpha1.Stage, error) {
	spec := &a.Application.Spec
	if spec.Pipeline == nil {
		return nil, nil
	}
	out := slices.Clone(spec.Pipeline.Stages)
	for i := range out {
		stage := &out[i]
		stage.ID = v1alpha1.StageID(stage, i)
		if !spec.RunByPlugin(stage) {
			continue
		}
		if stage.With == nil {
			stage.With = nothing.DeepCopy()
		}
		if err := a.owner(stage, i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// owner finds the plugin of a stage among those of the application. One that only waits is built in where none of them offers it.
func (a *asking) owner(stage *v1alpha1.Stage, place int) error {
	var offered []string
	for i := range a.members {
		of := &a.members[i]
		offers := slices.Contains(of.Stages, stage.Name)
		switch {
		case stage.Plugin == of.Name && !offers:
			return fmt.Errorf("spec.pipeline.stages[%d].name: plugin %q has no stage %s; it has %s", place, of.Name, stage.Name, listed(of.Stages))
		case stage.Plugin == of.Name:
			return nil
		case offers:
			offered = append(offered, of.Name)
		}
	}
	at := fmt.Sprintf("spec.pipeline.stages[%d]", place)
	switch {
	case stage.Plugin != "":
		return fmt.Errorf("%s.plugin: %q is none of spec.plugins", at, stage.Plugin)
	case len(offered) == 1:
		stage.Plugin = offered[0]
		return nil
	case len(offered) > 1:
		return fmt.Errorf("%s.plugin: stage %s is offered by several plugins: set this field to one of %s", at, stage.Name, listed(offered))
	}
	if name := v1alpha1.CanonicalStageName(stage.Name); name == v1alpha1.StageWait || name == v1alpha1.StageWaitApproval {
		return nil // it waits for time or people, whoever delivers
	}
	if others := a.Directory.Offers(stage.Name); len(others) > 0 {
		return fmt.Errorf("%s.name: none of spec.plugins offers stage %s; %s would: add it there", at, stage.Name, listed(others))
	}
	return fmt.Errorf("%s.name: no plugin offers stage %s", at, stage.Name)
}

// rollsBack reports whether plugins are to plan how a release is taken back.
func (a *asking) rollsBack() bool { return a.Application.Spec.Rollback.When != v1alpha1.RollbackNever }

// strategy says how the release goes. Plugins are asked where nothing that comes before says so: they cannot be asked about a first release.
func (a *asking) strategy(ctx context.Context) (strategy, reason string, err error) {
	if strategy, reason, err = planner.Early(a.Change); strategy != "" || err != nil {
		return strategy, reason, err
	}
	change := a.Change
	for i := range a.members {
		if a.Running == nil {
			break
		}
		opinion, err := a.opinion(ctx, &a.members[i])
		if err != nil {
			return "", "", err
		}
		if opinion == nil {
			continue
		}
		change.Opinions = append(change.Opinions, *opinion)
		if opinion.Pipeline {
			break
		}
	}
	return planner.Strategy(change)
}

// opinion asks one plugin, and returns nil if it has none.
func (a *asking) opinion(ctx context.Context, of *member) (*planner.Opinion, error) {
	var answer *deployment.DetermineStrategyResponse
	supported, err := a.withSources(ctx, of, "DetermineStrategy", "", func(ctx context.Context, input *deployment.PlanPluginInput, o ...grpc.CallOption) (err error) {
		answer, err = of.service.DetermineStrategy(ctx, &deployment.DetermineStrategyRequest{Input: input}, o...)
		return err
	})
	if err != nil || !supported || answer.Unsupported {
		return nil, err
	}
	out := &planner.Opinion{Plugin: of.Name, Why: text.Line(answer.Summary, mostSaid)}
	switch answer.SyncStrategy {
	case model.SyncStrategy_PIPELINE:
		out.Pipeline = true
	case model.SyncStrategy_QUICK_SYNC:
	case model.SyncStrategy_AUTO:
		return nil, nil
	default:
		return nil, fmt.Errorf("plugin %q answers DetermineStrategy with %d, which is no strategy", of.Name, answer.SyncStrategy)
	}
	return out, nil
}

// withSources calls a plugin about the files of the revision and of the one before, of which the call has copies of its own.
func (a *asking) withSources(
	ctx context.Context, of *member, method, about string, call func(context.Context, *deployment.PlanPluginInput, ...grpc.CallOption) error,
) (supported bool, err error) {
	input := &deployment.PlanPluginInput{Deployment: deployments.Of(deployments.Release{
		Application: a.Application, Release: a.Release, Revision: a.Revision, Running: a.Running, Plugin: of.Name, Called: of.Called,
		Plan: &v1alpha1.ReleasePlan{Strategy: a.Release.Spec.Strategy, Plugins: []v1alpha1.PlannedPlugin{{Name: of.Name, DeployTargets: of.targets}}},
	})}
	var clean func() error
	input.TargetDeploymentSource, input.RunningDeploymentSource, clean, err = deployments.Both(ctx, a.Sources, a.Application, a.Revision, a.Running, of.Name)
	switch {
	case errors.Is(err, deployments.ErrFiles):
		return false, err
	case err != nil:
		return false, waits("%s", err)
	}
	defer func() { err = errors.Join(err, clean()) }()
	return a.call(ctx, of, method, about, func(ctx context.Context, o ...grpc.CallOption) error { return call(ctx, input, o...) })
}

// call calls a plugin, and reports whether it supports the call. About says which stages it is about.
func (a *asking) call(ctx context.Context, of *member, method, about string, call func(context.Context, ...grpc.CallOption) error) (supported bool, err error) {
	timeout := a.Timeout
	if timeout <= 0 {
		timeout = usual
	}
	calling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = call(calling, grpc.MaxCallRecvMsgSize(mostAnswer))
	what := method
	if about != "" {
		what += " about " + about
	}
	switch code := grpcstatus.Code(err); {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case code == codes.Unimplemented:
		return false, nil
	case code == codes.Unavailable:
		return false, waits("plugin %q has gone while it was asked for %s", of.Name, what)
	case code == codes.DeadlineExceeded, errors.Is(calling.Err(), context.DeadlineExceeded):
		return false, fmt.Errorf("plugin %q has not answered %s within %s", of.Name, what, timeout)
	}
	said := grpcstatus.Convert(err)
	return false, fmt.Errorf("plugin %q answers %s with %s: %s", of.Name, what, said.Code(), text.Line(said.Message(), mostSaid))
}
