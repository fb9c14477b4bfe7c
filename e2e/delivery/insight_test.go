package delivery

import (
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
)

func TestHowWellAnApplicationIsDeliveredIsShownAndCounted(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	app := func(image string) string {
		return webApp("targets: [{name: first, cluster: east}]\n", webDeployment(image, 1))
	}
	s.Logical.Apply(app("web:1"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	s.Logical.Apply(app("web:2"))
	awaitPhase(s, "web-v2", v1alpha1.ReleaseSucceeded)
	series := func(result, count string) string {
		return `application="web",logical_cluster="default",namespace="` + s.Namespace + `",result="` + result + `"} ` + count
	}
	shows := func(table string, metrics ...string) {
		t.Helper()
		awaitShown(s, []string{s.Namespace + "/web " + table}, "app", "insight", "web", "--by", "day")
		s.Logical.Poll("the metrics of the server count the same", func() error {
			return framework.Contains(s.Logical.Kubectl("get", "--raw", "/metrics"), metrics...)
		})
	}
	shows("2 0.07 0 (0%) - -", series("succeeded", "2"), series("failed", "0"))

	s.Logical.CLI("app", "rollback", "web", "--wait")
	shows("2 0.07 1 (50%) - ", series("succeeded", "2"), series("rolled_back_later", "1"),
		`manifold_delivery_time_to_restore_seconds_count{application="web",logical_cluster="default",namespace="`+s.Namespace+`"} 1`)
	if of := s.Logical.CLI("app", "insight", "-l", "team=none"); strings.TrimSpace(of) != "No applications found." {
		t.Errorf("of a team without applications is told:\n%s", of)
	}
}
