// Package words tells what the status of an application says, for all commands that show it. It is pure.
package words

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/text"
)

// longest bounds what a message takes of the screen.
const longest = 512

// Revisions says which is live, and which others are wanted or newer.
func Revisions(status *v1alpha1.ApplicationStatus) string {
	live := cmp.Or(status.LiveRevision, "none") + " is live"
	if status.WantedRevision != "" && status.WantedRevision != status.LiveRevision {
		live += ", " + status.WantedRevision + " is wanted"
	}
	if latest := status.LatestRevision; latest != "" && latest != status.WantedRevision && latest != status.LiveRevision {
		live += ", " + latest + " is the newest"
	}
	return live
}

// Condition writes a condition in one line, such as "Rendered=False (NotAllowed): a ClusterRole is not allowed".
func Condition(c metav1.Condition) string {
	out := fmt.Sprintf("%s=%s", c.Type, c.Status)
	if c.Reason != "" {
		out += fmt.Sprintf(" (%s)", c.Reason)
	}
	if message := text.Line(c.Message, longest); message != "" {
		out += ": " + message
	}
	return out
}

// Pods counts those of a variant in all clusters together.
func Pods(status *v1alpha1.ApplicationStatus, variant *v1alpha1.Variant) (ready, of int32) {
	if variant.Name == v1alpha1.VariantPrimary {
		return Primary(status)
	}
	for i := range variant.Clusters {
		ready += variant.Clusters[i].Ready
		for _, replicas := range variant.Clusters[i].Workloads {
			of += replicas
		}
	}
	return ready, of
}

// Primary counts the pods of the application itself.
func Primary(status *v1alpha1.ApplicationStatus) (ready, of int32) {
	for i := range status.Targets {
		for _, c := range status.Targets[i].Clusters {
			ready, of = ready+c.Ready, of+c.Replicas
		}
	}
	return ready, of
}
