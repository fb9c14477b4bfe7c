package heard

import "testing"

func TestWhatAnAPIServerSaysOfAPodThatItRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		message, want, quota string
		own                  bool
	}{
		"a quota": {
			`pods "web-5d4-x" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2`,
			"exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2", "tight", true,
		},
		"a quota that asks for requests": {
			`Error creating: pods "web-x" is forbidden: failed quota: strict: must specify cpu for: app`, "failed quota: strict: must specify cpu for: app", "strict", true,
		},
		"a claim of a StatefulSet": {
			`create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0`,
			"exceeded quota: q, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=0, limited: persistentvolumeclaims=0", "q", true,
		},
		"a webhook": {
			`Error creating: admission webhook "policy.example.com" denied the request: no`, `admission webhook "policy.example.com" denied the request: no`, "", true,
		},
		"a webhook that cannot be called": {
			`Error creating: Internal error occurred: failed calling webhook "x": refused`, `failed calling webhook "x": refused`, "", true,
		},
		"an invalid pod is one everywhere": {`Pod "web-x" is invalid: spec.containers: Required value`, `Pod "web-x" is invalid: spec.containers: Required value`, "", false},
		"what lacks above lacks everywhere": {
			`pods "web-" is forbidden: error looking up service account shop/web: serviceaccount "web" not found`,
			`error looking up service account shop/web: serviceaccount "web" not found`, "", false,
		},
		"nothing is said": {},
	} {
		t.Run(name, func(t *testing.T) {
			says, own := Refusal(test.message)
			if says != test.want || own != test.own || Quota(says) != test.quota {
				t.Errorf("got %q, %t, quota %q, want %q, %t, %q", says, own, Quota(says), test.want, test.own, test.quota)
			}
		})
	}
}

func TestWhatAnAPIServerSaysOfAnEndpointThatItDoesNotReach(t *testing.T) {
	const start = "error trying to reach service: "
	for name, test := range map[string]struct {
		says              string
		unreached, unsent bool
	}{
		"nobody listens":             {start + "dial tcp 10.0.0.1:80: connect: connection refused", true, true},
		"a proxy does not get there": {start + "proxy error from 127.0.0.1:8090 while dialing 10.0.0.1:80, code 502: 502 Bad Gateway", true, true},
		"the answer does not come":   {start + "EOF", true, false},
		"it ends on the way back":    {start + "read tcp 10.0.0.1:80: dial tcp 10.0.0.2:80", true, false},
		"something else":             {`no endpoints available for service "web"`, false, false},
		"it only quotes it":          {"the pod says: " + start + "dial tcp 10.0.0.1:80", false, false},
		"nothing is said":            {},
	} {
		t.Run(name, func(t *testing.T) {
			if unreached, unsent := Unreached(test.says); unreached != test.unreached || unsent != test.unsent {
				t.Errorf("unreached %t, unsent %t, want %t and %t", unreached, unsent, test.unreached, test.unsent)
			}
		})
	}
}
