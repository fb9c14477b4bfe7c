package gateway

import (
	"slices"
	"strings"
	"testing"
)

func TestTheGatewayListensOnLoopbackAndCallsNobody(t *testing.T) {
	for _, api := range []bool{false, true} {
		got := args("127.130.255.254:8000", "127.130.255.254:8001", "127.130.255.254", api)
		for _, want := range []string{"--global.checknewversion=false", "--global.sendanonymoususage=false"} {
			if !slices.Contains(got, want) {
				t.Errorf("the arguments lack %s", want)
			}
		}
		for _, arg := range got {
			if name, value, _ := strings.Cut(arg, "="); strings.HasSuffix(name, ".address") && !strings.HasPrefix(value, "127.") {
				t.Errorf("%s listens on %s", name, value)
			}
		}
		if has := slices.Contains(got, "--providers.kubernetesgateway=true"); has != api {
			t.Errorf("the Gateway API is served %t, want %t", has, api)
		}
	}
}
