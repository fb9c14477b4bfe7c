package grants

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// hardened is a container that level Restricted takes.
const hardened = `"securityContext":{"allowPrivilegeEscalation":false,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"},"capabilities":{"drop":["ALL"]}}`

func TestPodFence(t *testing.T) {
	container := func(fields string) string { return `"containers":[{"name":"a"` + fields + `}]` }
	context := func(fields string) string { return container(`,"securityContext":{` + fields + `}`) }
	for name, test := range map[string]struct {
		spec                 string // of the pod
		annotations          string
		baseline, restricted string // what it is said to be made with, "" if it is allowed
	}{
		"a hardened one":                      {spec: container(`,` + hardened)},
		"one that is hardened as a whole":     {spec: `"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"Localhost"}},` + context(`"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}`)},
		"volumes of every harmless type":      {spec: container(`,`+hardened) + `,"volumes":[{"name":"a","emptyDir":{}},{"name":"b","secret":{}},{"name":"c","projected":{}},{"name":"d","persistentVolumeClaim":{}},{"name":"e","csi":{}},{"name":"f","ephemeral":{}},{"name":"g","configMap":{}},{"name":"h","downwardAPI":{}}]`},
		"a plain one":                         {spec: container(``), restricted: "containers without allowPrivilegeEscalation: false"},
		"the network of the host":             {spec: `"hostNetwork":true,` + container(``), baseline: "namespaces of the node"},
		"the processes of the host":           {spec: `"hostPID":true,` + container(``), baseline: "namespaces of the node"},
		"the memory of the host":              {spec: `"hostIPC":true,` + container(``), baseline: "namespaces of the node"},
		"a folder of the host":                {spec: container(``) + `,"volumes":[{"name":"v","hostPath":{"path":"/"}}]`, baseline: "hostPath volumes"},
		"a port of the host":                  {spec: container(`,"ports":[{"containerPort":80,"hostPort":80}]`), baseline: "ports of the node"},
		"a port of its own":                   {spec: container(`,"ports":[{"containerPort":80}],` + hardened)},
		"a privileged container":              {spec: context(`"privileged":true`), baseline: "privileged containers"},
		"a privileged init container":         {spec: container(``) + `,"initContainers":[{"name":"i","securityContext":{"privileged":true}}]`, baseline: "privileged containers"},
		"a privileged container to debug":     {spec: container(``) + `,"ephemeralContainers":[{"name":"e","securityContext":{"privileged":true}}]`, baseline: "privileged containers"},
		"a capability of the host's":          {spec: context(`"capabilities":{"add":["SYS_ADMIN"]}`), baseline: "capabilities that the level does not allow"},
		"a harmless capability":               {spec: context(`"allowPrivilegeEscalation":false,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"},"capabilities":{"drop":["ALL"],"add":["CHOWN"]}`), restricted: "containers that do not drop ALL capabilities"},
		"proc as it is":                       {spec: context(`"procMount":"Unmasked"`), baseline: "a procMount other than Default"},
		"no seccomp":                          {spec: `"securityContext":{"seccompProfile":{"type":"Unconfined"}},` + container(``), baseline: "seccomp profile Unconfined"},
		"no AppArmor":                         {spec: context(`"appArmorProfile":{"type":"Unconfined"}`), baseline: "AppArmor profile Unconfined"},
		"no AppArmor, as of old":              {spec: container(``), annotations: `"container.apparmor.security.beta.kubernetes.io/a":"unconfined"`, baseline: "AppArmor profile Unconfined"},
		"an AppArmor profile, as of old":      {spec: container(`,` + hardened), annotations: `"container.apparmor.security.beta.kubernetes.io/a":"localhost/x","other":"unconfined"`},
		"another type of SELinux":             {spec: context(`"seLinuxOptions":{"type":"spc_t"}`), baseline: "SELinux options that the level does not allow"},
		"another user of SELinux":             {spec: `"securityContext":{"seLinuxOptions":{"user":"root"}},` + container(``), baseline: "SELinux options that the level does not allow"},
		"a level of SELinux":                  {spec: `"securityContext":{"seLinuxOptions":{"level":"s0"}},` + container(`,`+hardened)},
		"a sysctl of the host":                {spec: `"securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]},` + container(``), baseline: "sysctls that the level does not allow"},
		"a sysctl of the pod":                 {spec: `"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]},` + container(`,`+hardened)},
		"a process of a Windows host":         {spec: context(`"windowsOptions":{"hostProcess":true}`), baseline: "host processes"},
		"a volume of a server":                {spec: container(`,`+hardened) + `,"volumes":[{"name":"v","nfs":{"server":"s","path":"/"}}]`, restricted: "volumes of types that the level does not allow"},
		"one that may run as root":            {spec: context(`"allowPrivilegeEscalation":false,"seccompProfile":{"type":"RuntimeDefault"},"capabilities":{"drop":["ALL"]}`), restricted: "containers without runAsNonRoot: true"},
		"one that says so against its pod":    {spec: `"securityContext":{"runAsNonRoot":true},` + context(`"allowPrivilegeEscalation":false,"runAsNonRoot":false,"seccompProfile":{"type":"RuntimeDefault"},"capabilities":{"drop":["ALL"]}`), restricted: "containers without runAsNonRoot: true"},
		"one that runs as root":               {spec: `"securityContext":{"runAsUser":0},` + container(`,`+hardened), restricted: "runAsUser 0"},
		"one without a seccomp profile":       {spec: context(`"allowPrivilegeEscalation":false,"runAsNonRoot":true,"capabilities":{"drop":["ALL"]}`), restricted: "containers without a seccomp profile"},
		"one that keeps its capabilities":     {spec: context(`"allowPrivilegeEscalation":false,"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}`), restricted: "containers that do not drop ALL capabilities"},
		"a second container that is not good": {spec: `"containers":[{"name":"a",` + hardened + `},{"name":"b"}]`, restricted: "containers without allowPrivilegeEscalation: false"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := `"metadata":{"name":"web","annotations":{` + test.annotations + `}}`
			if test.annotations == "" {
				meta = `"metadata":{"name":"web"}`
			}
			inner := meta + `,"spec":{` + test.spec + `}`
			for kind, made := range map[string]attempt{
				"Pod":        {resource: "/pods", object: "{" + inner + "}"},
				"Deployment": {resource: "apps/deployments", object: `{"metadata":{"name":"web"},"spec":{"template":{` + inner + `}}}`},
			} {
				made.operation, made.kind, made.namespace, made.home = admission.Create, kind, "shop", mine
				restricted := test.restricted
				if restricted == "" {
					restricted = test.baseline
				}
				for level, want := range map[string]string{Baseline: test.baseline, Restricted: restricted} {
					got := judge(t, podFence(testLogical, level), made, nil)
					if (got == "") != (want == "") || !strings.HasPrefix(got, "Manifold may not create pods with "+want) && want != "" {
						t.Errorf("%s, %s: it is told %q, want %q", kind, level, got, want)
					}
					if want != "" && !strings.HasSuffix(got, "--pod-security="+level) {
						t.Errorf("%s, %s: %q does not name the level", kind, level, got)
					}
				}
			}
		})
	}
}

