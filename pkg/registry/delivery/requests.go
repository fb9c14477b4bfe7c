package delivery

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1/validation"
)

// Bounds of what is recorded with a release.
const (
	mostRequests = 256
	mostGroups   = 256
)

// record adds a request to a release, or refuses it. Asking for the same once more changes nothing.
func record(release *v1alpha1.Release, request v1alpha1.ReleaseRequest) error {
	if errs := validation.ValidateRequest(request.Comment, request.Targets); len(errs) > 0 {
		return invalid(release, errs)
	}
	check := map[v1alpha1.RequestType]func(*v1alpha1.Release, *v1alpha1.ReleaseRequest) error{
		v1alpha1.RequestApprove:  approve,
		v1alpha1.RequestCancel:   cancel,
		v1alpha1.RequestSkip:     skip,
		v1alpha1.RequestRetry:    retry,
		v1alpha1.RequestRollback: rollback,
	}[request.Type]
	if err := check(release, &request); err != nil {
		return err
	}
	if slices.ContainsFunc(release.Status.Requests, func(r v1alpha1.ReleaseRequest) bool { return same(release, r, request) }) {
		return nil
	}
	if len(release.Status.Requests) >= mostRequests {
		return conflict(release, "as much has been asked of it as is recorded, %d requests; make another release", mostRequests)
	}
	request.Groups = request.Groups[:min(len(request.Groups), mostGroups)]
	release.Status.Requests = append(release.Status.Requests, request)
	return nil
}

// same reports whether a request that was made before still says what another one does.
func same(release *v1alpha1.Release, before, now v1alpha1.ReleaseRequest) bool {
	if before.Type != now.Type || before.Stage != now.Stage || before.Attempt != now.Attempt || before.Rollback != now.Rollback ||
		!slices.Equal(before.Targets, now.Targets) {
		return false
	}
	if now.Type != v1alpha1.RequestApprove {
		return true
	}
	return before.User == now.User && !expired(release, before, now.Time.Time)
}

// expired reports whether an approval no longer counts.
func expired(release *v1alpha1.Release, approval v1alpha1.ReleaseRequest, now time.Time) bool {
	options, err := approvalOptions(release, approval.Stage)
	return err == nil && options.Expiry != nil && !now.Before(approval.Time.Add(options.Expiry.Duration))
}

func approve(release *v1alpha1.Release, request *v1alpha1.ReleaseRequest) error {
	waits := func(s *v1alpha1.StageStatus) bool {
		return s.Phase == v1alpha1.StageRunning && release.Status.Plan.WaitsForApproval(s)
	}
	stage, err := pick(release, request.Stage, waits, "waits for approval")
	if err != nil {
		return err
	}
	request.Stage, request.Attempt = stage.ID, stage.Attempt
	if of := release.Status.Plan.ByPlugin(stage.ID); of != nil {
		return among(of.Planned.Approvers, release, request)
	}
	options, err := approvalOptions(release, stage.ID)
	if err != nil {
		return err
	}
	if options.RequireComment && request.Comment == "" {
		return invalid(release, field.ErrorList{field.Required(field.NewPath("comment"), "stage "+stage.ID+" asks for one")})
	}
	return among(options.Approvers, release, request)
}

// among refuses who is not among those who may approve a stage. The groups that approve come first in the request: not all of very many are recorded.
func among(approvers []string, release *v1alpha1.Release, request *v1alpha1.ReleaseRequest) error {
	named, others := []string{}, []string{}
	for _, group := range request.Groups {
		if slices.Contains(approvers, v1alpha1.ApproverGroup+group) {
			named = append(named, group)
		} else {
			others = append(others, group)
		}
	}
	request.Groups = slices.Concat(named, others)
	if len(approvers) == 0 || slices.ContainsFunc(approvers, func(a string) bool { return v1alpha1.IsApprover(a, request.User, request.Groups) }) {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("releases/approve"), release.Name,
		fmt.Errorf("%q is not among the approvers of stage %s: %q", request.User, request.Stage, approvers))
}

