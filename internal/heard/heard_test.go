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
