package versions

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/manifold-dev/manifold/internal/imageref"
	"github.com/manifold-dev/manifold/internal/text"
	"github.com/manifold-dev/manifold/pkg/delivery"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

const (
	notTakenUp = "its controller has not taken it up yet as it is now"
	// untagged is the tag of an image that names none.
	untagged = "latest"
	// shortDigest is how much of a digest tells it from others.
	shortDigest = 12
)

func deployment(d *appsv1.Deployment) weave.WorkloadStatus {
	out := begin(Deployment.Kind, d)
	images(&out, d.Spec.Template.Spec)
	want, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	settle(&out, counts{
		current: status.ObservedGeneration >= d.Generation, want: want, all: status.Replicas, updated: status.UpdatedReplicas,
		ready: min(status.ReadyReplicas, status.AvailableReplicas), leastUpdated: want,
	})
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse && !out.Ready {
			out.Failed, out.Message = true, delivery.Said(condition.Message)
		}
	}
	if d.Spec.Paused && !out.Ready && !out.Failed {
		out.Message = delivery.Said("it is paused: " + out.Message)
	}
	return out
}

func statefulSet(s *appsv1.StatefulSet) weave.WorkloadStatus {
	out := begin(StatefulSet.Kind, s)
	images(&out, s.Spec.Template.Spec)
	want, status := ptr.Deref(s.Spec.Replicas, 1), s.Status
	least := want
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		least = max(0, want-max(0, ptr.Deref(rolling.Partition, 0))) // those below the partition stay as they are on purpose
	}
	settle(&out, counts{
		current: status.ObservedGeneration >= s.Generation, want: want, all: status.Replicas, updated: status.UpdatedReplicas,
		ready: status.ReadyReplicas, leastUpdated: least,
	})
	return out
}

func daemonSet(d *appsv1.DaemonSet) weave.WorkloadStatus {
	out := begin(DaemonSet.Kind, d)
	images(&out, d.Spec.Template.Spec)
	status := d.Status
	settle(&out, counts{
		current: status.ObservedGeneration >= d.Generation, want: status.DesiredNumberScheduled, all: status.DesiredNumberScheduled,
		updated: status.UpdatedNumberScheduled, ready: min(status.NumberReady, status.NumberAvailable), leastUpdated: status.DesiredNumberScheduled,
	})
	return out
}

// cronJob is ready as it is there: what it runs, it runs at its time.
func cronJob(c *batchv1.CronJob) weave.WorkloadStatus {
	out := begin(CronJob.Kind, c)
	images(&out, c.Spec.JobTemplate.Spec.Template.Spec)
	out.Ready, out.LastAppliedRevision = true, out.Version
	if ptr.Deref(c.Spec.Suspend, false) {
		out.Message = "it is suspended"
	}
	return out
}

// counts are the pods of a workload.
type counts struct {
	// current says that its controller counts them for the object as it is now.
	current bool
	// want is how many there are to be, all how many there are, and leastUpdated how many of those are to be of the present template.
	want, all, updated, ready, leastUpdated int32
}

// settle says whether a workload is ready, by its pods.
func settle(out *weave.WorkloadStatus, of counts) {
	switch {
	case !of.current:
		out.Message = notTakenUp
	case of.updated < of.leastUpdated || of.all != of.want || of.ready < of.want:
		out.Message = fmt.Sprintf("%d of %d pods are updated, and %d ready", of.updated, of.want, of.ready)
	default:
		out.Ready, out.LastAppliedRevision = true, out.Version
	}
}

// images takes in the images of a template. The version is all tags, each of them once, those of containers first.
func images(out *weave.WorkloadStatus, of corev1.PodSpec) {
	var tags []string
	for _, container := range slices.Concat(of.Containers, of.InitContainers) {
		if container.Image == "" {
			continue
		}
		image := text.Line(container.Image, mostImage)
		if len(out.Images) < mostImages && !slices.Contains(out.Images, image) {
			out.Images = append(out.Images, image)
		}
		if tag := Tag(image); len(tags) < mostImages && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	out.Version = text.Line(strings.Join(tags, ","), mostVersion)
}

// Tag returns the tag of an image, or a part of its digest where it has none.
func Tag(image string) string {
	of := imageref.Parse(image)
	switch {
	case of.Tag != "":
		return of.Tag
	case of.Digest == "":
		return untagged
	}
	algorithm, hash, found := strings.Cut(of.Digest, ":")
	if !found {
		return of.Digest[:min(len(of.Digest), shortDigest)]
	}
	return algorithm + ":" + hash[:min(len(hash), shortDigest)]
}
