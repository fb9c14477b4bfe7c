package api

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// addressed makes a Service and returns its addresses, or what refuses it.
func addressed(s *framework.Scenario, name, further string) (addresses []string, refused framework.Result) {
	r := s.Logical.TryInput(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{port: 80}]%s}\n", name, further),
		"create", "-f", "-", "-o", "jsonpath={.spec.clusterIPs[*]}")
	return strings.Fields(r.Stdout), r
}

func TestServicesHaveAddressesOfTheRangesThatAreAskedFor(t *testing.T) {
	suite.Beside(t)
	const began, small = "--service-cluster-ip-range", "10.7.0.0/28"
	e := framework.StartOwn(t, framework.Options{ManifoldArgs: []string{began, small}})
	s := framework.NewScenario(t, e)
	refused := framework.Result{}
	for i := 0; refused.Code == 0; i++ {
		if i > 16 {
			t.Fatalf("more Services than addresses of %s are taken", small)
		}
		_, refused = addressed(s, fmt.Sprintf("early-%d", i), "")
	}
	expect.Refused(t, refused, "is invalid: spec.clusterIPs: Forbidden: no address is left in the ranges of \"kubectl get servicecidrs\"")
	_, refused = addressed(s, "both", ", ipFamilyPolicy: RequireDualStack")
	expect.Refused(t, refused, "spec.ipFamilyPolicy", "this cluster is not configured for dual-stack services")
	before := s.Logical.Kubectl("get", "services", "-o", "custom-columns=:.metadata.name,:.spec.clusterIPs")

	// What it began with is no reason not to have more, in both families.
	if err := e.Manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	wide := []netip.Prefix{netip.MustParsePrefix("10.8.0.0/16"), netip.MustParsePrefix("fd00:8::/112")}
	e.Manifold.SetArgs(began, wide[0].String()+","+wide[1].String())
	if err := e.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := s.Logical.Kubectl("get", "services", "-o", "custom-columns=:.metadata.name,:.spec.clusterIPs"); after != before {
		t.Errorf("Services had the addresses\n%s\nand have\n%s", before, after)
	}
	var got []string
	s.Logical.Poll("a Service has an address of each family", func() error {
		got, refused = addressed(s, "both", ", ipFamilyPolicy: RequireDualStack")
		return framework.Failure(refused) // of the ranges that have just been added, the allocators are to learn
	})
	if len(got) != len(wide) {
		t.Fatalf("it has the addresses %q", got)
	}
	for i, address := range got {
		if at, err := netip.ParseAddr(address); err != nil || !wide[i].Contains(at) {
			t.Errorf("it has the address %q, want one of %s", address, wide[i])
		}
	}
	if _, refused = addressed(s, "late", ""); refused.Code != 0 {
		t.Errorf("a Service of the first family alone is refused: %s", refused)
	}
}
