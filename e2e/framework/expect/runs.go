package expect

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// Runs is what a cluster runs of a Deployment: the pods that are available, and their image.
func Runs(s *framework.Scenario, cluster, name string) string {
	s.Helper()
	result := s.Side(cluster).Try("get", "deployment", name, "-o", "json")
	if strings.Contains(result.Stderr, "NotFound") {
		return "nothing"
	}
	var got appsv1.Deployment
	if err := framework.Failure(result); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal([]byte(result.Stdout), &got); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d of %s", got.Status.AvailableReplicas, got.Spec.Template.Spec.Containers[0].Image)
}

// AwaitRuns waits until clusters run what they are to run of a Deployment, in the words of Runs.
func AwaitRuns(s *framework.Scenario, name string, want map[string]string) {
	s.Helper()
	s.Logical.Poll(fmt.Sprintf("clusters run %v of %s", want, name), func() error {
		for cluster, want := range want {
			if got := Runs(s, cluster, name); got != want {
				return fmt.Errorf("cluster %s runs %s", cluster, got)
			}
		}
		return nil
	})
}
