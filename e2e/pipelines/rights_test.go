package pipelines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// TestW28W39WhatAPipelineUsesItUsesForAsLongAsItsAuthorMay takes the rights to a Secret and a ServiceAccount from who has named them, and gives them back.
func TestW28W39WhatAPipelineUsesItUsesForAsLongAsItsAuthorMay(t *testing.T) {
	framework.Long(t)
	p := startPromotions(t)
	for _, namespace := range []string{p.dev, p.staging, p.prod} {
		p.Logical.In(namespace).Kubectl("create", "rolebinding", "author", "--clusterrole=manifold-pipelines-targets", "--user=author")
	}
	p.Logical.Kubectl("create", "rolebinding", "defines", "--clusterrole=manifold-pipelines-edit", "--user=author")
	use := func() { // who may edit a namespace may read its Secrets, and be its ServiceAccounts
		p.Logical.Kubectl("create", "rolebinding", "uses", "--clusterrole=edit", "--user=author")
	}
	use()
	manifest := fmt.Sprintf(`
apiVersion: pipelines.weave.works/v1alpha1
kind: Pipeline
metadata: {name: shop}
spec:
  appRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  environments:
  - {name: dev, targets: [{namespace: %s}]}
  - {name: staging, targets: [{namespace: %s}]}
  - name: prod
    targets: [{namespace: %s}]
    promotion: {strategy: {notification: {}}}
  promotion: {strategy: {direct: {serviceAccountName: promoter}, secretRef: {name: hook}}}
`, p.dev, p.staging, p.prod)
	p.Logical.Poll("the author may define it", func() error {
		return framework.Failure(p.Logical.TryInput(manifest, "apply", "-f", "-", "--as=author"))
	})
	p.Logical.In(p.dev).Apply(shop("2"))
	p.await("2 is verified in staging", func(_, staging weave.EnvironmentStatus) bool { return phase(staging, "2", weave.PromotionVerified) })
	call := func() int {
		p.Helper()
		return p.call(fmt.Sprintf("/promotion/%s/shop/dev", p.Namespace), event(p.dev), signature(event(p.dev)))
	}
	if got := call(); got != 204 {
		t.Errorf("with the right, a call is answered by %d", got)
	}

	p.Logical.Kubectl("delete", "rolebinding", "uses")
	p.await("it is denied", func(prod, staging weave.EnvironmentStatus) bool {
		return strings.Contains(staging.Denied, `"author", who has this pipeline use it, has lost the right to impersonate serviceaccounts "promoter"`) &&
			strings.Contains(staging.WebhookDenied, `has lost the right to get secrets "hook"`) && prod.Denied == ""
	})
	if got := call(); got != 401 {
		t.Errorf("without the right, a call is answered by %d", got)
	}
	p.Logical.In(p.dev).Apply(shop("3"))
	p.Logical.Within(time.Minute).Poll("3 is shown in dev, and goes no further", func() error {
		status, err := told(p.Scenario, pipelines, "shop")
		if err != nil {
			return err
		}
		promoting := meta.FindStatusCondition(status.Conditions, weave.ConditionPromoting)
		if dev := status.Environments["dev"].Targets; len(dev) != 1 || !dev[0].Ready || dev[0].Workloads[0].Version != "3" || promoting == nil || promoting.Reason != "Denied" {
			return fmt.Errorf("the status is %+v", status)
		}
		return nil
	})
	if got := p.tag(p.staging); got != "2" {
		t.Errorf("staging is to run %s", got)
	}
	expect.Says(t, p.Logical.Kubectl("get", "events", "--field-selector=involvedObject.name=shop,reason=WebhookUnusable"), "a call is not believed")

	use()
	p.await("3 is verified in staging", func(_, staging weave.EnvironmentStatus) bool {
		return phase(staging, "3", weave.PromotionVerified) && staging.Denied == "" && staging.WebhookDenied == ""
	})
	if got := call(); got != 204 {
		t.Errorf("with the right again, a call is answered by %d", got)
	}
}