func TestThePodFenceLetsBeWhatRunsAlready(t *testing.T) {
	pod := func(label, fields string) string {
		return `{"metadata":{"name":"web","labels":{"a":"` + label + `"}},"spec":{"containers":[{"name":"a","securityContext":{"privileged":true` + fields + `}}]}}`
	}
	set := func(replicas int, fields string) string {
		return fmt.Sprintf(`{"metadata":{"name":"web"},"spec":{"replicas":%d,"template":%s}}`, replicas, pod("x", fields))
	}
	const denial = "Manifold may not create pods with privileged containers"
	for name, test := range map[string]struct {
		attempt
		want string
	}{
		"labels of a pod":           {attempt: attempt{operation: admission.Update, resource: "/pods", kind: "Pod", old: pod("x", ""), object: pod("y", "")}},
		"replicas of a workload":    {attempt: attempt{operation: admission.Update, resource: "apps/statefulsets", kind: "StatefulSet", old: set(1, ""), object: set(2, "")}},
		"another template":          {attempt: attempt{operation: admission.Update, resource: "apps/statefulsets", kind: "StatefulSet", old: set(1, ""), object: set(1, `,"runAsUser":1`)}, want: denial},
		"a container that is added": {attempt: attempt{operation: admission.Update, resource: "/pods/ephemeralcontainers", kind: "Pod", old: `{"metadata":{"name":"web"},"spec":{}}`, object: pod("x", "")}, want: denial},
		"what somebody else makes":  {attempt: attempt{user: "admin", operation: admission.Create, resource: "/pods", kind: "Pod", object: pod("x", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			test.namespace, test.home = "shop", mine
			if got := judge(t, podFence(testLogical, Baseline), test.attempt, nil); !fits(got, test.want) {
				t.Errorf("it is told %q, want %q", got, test.want)
			}
		})
	}
}

func TestLevelsOfPodSecurity(t *testing.T) {
	for value, want := range map[string]bool{"": true, "privileged": true, "baseline": true, "restricted": true, "Baseline": false, "none": false} {
		if got, err := ParsePodSecurity(value); (err == nil) != want || err == nil && got != value {
			t.Errorf("%q: %q, %v, want it taken: %t", value, got, err, want)
		}
	}
	for _, level := range []string{Baseline, Restricted} {
		all, err := ForPodSecurity(testLogical, level)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range all {
			if got := PodSecurityIn(piece.Object.GetLabels(), piece.Object.GetAnnotations()); got != level {
				t.Errorf("%s is for level %q, want %q", piece, got, level)
			}
			if got := PodSecurityIn(nil, piece.Object.GetAnnotations()); got != "" {
				t.Errorf("%s of somebody else's is for level %q", piece, got)
			}
		}
	}
}