func cancel(release *v1alpha1.Release, _ *v1alpha1.ReleaseRequest) error {
	if phase := release.Status.Phase; phase.Ended() || phase == v1alpha1.ReleaseRollingBack {
		return conflict(release, "it cannot be cancelled any more, it is %s", phase)
	}
	return nil
}

// skip refuses to leave out an approval, which who may skip need not have the right to give.
func skip(release *v1alpha1.Release, request *v1alpha1.ReleaseRequest) error {
	if request.Stage == "" {
		return invalid(release, field.ErrorList{field.Required(field.NewPath("stage"), "")})
	}
	of := release.Status.Plan.ByPlugin(request.Stage)
	if back := of != nil && of.Planned != nil && of.Planned.Rollback && release.Status.Phase == v1alpha1.ReleaseRollingBack; !back {
		if err := going(release); err != nil {
			return err
		}
	}
	open := func(s *v1alpha1.StageStatus) bool { return !s.Phase.Ended() }
	stage, err := pick(release, request.Stage, open, "is still to be done")
	if err != nil {
		return err
	}
	switch {
	case release.Status.Plan.WaitsForApproval(stage), of == nil && stage.Name == v1alpha1.StageRollback:
		return invalid(release, field.ErrorList{field.Invalid(field.NewPath("stage"), request.Stage, stage.Name+" cannot be skipped")})
	case of != nil && len(request.Targets) > 0:
		return invalid(release, field.ErrorList{field.Forbidden(field.NewPath("targets"), "a plugin runs "+stage.Name+", once for all targets")})
	}
	request.Attempt = stage.Attempt
	return knownTargets(release, request.Targets)
}

func retry(release *v1alpha1.Release, request *v1alpha1.ReleaseRequest) error {
	switch phase := release.Status.Phase; phase {
	case v1alpha1.ReleaseRunning, v1alpha1.ReleaseFailed:
	default:
		return conflict(release, "nothing of it can be retried, it is %s", phase)
	}
	failed := func(s *v1alpha1.StageStatus) bool { return s.Phase == v1alpha1.StageFailed }
	stage, err := pick(release, request.Stage, failed, "has failed")
	if err != nil {
		return err
	}
	request.Stage, request.Attempt = stage.ID, stage.Attempt
	return knownTargets(release, request.Targets)
}

func rollback(release *v1alpha1.Release, _ *v1alpha1.ReleaseRequest) error {
	switch phase := release.Status.Phase; phase {
	case v1alpha1.ReleaseRunning, v1alpha1.ReleaseSucceeded, v1alpha1.ReleaseFailed, v1alpha1.ReleaseCancelled:
		if !arrived(release) {
			return conflict(release, "it has come to no cluster, so there is nothing to take back")
		}
		return nil
	case v1alpha1.ReleasePending, "":
		return conflict(release, "it has not begun, so there is nothing to take back; cancel it")
	default:
		return conflict(release, "it cannot be taken back, it is %s", phase)
	}
}

// arrived reports whether a release has come to any cluster, or to a plugin. One that failed or was cancelled before that goes on from nowhere.
func arrived(release *v1alpha1.Release) bool {
	plan := release.Status.Plan
	return plan != nil && slices.ContainsFunc(plan.Targets, func(t v1alpha1.ResolvedTarget) bool { return len(t.Clusters) > 0 }) ||
		slices.ContainsFunc(release.Status.Stages, func(s v1alpha1.StageStatus) bool { return s.StartTime != nil && plan.ByPlugin(s.ID) != nil })
}

