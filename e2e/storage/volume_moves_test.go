package storage

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
	"github.com/manifold-dev/manifold/e2e/framework/membership"
	"github.com/manifold-dev/manifold/pkg/placement"
)

// letVolumesInto has a cluster that has joined take volumes that are made by hand, until the test ends.
func letVolumesInto(s *framework.Scenario, name string) {
	s.Helper()
	again := []string{"cluster", "join", name, "--cluster-kubeconfig", s.Environment.Clusters[name].Kubeconfig()}
	s.Cleanup(func() { s.Environment.CleanupCLI(s.T, again...) })
	s.Logical.CLI(append(again, "--allow-volumes")...)
}

// Two volumes that were made by hand, one found by a class that no cluster has, one by its name, from their claims over a move to their end in either order:
// all of it is true, and nobody is told otherwise.
func TestVolumesMadeByHandMoveAndEndWithoutFalseWords(t *testing.T) {
	s := suite.Fragile(t)
	membership.Join(s, "north", "--allow-volumes")
	letVolumesInto(s, "east")
	north, class, named := s.Side("north"), s.Namespace, s.Namespace+"-named"
	s.Cleanup(func() { s.Environment.Cleanup(t, "delete", "storageclass", class, "--ignore-not-found") })
	s.Logical.Apply(fmt.Sprintf("{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: kubernetes.io/no-provisioner}", class))
	shelve(s, s.Logical, []string{class, named}, handMade(class, "1Gi", "storageClassName: "+class), handMade(named, "1Gi"))

	s.Logical.Apply(
		wanting("data", class), manifests.Pinned(manifests.Edited(manifests.Deployment("web", 1), mounting("data")), "north"),
		wanting("files", "", "volumeName: "+named), manifests.Pinned(manifests.Edited(manifests.Deployment("store", 1), mounting("files")), "north"),
	)
	for claim, volume := range map[string]string{"data": class, "files": named} {
		framework.Await(north, volume, "is bound there", volumeIn(corev1.VolumeBound))
		framework.Await(s.Logical, volume, "is bound", volumeIn(corev1.VolumeBound))
		framework.Await(s.Logical, claim, "shows its volume", func(c *corev1.PersistentVolumeClaim) bool { return expect.Bound(c) && c.Spec.VolumeName == volume })
	}
	expect.RolledOut(s, "web", 1)
	expect.RolledOut(s, "store", 1)

	// It stays where its volume is, until its user says that it may go; then it goes nowhere without the volume.
	expect.Refused(t, s.Logical.TryCLI("move", "deployment/web", "--to", "east"), "its volumes cannot move", "manifold.dev/volumes=recreate")
	s.Logical.Kubectl("annotate", "deployment", "web", v1alpha1.AnnotationVolumes+"="+v1alpha1.VolumesRecreate, v1alpha1.AnnotationClusters+"=west", "--overwrite")
	expect.Says(t, s.Logical.CLI("explain", "deployment/web"), "does not accept PersistentVolume "+class, "manifold cluster join west --cluster-kubeconfig FILE --allow-volumes")
	framework.Await(north, "web", "runs where it did", expect.Available(1))
	s.Logical.CLI("move", "deployment/web", "--to", "east")
	expect.Shares(s, "web", placement.Decision{"east": {Replicas: 1}})
	expect.RolledOut(s, "web", 1)
	for _, side := range []*framework.Side{s.East, north} {
		framework.Await(side, class, "is bound there", volumeIn(corev1.VolumeBound))
		framework.Await(side, "data", "is bound there", expect.Bound)
	}
	expect.Refused(t, s.West.Try("get", "pv", class), "NotFound")
	framework.Await(s.Logical, "data", "is bound", expect.Bound)
	framework.Await(s.Logical, class, "is bound", volumeIn(corev1.VolumeBound))

	// The claim goes first.
	s.Logical.Kubectl("delete", "deployment", "web")
	s.Logical.Kubectl("delete", "pvc", "data")
	for _, side := range []*framework.Side{s.East, north} {
		framework.AwaitGone[*corev1.PersistentVolume](side, class)
	}
	framework.Await(s.Logical, class, "is released", volumeIn(corev1.VolumeReleased))
	s.Logical.Kubectl("delete", "pv", class, "--timeout=60s")

	// The volume goes first, and stays while it is in use.
	s.Logical.Kubectl("delete", "pv", named, "--wait=false")
	framework.Await(north, named, "stays", volumeIn(corev1.VolumeBound))
	framework.Await(north, "store", "runs on", expect.Available(1))
	s.Logical.Kubectl("delete", "deployment", "store")
	s.Logical.Kubectl("delete", "pvc", "files")
	for _, side := range []*framework.Side{north, s.Logical} {
		framework.AwaitGone[*corev1.PersistentVolume](side, named)
	}

	for _, about := range []struct {
		side  *framework.Side
		names []string
	}{{s.Logical, []string{"data", "files", "web", "store"}}, {s.Logical.In("default"), []string{class, named}}} {
		framework.AwaitList(about.side, "", "no event tells what is not so", func(events []*corev1.Event) bool {
			for _, name := range about.names {
				for _, reason := range []string{"ClassMissing", "NotBelieved"} {
					for _, e := range framework.EventsAbout(events, name, reason) {
						t.Errorf("%s %s is told %s: %s", e.InvolvedObject.Kind, name, reason, e.Message)
					}
				}
			}
			return true
		})
	}
}
