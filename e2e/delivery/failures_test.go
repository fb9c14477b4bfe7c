package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/source/git/gittest"
)

const (
	// nowhere has the pods of a target have no node.
	nowhere = `{"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"there": "is-none"}}`
	// slowly has them be replaced one after the other, each some seconds after the one before.
	slowly = `{"op": "add", "path": "/spec/minReadySeconds", "value": 5}`
)

// unevenApp is an application of a ConfigMap and three pods, whose Deployment is patched in each of its two clusters. Spec is more of its spec.
func unevenApp(image, spec, inEast, inWest string) string {
	return webApp(fmt.Sprintf(`
targets:
- {name: first, cluster: east, patches: [{target: {kind: Deployment}, patch: '[%s]'}]}
- {name: second, cluster: west, patches: [{target: {kind: Deployment}, patch: '[%s]'}]}
%s
`, inEast, inWest, spec), fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {image: %q}}", image), webDeployment(image, 3))
}

// targetIn is how far a stage is in a cluster.
func targetIn(of v1alpha1.StageStatus, cluster string) v1alpha1.TargetPhase {
	for _, target := range of.Targets {
		if target.Cluster == cluster {
			return target.Phase
		}
	}
	return ""
}

// One cluster that fails is enough, and there is nothing to go back to.
func TestAFirstReleaseThatFailsLeavesNothing(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(unevenApp("web:1", "progressDeadlineSeconds: 5", nowhere, ""))
	back := awaitPhase(s, "web-v1", v1alpha1.ReleaseRolledBack)
	expect.Says(t, back.Status.Message, "rollback Succeeded: no earlier revision: removed what the release has made", "stage sync failed: ", `cluster "east"`)
	s.Logical.Poll("nothing of it is left anywhere", func() error {
		for _, of := range []*framework.Side{s.Logical, s.East, s.West} {
			if found := of.Kubectl("get", "deployments,pods,configmaps", "-o", "name"); strings.Contains(found, "/web") || strings.Contains(found, "configmap/settings") {
				return fmt.Errorf("there is still %s", found)
			}
		}
		return nil
	})
	if app := awaitRevision(s, 1); app.Status.LiveRevision != "" {
		t.Errorf("%s is said to be live", app.Status.LiveRevision)
	}
}

func TestAClusterThatFailsStopsNoOtherHalfWay(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	const spec = "progressDeadlineSeconds: 12\nrollback: {when: All}"
	s.Logical.Apply(unevenApp("web:1", spec, "", ""))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)

	s.Logical.Apply(unevenApp("web:2", spec, nowhere, slowly))
	awaitRelease(&patient, "web-v2", "has failed in east, and goes on in west", func(release v1alpha1.Release) bool {
		of := stage(release, "sync")
		return targetIn(of, "east") == v1alpha1.TargetFailed && targetIn(of, "west") == v1alpha1.TargetRunning
	})
	failed := awaitPhase(&patient, "web-v2", v1alpha1.ReleaseFailed) // it is not taken back: not all have failed
	if of := stage(failed, "sync"); of.Phase != v1alpha1.StageFailed || targetIn(of, "west") != v1alpha1.TargetSucceeded || len(failed.Status.Stages) != 1 {
		t.Errorf("the stages are %+v", failed.Status.Stages)
	}
	expect.AwaitRuns(s, "web", map[string]string{"west": "3 of web:2"})

	s.Logical.Apply(unevenApp("web:3", spec, nowhere, nowhere))
	back := awaitPhase(&patient, "web-v3", v1alpha1.ReleaseRolledBack) // all have
	if of := stage(back, "sync"); targetIn(of, "east") != v1alpha1.TargetFailed || targetIn(of, "west") != v1alpha1.TargetFailed {
		t.Errorf("the stage is %+v", of)
	}
	expect.AwaitRuns(s, "web", map[string]string{"east": "3 of web:1", "west": "3 of web:1"})
}

// What runs comes back to the targets that its own file names, although the file of what has failed names none.
func TestARollbackGoesByTheFileOfBefore(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	r := gittest.New(t, "shop")
	file, _, _ := strings.Cut(pipecdFile, "  service:")
	r.Commit("the first", microservice(file, "1"))
	s.Logical.Apply(fromRepository(r.Serve(), "branch: main") + "  progressDeadlineSeconds: 10\n")
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	both := map[string]string{"east": "1 of web:1-hoge", "west": "1 of web:1-fuga"}
	expect.AwaitRuns(s, "web", both)

	without, _, _ := strings.Cut(file, "  quickSync:")
	files := microservice(without, "2")
	files[prd+"/base/deployment.yaml"] = webDeployment("web:0", 1, "nodeSelector: {there: is-none}")
	r.Commit("no targets", files)
	refresh(s)
	back := awaitPhase(s, "web-v2", v1alpha1.ReleaseRolledBack)
	if back.Status.DeliveryRevision != "web-v1" {
		t.Errorf("what runs is delivered as %s says", back.Status.DeliveryRevision)
	}
	expect.AwaitRuns(s, "web", both)
	if got := s.Logical.Kubectl("get", "deployment", "web", "-o", `jsonpath={.metadata.annotations.manifold\.dev/clusters}`); got != "east,west" {
		t.Errorf("it is pinned to %q", got)
	}
	awaitApp(s, "the targets that run it are shown", func(app v1alpha1.Application) error {
		var got []string
		for _, target := range app.Status.Targets {
			if target.Health == v1alpha1.Healthy {
				got = append(got, target.Name+" "+target.LiveRevision)
			}
		}
		if !slices.Equal(got, []string{"east web-v1", "west web-v1"}) {
			return fmt.Errorf("targets are %+v", app.Status.Targets)
		}
		return nil
	})
}
