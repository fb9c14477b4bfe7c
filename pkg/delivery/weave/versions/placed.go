package versions

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/observe"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/placement"
	"github.com/manifold-dev/manifold/pkg/summary"
)

const (
	notReported = "the cluster has reported nothing of it yet"
	silentSince = "the cluster does not answer: this is what it reported last"
	behind      = "the cluster has not taken it up yet"
)

// Placed is what is known of a workload in a cluster.
type Placed struct {
	// Share is what the cluster is to run, and Generation that of the object above.
	Share      placement.Share
	Generation int64
	// Reported is what the cluster has reported, if Heard.
	Reported summary.ClusterStatus
	Heard    bool
}

// In returns what a workload of the logical cluster is in a cluster. Content is the object as the cluster is to hold it.
func In(content runtime.Object, of Placed) (weave.WorkloadStatus, bool) {
	out, known := Of(content)
	if !known {
		return out, false
	}
	unsettle(&out)
	reported := of.Reported
	held := of.Share.Revision != ""
	switch {
	case !of.Heard:
		out.Message = notReported
	case reported.Stale:
		out.Message = silentSince
	case reported.Problem != "":
		out.Failed, out.Message = true, delivery.Said(reported.Problem)
	case held && (reported.Revision != of.Share.Revision || reported.Target != of.Share.Target), !held && reported.Generation < of.Generation:
		out.Message = delivery.Said(cmp.Or(reported.Waits, behind))
	default:
		missing := observe.Missing(out.Kind, of.Share, reported)
		if missing == "" {
			out.Ready, out.LastAppliedRevision = true, out.Version
			break
		}
		out.Message = delivery.Said(cmp.Or(reported.Waits, missing))
	}
	return out, true
}

// unsettle takes out what an object says of all of its clusters together.
func unsettle(out *weave.WorkloadStatus) {
	out.Ready, out.Failed, out.Message, out.LastAppliedRevision, out.Conditions = false, false, "", "", nil
}

// Copy is what is known of an object of a custom kind in a cluster.
type Copy struct {
	// Above is the object, and Content what the cluster holds in its place; nil for the object as it stands.
	Above, Content *unstructured.Unstructured
	// Reported is what the cluster has reported, if Heard. Alone says that no other cluster has a copy, so that the status above is of this one.
	Reported summary.CustomCluster
	Heard    bool
	Alone    bool
}

// CopyIn returns what an object of a custom kind of the logical cluster is in a cluster.
func CopyIn(of Copy) (weave.WorkloadStatus, bool) {
	shown := &unstructured.Unstructured{Object: map[string]any{}}
	from := of.Above
	if of.Content != nil {
		from = of.Content
	}
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if value, has := from.Object[key]; has {
			shown.Object[key] = value
		}
	}
	status := of.Reported.Status
	if status == nil && of.Alone {
		status, _, _ = unstructured.NestedMap(of.Above.Object, "status")
	}
	if status != nil {
		shown.Object["status"] = status
	}
	out, known := Of(shown)
	if !known {
		return out, false
	}
	// The generation that the status is of is the one below. Whether that is the one above is told beside.
	condition := conditionOf(shown, conditionReady)
	out.Ready, out.Failed, out.Message = false, false, ""
	switch reported := of.Reported; {
	case !of.Heard:
		unsettle(&out)
		out.Message = notReported
	case reported.Stale:
		out.Message = silentSince
	case reported.Problem != "":
		out.Failed, out.Message = true, delivery.Said(reported.Problem)
	case reported.Generation < of.Above.GetGeneration():
		out.Message = behind
	case !reported.Unready:
		out.Ready = true
	case condition != nil && condition.Status == metav1.ConditionFalse:
		says(&out, shown, condition)
	default:
		out.Message = delivery.Said(cmp.Or(reported.State, "it is not ready"))
	}
	return out, true
}

// application is of the revision that it is to run.
func application(app *v1alpha1.Application) weave.WorkloadStatus {
	out := begin(Application.Kind, app)
	status := app.Status
	out.LastAppliedRevision = text.Line(status.LiveRevision, mostRevision)
	out.Version = text.Line(cmp.Or(status.WantedRevision, status.LiveRevision), mostVersion)
	message := ""
	for _, target := range status.Targets {
		message = cmp.Or(message, target.Message)
	}
	judge(&out, verdict{
		current: status.ObservedGeneration >= app.Generation, wanted: status.WantedRevision, live: status.LiveRevision, health: status.Health, sync: status.Sync,
		message: message,
	})
	if status.ReleasePhase == v1alpha1.ReleaseFailed && out.Version != out.LastAppliedRevision {
		out.Failed, out.Message = true, joined(fmt.Sprintf("release %s has failed", status.Release), message)
	}
	return out
}

// ApplicationIn returns what an application is in a cluster, false if it is not there.
func ApplicationIn(app *v1alpha1.Application, cluster string) (weave.WorkloadStatus, bool) {
	for _, target := range app.Status.Targets {
		for _, of := range target.Clusters {
			if of.Name != cluster {
				continue
			}
			out := begin(Application.Kind, app)
			out.LastAppliedRevision = text.Line(of.LiveRevision, mostRevision)
			out.Version = text.Line(cmp.Or(of.Revision, of.LiveRevision), mostVersion)
			judge(&out, verdict{
				current: app.Status.ObservedGeneration >= app.Generation, wanted: of.Revision, live: of.LiveRevision, health: of.Health, sync: of.Sync, message: of.Message,
			})
			return out, true
		}
	}
	return weave.WorkloadStatus{}, false
}

// verdict is what is said of an application, or of its part in a cluster.
type verdict struct {
	current      bool
	wanted, live string
	health       v1alpha1.HealthStatus
	sync         v1alpha1.SyncStatus
	message      string
}

func judge(out *weave.WorkloadStatus, of verdict) {
	switch {
	case !of.current:
		out.Message = notTakenUp
	case of.health == v1alpha1.Degraded:
		out.Failed, out.Message = true, delivery.Said(cmp.Or(of.message, "it is degraded"))
	case of.health == v1alpha1.Healthy && of.live != "" && of.live == of.wanted && of.sync != v1alpha1.SyncUnknown:
		out.Ready = true
	default:
		out.Message = delivery.Said(cmp.Or(of.message, fmt.Sprintf("it runs %s, is to run %s and is %s", cmp.Or(of.live, "nothing"), cmp.Or(of.wanted, "nothing"), cmp.Or(of.health, v1alpha1.HealthUnknown))))
	}
}
