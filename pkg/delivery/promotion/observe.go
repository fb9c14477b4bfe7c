package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// State is how an environment fares with what it runs.
type State string

const (
	// Verified says that all targets run one version and are ready.
	Verified State = "Verified"
	// Progressing says that some are on their way, or run different versions.
	Progressing State = "Progressing"
	// Failed says that one has failed.
	Failed State = "Failed"
	// Unknown says that it is not known of one, which is neither verified nor failed.
	Unknown State = "Unknown"
)

// Observed is what an environment runs.
type Observed struct {
	State State
	// Revision is the version that all targets run, whether they are ready or not; "" if they differ, or if it is not known of one.
	Revision string
	// Message says for people what it lacks, "" if it is verified.
	Message string

	// Denied says that nothing is to be promoted to it, since whoever has named a target may not see it any more.
	Denied bool

	// failed are the versions that targets have failed with.
	failed []string
}

// Verified reports whether all targets run a version and are ready.
func (o Observed) Verified(revision string) bool {
	return o.State == Verified && o.Revision == revision
}

// FailedOn reports whether a target has failed with a version.
func (o Observed) FailedOn(revision string) bool { return slices.Contains(o.failed, revision) }

// longestRevision bounds a version that is a list; a longer one is told by its hash.
const longestRevision = 512

// RevisionOf returns the version of all that a target runs of the app: that of its workloads if all have the same, and otherwise one after the other as
// in "Deployment/api=1.2;Deployment/web=1.3". It is "" if the version of one is not known, or if there is none.
func RevisionOf(workloads []weave.WorkloadStatus) string {
	if len(workloads) == 0 {
		return ""
	}
	same := true
	parts := make([]string, 0, len(workloads))
	for _, w := range workloads {
		if w.Version == "" {
			return ""
		}
		same = same && w.Version == workloads[0].Version
		parts = append(parts, w.Kind+"/"+w.Name+"="+w.Version)
	}
	if same {
		return workloads[0].Version
	}
	slices.Sort(parts)
	list := strings.Join(parts, ";")
	if len(list) > longestRevision {
		sum := sha256.Sum256([]byte(list))
		return fmt.Sprintf("%d workloads sha256:%s", len(parts), hex.EncodeToString(sum[:]))
	}
	return list
}

// Observe returns what an environment runs by its status, which is that of the same generation of the pipeline.
func Observe(environment weave.Environment, status *weave.EnvironmentStatus) Observed {
	var targets []weave.TargetStatus
	if status != nil {
		targets = status.Targets
	}
	out := Observed{State: Verified}
	for i, target := range environment.Targets {
		state, revision, message := observeTarget(target, targets)
		if status := StatusOf(target, targets); status != nil && status.Denied {
			out.Denied = true
		}
		if state == Failed {
			out.failed = append(out.failed, revision)
		}
		if i == 0 {
			out.Revision = revision
		} else if out.Revision != revision {
			out.Revision = ""
		}
		if worse(state, out.State) {
			out.State, out.Message = state, Name(target)+" "+message
		}
	}
	if len(environment.Targets) == 0 {
		return Observed{State: Unknown, Message: "it has no targets"}
	}
	if out.State == Verified && out.Revision == "" {
		out.State, out.Message = Progressing, "its targets run different versions"
	}
	return out
}

// worse reports whether one state tells more of what is wrong than another.
func worse(a, b State) bool {
	order := []State{Verified, Progressing, Unknown, Failed}
	return slices.Index(order, a) > slices.Index(order, b)
}

// Name names a target for people.
func Name(target weave.Target) string {
	if target.ClusterRef == nil {
		return target.Namespace
	}
	return target.ClusterRef.Name + "/" + target.Namespace
}

// StatusOf returns what is told of a target, or nil.
func StatusOf(target weave.Target, of []weave.TargetStatus) *weave.TargetStatus {
	for i := range of {
		if of[i].Namespace == target.Namespace && sameCluster(target.ClusterRef, of[i]) {
			return &of[i]
		}
	}
	return nil
}

func sameCluster(ref *weave.ClusterReference, status weave.TargetStatus) bool {
	switch {
	case ref == nil:
		return status.Kind == "" && status.Name == "" && status.ClusterRef == nil
	case status.ClusterRef != nil:
		return status.ClusterRef.Kind == ref.Kind && status.ClusterRef.Name == ref.Name
	}
	return status.Kind == ref.Kind && status.Name == ref.Name
}

func observeTarget(target weave.Target, of []weave.TargetStatus) (state State, revision, message string) {
	status := StatusOf(target, of)
	if status == nil {
		return Unknown, "", "has not been looked at yet"
	}
	revision = RevisionOf(status.Workloads)
	switch {
	case status.Error != "":
		return Unknown, revision, "is not known: " + status.Error
	case len(status.Workloads) == 0:
		return Unknown, "", "runs nothing of the app"
	case status.MoreWorkloads > 0:
		return Unknown, "", fmt.Sprintf("has %d more workloads than are listed", status.MoreWorkloads)
	}
	for _, w := range status.Workloads {
		if w.Failed {
			return Failed, revision, "has failed: " + workload(w)
		}
	}
	for _, w := range status.Workloads {
		if !w.Ready {
			return Progressing, revision, "is not ready: " + workload(w)
		}
	}
	switch {
	case !status.Ready:
		return Progressing, revision, "is not ready"
	case revision == "":
		return Unknown, "", "does not tell its version"
	}
	return Verified, revision, ""
}

func workload(w weave.WorkloadStatus) string {
	said := w.Kind + " " + w.Name
	if w.Message != "" {
		said += ": " + w.Message
	}
	return said
}
