package services

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// mostName bounds what an answer repeats of a request.
const mostName = 64

// Whoever asks for what is not his learns nothing about it, not even whether it is there.
func (s *service) refused(what, name string) error {
	return status.Errorf(codes.PermissionDenied, "plugin %q takes part in no %s %q", s.plugin, what, text.Line(name, mostName))
}

// required refuses a request that does not say what it is about.
func required(fields ...string) error {
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			return status.Errorf(codes.InvalidArgument, "%s is required", fields[i])
		}
	}
	return nil
}

// myself refuses a request in the name of another plugin.
func (s *service) myself(name string) error {
	if name != "" && name != s.plugin && name != s.Called(s.plugin) {
		return status.Errorf(codes.PermissionDenied, "this is the address of plugin %q, and not of %q", s.plugin, text.Line(name, mostName))
	}
	return nil
}

// stage is a stage that the plugin runs, or has run.
type stage struct {
	release *v1alpha1.Release
	planned *v1alpha1.Stage
	id      string
	attempt int32
	// entry is 0 if it does not run now.
	entry int64
}

// stageOf returns a stage of a deployment. It must be one that the plan of the release has the plugin run.
func (s *service) stageOf(deployment, id string) (stage, error) {
	if err := required("deployment_id", deployment, "stage_id", id); err != nil {
		return stage{}, err
	}
	out := stage{release: find[*v1alpha1.Release](s.releases, deployment), id: id}
	running, runs := s.Calls.InFlight(types.UID(deployment), id)
	if runs {
		out.attempt, out.entry = running.Attempt, running.Entry
		if out.release == nil || out.release.Status.Plan == nil {
			out.release = running.Release // which the cache does not show yet
		}
	}
	if out.release == nil {
		return stage{}, s.refused("stage", id)
	}
	if out.planned = out.release.Status.Plan.ByPlugin(id); out.planned == nil || out.planned.Plugin != s.plugin {
		return stage{}, s.refused("stage", id)
	}
	for i := range out.release.Status.Stages {
		if of := &out.release.Status.Stages[i]; of.ID == id && !runs {
			out.attempt = of.Attempt
		}
	}
	return out, nil
}

// releaseOf returns the release that a deployment is. The plugin must take part in it, or its application must use the plugin: that is asked before
// there is a plan.
func (s *service) releaseOf(deployment string) (*v1alpha1.Release, error) {
	if err := required("deployment_id", deployment); err != nil {
		return nil, err
	}
	release := find[*v1alpha1.Release](s.releases, deployment)
	if running, runs := s.Calls.InFlight(types.UID(deployment), ""); runs && (release == nil || release.Status.Plan == nil) {
		release = running.Release
	}
	if release == nil {
		return nil, s.refused("deployment", deployment)
	}
	if release.Status.Plan != nil {
		if s.partOf(release.Status.Plan) {
			return release, nil
		}
		return nil, s.refused("deployment", deployment)
	}
	obj, exists, err := s.applications.GetByKey(release.Namespace + "/" + release.Spec.Application)
	if app, is := obj.(*v1alpha1.Application); err == nil && exists && is && s.uses(app) {
		return release, nil
	}
	return nil, s.refused("deployment", deployment)
}

// applicationOf returns an application. It must use the plugin.
func (s *service) applicationOf(id string) (*v1alpha1.Application, error) {
	if err := required("application_id", id); err != nil {
		return nil, err
	}
	if app := find[*v1alpha1.Application](s.applications, id); app != nil && s.uses(app) {
		return app, nil
	}
	return nil, s.refused("application", id)
}

func (s *service) uses(app *v1alpha1.Application) bool {
	for i := range app.Spec.Plugins {
		if app.Spec.Plugins[i].Name == s.plugin {
			return true
		}
	}
	return false
}

func (s *service) partOf(plan *v1alpha1.ReleasePlan) bool {
	for i := range plan.Plugins {
		if plan.Plugins[i].Name == s.plugin {
			return true
		}
	}
	for i := range plan.Stages {
		if plan.Stages[i].Plugin == s.plugin {
			return true
		}
	}
	return false
}

// find returns the object of a UID, nil if there is none.
func find[T any](in cache.Indexer, uid string) (none T) {
	found, err := in.ByIndex(byUID, uid)
	if err != nil || len(found) != 1 {
		return none
	}
	if object, is := found[0].(T); is {
		return object
	}
	return none
}