// notNewest refuses what is asked of a release that is not the last one of its application to have begun.
func notNewest(release *v1alpha1.Release, all []v1alpha1.Release, asked v1alpha1.RequestType) error {
	var newest *v1alpha1.Release
	for i := range all {
		of := &all[i]
		if of.Spec.Application == release.Spec.Application && of.Status.Sequence > release.Status.Sequence && (newest == nil || of.Status.Sequence > newest.Status.Sequence) {
			newest = of
		}
	}
	switch {
	case newest == nil:
		return nil
	case asked == v1alpha1.RequestRollback:
		return conflict(release, "it cannot be taken back, %s has begun since and says what runs now; take that one back, or release what is to run: manifold app rollback %s --to REVISION",
			newest.Name, release.Spec.Application)
	}
	return conflict(release, "nothing of it can be retried, %s has begun since and says what runs now; release its revision once more: manifold app sync %s --revision %s",
		newest.Name, release.Spec.Application, release.Spec.Revision)
}

// going refuses what is about a release that has ended or is being taken back.
func going(release *v1alpha1.Release) error {
	if phase := release.Status.Phase; phase != v1alpha1.ReleaseRunning && phase != v1alpha1.ReleasePending {
		return conflict(release, "it goes through no stages any more, it is %s", phase)
	}
	return nil
}

// pick returns the stage of this id, or the only one that fits where none is named. It refuses stages that do not fit.
func pick(release *v1alpha1.Release, id string, fits func(*v1alpha1.StageStatus) bool, what string) (*v1alpha1.StageStatus, error) {
	var found *v1alpha1.StageStatus
	for i := range release.Status.Stages {
		stage := &release.Status.Stages[i]
		if id == "" && fits(stage) {
			found = stage
			break
		}
		if id == stage.ID && id != "" {
			found = stage
			break
		}
	}
	switch {
	case found == nil && id == "":
		return nil, conflict(release, "no stage %s", what)
	case found == nil:
		return nil, invalid(release, field.ErrorList{field.NotFound(field.NewPath("stage"), id)})
	case !fits(found):
		return nil, conflict(release, "stage %s (%s, %s) is not one that %s", found.ID, found.Name, found.Phase, what)
	}
	return found, nil
}

// approvalOptions are those that the stage had when the release began.
func approvalOptions(release *v1alpha1.Release, id string) (*v1alpha1.WaitApprovalOptions, error) {
	if stage, i := release.Status.Plan.Stage(id); stage != nil && stage.Plugin == "" {
		options, errs := v1alpha1.DecodeOptions(stage, field.NewPath("status", "plan", "stages").Index(i).Child("with"))
		if approval, ok := options.(*v1alpha1.WaitApprovalOptions); ok && len(errs) == 0 {
			return approval, nil
		}
	}
	return nil, conflict(release, "its plan does not say who may approve stage %s", id)
}

func knownTargets(release *v1alpha1.Release, names []string) error {
	var errs field.ErrorList
	for i, name := range names {
		known := release.Status.Plan != nil && slices.ContainsFunc(release.Status.Plan.Targets, func(t v1alpha1.ResolvedTarget) bool { return t.Name == name })
		if !known && !left(release, name) {
			errs = append(errs, field.NotFound(field.NewPath("targets").Index(i), name))
		}
	}
	if len(errs) > 0 {
		return invalid(release, errs)
	}
	return nil
}

// left reports whether a target is one that a release leaves, because it is none of the application any more.
func left(release *v1alpha1.Release, name string) bool {
	return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool {
		return slices.ContainsFunc(stage.Targets, func(t v1alpha1.StageTargetStatus) bool { return t.Retired && t.Name == name })
	})
}

func invalid(release *v1alpha1.Release, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.Kind("Release"), release.Name, errs)
}

// conflict refuses what the release is not in the state for. It says nothing of trying again with the latest version, as Kubernetes' own
// conflicts do.
func conflict(release *v1alpha1.Release, format string, args ...any) error {
	err := apierrors.NewConflict(v1alpha1.Resource("releases"), release.Name, nil)
	err.ErrStatus.Message = fmt.Sprintf("release %q: ", release.Name) + fmt.Sprintf(format, args...)
	return err
}

// stamp is the time of a request, as precise as it is stored.
func stamp(now time.Time) metav1.Time {
	return metav1.NewTime(now.UTC().Truncate(time.Second))
}
