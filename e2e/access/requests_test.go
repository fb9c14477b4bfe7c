package access

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// A tenant of one namespace tries what requests that pass to a cluster reach there. They are made with Manifold's credential, which may do
// much more than the tenant.

// tenant returns what sends requests as a user with the ClusterRole "edit" in the scenario's namespace and nothing else. Their paths arrive as
// they are written here, with what follows as their body.
func tenant(s *framework.Scenario) func(method, path string, header http.Header, body ...string) (int, string) {
	s.Helper()
	s.Logical.Kubectl("create", "rolebinding", "tenant", "--clusterrole=edit", "--user=tenant")
	config := rest.CopyConfig(s.Logical.Config)
	config.Impersonate.UserName = "tenant"
	config.NextProtos = []string{"http/1.1"} // which can be upgraded
	transport, err := rest.TransportFor(config)
	if err != nil {
		s.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		s.Fatal(err)
	}
	return func(method, path string, header http.Header, body ...string) (int, string) {
		s.Helper()
		at := *host
		at.Opaque = "//" + host.Host + path
		request := (&http.Request{Method: method, URL: &at, Header: header.Clone()}).WithContext(s.Context())
		if request.Header == nil {
			request.Header = http.Header{}
		}
		if text := strings.Join(body, ""); text != "" {
			request.Body, request.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			s.Fatalf("%s %s: %v", method, path, err)
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusSwitchingProtocols {
			return response.StatusCode, ""
		}
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			s.Fatalf("%s %s: %v", method, path, err)
		}
		return response.StatusCode, string(answer)
	}
}

// upgrades are headers of a request that leaves HTTP behind.
var upgrades = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"}}

// webSockets are headers of a request that goes on by messages.
var webSockets = http.Header{
	"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
	"Sec-Websocket-Protocol": {"v5.channel.k8s.io"},
}

// patches are headers of a request that changes an object.
var patches = http.Header{"Content-Type": {"application/merge-patch+json"}}

// inJSON are headers of a request that replaces an object.
var inJSON = http.Header{"Content-Type": {"application/json"}}

// ways are those in which a subresource may be asked for.
var ways = []struct {
	method string
	header http.Header
	body   string
}{
	{http.MethodGet, nil, ""}, {http.MethodGet, upgrades, ""}, {http.MethodGet, webSockets, ""},
	{http.MethodPost, nil, ""}, {http.MethodPost, upgrades, ""}, {http.MethodPost, webSockets, ""}, {http.MethodPost, inJSON, "{}"},
	{http.MethodPut, inJSON, "{}"}, {http.MethodPut, upgrades, ""}, {http.MethodPut, webSockets, ""},
	{http.MethodPatch, patches, "{}"}, {http.MethodPatch, upgrades, ""}, {http.MethodPatch, webSockets, ""},
	{http.MethodDelete, nil, ""}, {http.MethodDelete, webSockets, ""},
}

// goingUp are ways from a proxied path to the Secrets of namespace kube-system.
var goingUp = map[string]string{
	"plain":             "/../../../../kube-system/secrets/",
	"encoded":           "/%2e%2e/%2e%2e/%2E%2e/.%2e/kube-system/secrets/",
	"encoded slashes":   "/..%2f..%2F..%2f..%2fkube-system%2fsecrets%2f",
	"encoded twice":     "/%252e%252e/%252e%252e/%252e%252e/%252e%252e/kube-system/secrets/",
	"backslashes":       "/..%5c..%5c..%5c..%5ckube-system%5csecrets%5c",
	"parameters":        "/..;/..;a/..;/..;/kube-system/secrets/",
	"empty segments":    "//..//..//..//..//kube-system/secrets/",
	"from further down": "/a/b/../../../../../../kube-system/secrets/",
}

func TestProxiedPathsStayBehindTheirObject(t *testing.T) {
	s := suite.Scenario(t)
	const content = "c2VjcmV0LW9mLXRoZS1jbHVzdGVy" // of the cluster, in base64 as an answer would have it
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "treasure-"}, StringData: map[string]string{"key": "secret-of-the-cluster"}}
	secret, err := s.East.Kube.CoreV1().Secrets("kube-system").Create(t.Context(), secret, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Environment.CleanupIn(t, s.East.API, "delete", "secret", "-n", "kube-system", secret.Name)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), manifests.WebService)
	expect.RolledOut(s, "web", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0]
	send := tenant(s)
	namespace := "/api/v1/namespaces/" + s.Namespace
	// What an honest app is asked arrives.
	for _, path := range []string{"/pods/" + pod.Name + ":8080/proxy/", "/services/web:80/proxy/a%20b/c%3Fd/?q=..%2f.."} {
		s.Logical.Poll("an honest request is answered", func() error {
			if status, body := send(http.MethodGet, namespace+path, nil); status != http.StatusOK {
				return fmt.Errorf("%s: %d %s", path, status, body)
			}
			return nil
		})
	}
	for _, object := range []string{"pods/" + pod.Name, "pods/" + pod.Name + ":8080", "services/web", "services/http:web:80"} {
		for name, up := range goingUp {
			path := namespace + "/" + object + "/proxy" + up + secret.Name
			for what, try := range map[string]func() (int, string){
				"GET":                    func() (int, string) { return send(http.MethodGet, path, nil) },
				"POST":                   func() (int, string) { return send(http.MethodPost, path, nil) },
				"PUT":                    func() (int, string) { return send(http.MethodPut, path, nil) },
				"PATCH":                  func() (int, string) { return send(http.MethodPatch, path, nil) },
				"DELETE":                 func() (int, string) { return send(http.MethodDelete, path, nil) },
				"an upgrade":             func() (int, string) { return send(http.MethodGet, path, upgrades) },
				"an upgrade by POST":     func() (int, string) { return send(http.MethodPost, path, upgrades) },
				"an upgrade to messages": func() (int, string) { return send(http.MethodGet, path, webSockets) },
			} {
				status, body := try()
				if status != http.StatusBadRequest || !strings.Contains(body, "lead") || strings.Contains(body, content) {
					t.Errorf("%s of %s, %s: %d %s", what, path, name, status, body)
				}
			}
		}
	}
	// Other subresources lead nowhere by what is behind their names, and nothing of what a pod has leads to another's.
	for _, sub := range []string{"log", "exec", "attach", "portforward", "status", "eviction", "binding", "ephemeralcontainers", "resize"} {
		for name, up := range goingUp {
			path := namespace + "/pods/" + pod.Name + "/" + sub + up + secret.Name
			for _, way := range ways {
				status, body := send(way.method, path, way.header, way.body)
				if status < http.StatusMultipleChoices || strings.Contains(body, content) || strings.Contains(body, "secret-of-the-cluster") {
					t.Errorf("%s with %v of %s, %s: %d %s", way.method, way.header, sub, name, status, body)
				}
			}
		}
	}
}

// stranger makes a pod in cluster east that Manifold knows nothing of, in a namespace of the same name, and the same name above on a node that
// its user has written.
func stranger(s *framework.Scenario, name string) {
	s.Helper()
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east")) // so that the namespace is there
	expect.RolledOut(s, "web", 1)
	const pod = `
apiVersion: v1
kind: Pod
metadata:
  name: %s
spec:
%s
  containers:
  - name: app
    image: app:1
    ports:
    - containerPort: 8080
`
	s.East.Apply(fmt.Sprintf(pod, name, ""))
	framework.Await(s.East, name, "runs", expect.Ready)
	if err := s.Environment.Clusters["east"].Log(s.Context(), s.Namespace, name, "app", "a stranger's secret"); err != nil {
		s.Fatal(err)
	}
	s.Logical.Apply(fmt.Sprintf(pod, name, "  nodeName: east"))
}

func TestANodeThatAUserWritesLeadsToNobodysPod(t *testing.T) {
	s := suite.Scenario(t)
	stranger(s, "db")
	s.Logical.Poll("it is told that the name is taken", func() error {
		return framework.Contains(s.Logical.Kubectl("get", "events", "--field-selector=involvedObject.name=db"), "NameTaken")
	})
	send := tenant(s)
	pod := "/api/v1/namespaces/" + s.Namespace + "/pods/db"
	before := framework.Await(s.East, "db", "is there", framework.Exists[*corev1.Pod])
	for _, path := range []string{"/exec?command=id&stdout=true", "/attach?stdout=true", "/portforward?ports=8080"} {
		for _, way := range ways {
			status, body := send(way.method, pod+path, way.header, way.body)
			if status < http.StatusBadRequest || strings.Contains(body, "a stranger's secret") {
				t.Errorf("%s with %v of %s: %d %s", way.method, way.header, path, status, body)
			}
		}
	}
	// What is changed of it is changed above alone, if at all.
	const change = `{"metadata":{"labels":{"taken":"over"}},"spec":{"containers":[{"name":"app","image":"taken:over","resources":{"requests":{"cpu":"1m"}}}],` +
		`"ephemeralContainers":[{"name":"taken","image":"taken:over"}]},"status":{"message":"taken over"}}`
	for _, sub := range []string{"/ephemeralcontainers", "/resize", "/status", "/binding"} {
		for method, header := range map[string]http.Header{http.MethodPut: inJSON, http.MethodPost: inJSON, http.MethodPatch: patches} {
			if status, body := send(method, pod+sub, header, change); strings.Contains(body, "a stranger's secret") || status == http.StatusSwitchingProtocols {
				t.Errorf("%s %s: %d %s", method, sub, status, body)
			}
		}
	}
	for _, request := range []struct{ method, path string }{
		{http.MethodPost, pod + "/exec?command=id&stdout=true"}, {http.MethodGet, pod + "/exec?command=id&stdout=true"},
		{http.MethodPost, pod + "/attach?stdout=true"}, {http.MethodPost, pod + "/portforward"},
		{http.MethodGet, pod + "/log"}, {http.MethodGet, pod + "/proxy/"}, {http.MethodPost, pod + ":8080/proxy/"},
		{http.MethodGet, "/apis/metrics.k8s.io/v1beta1/namespaces/" + s.Namespace + "/pods/db"},
	} {
		header := upgrades
		if strings.Contains(request.path, "/log") || strings.Contains(request.path, "/proxy") || strings.Contains(request.path, "metrics") {
			header = nil
		}
		status, body := send(request.method, request.path, header)
		if status != http.StatusBadRequest && status != http.StatusNotFound && status != http.StatusForbidden || strings.Contains(body, "secret") {
			t.Errorf("%s %s: %d %s", request.method, request.path, status, body)
		}
		if !strings.Contains(request.path, "metrics") && !strings.Contains(body, "does not have a host assigned") {
			t.Errorf("%s %s does not say why: %d %s", request.method, request.path, status, body)
		}
	}
	expect.Refused(t, s.Logical.Try("exec", "db", "--", "id"), "does not have a host assigned")
	expect.Refused(t, s.Logical.Try("logs", "db"), "does not have a host assigned")
	s.Logical.Kubectl("label", "pod", "db", "taken=over")
	s.Logical.Kubectl("delete", "pod", "db", "--now", "--timeout=30s")
	live := framework.Await(s.East, "db", "is still there", func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	if live.Labels["taken"] != "" || live.UID != before.UID || !equality.Semantic.DeepEqual(live.Spec, before.Spec) || live.Status.Message != "" {
		t.Errorf("the stranger's pod is\n%+v\nwas\n%+v", live, before)
	}
}

// A Service of the cluster's own that has the name of one above is not reached by it, and slices that users write lead nowhere.
func TestAServiceLeadsToNobodysPod(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	stranger(s, "db")
	s.East.Kubectl("label", "pod", "db", "app=db")
	const service = `
apiVersion: v1
kind: Service
metadata:
  name: %s
spec:
  selector:
    app: %s
  ports:
  - port: 80
    targetPort: 8080
`
	s.East.Apply(fmt.Sprintf(service, "db", "db"))
	s.Logical.Apply(fmt.Sprintf(service, "db", "web")) // which has pods above
	s.Logical.Apply(fmt.Sprintf(strings.ReplaceAll(service, "  selector:\n    app: %s\n", ""), "written"), fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: written
  labels:
    kubernetes.io/service-name: written
addressType: IPv4
ports:
- port: 8080
endpoints:
- addresses: [10.0.0.1]
  nodeName: east
  targetRef: {kind: Pod, namespace: %q, name: db}
`, s.Namespace))
	framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))
	send := tenant(s)
	for name, want := range map[string]string{"db": "another one of that name", "written": "none of its pods runs in a cluster"} {
		s.Logical.Poll("a request to Service "+name+" is refused", func() error {
			status, body := send(http.MethodGet, "/api/v1/namespaces/"+s.Namespace+"/services/"+name+":80/proxy/", nil)
			if status == http.StatusOK {
				t.Errorf("Service %s leads to somebody: %s", name, body)
				return nil
			}
			return framework.Contains(body, want)
		})
	}
}

// heard is what tests read of the audit log of a cluster.
type heard struct {
	AuditID          string
	Stage            string
	Verb             string
	User             struct{ Username string }
	ImpersonatedUser struct {
		Username string
		Extra    map[string][]string
	}
	ObjectRef struct{ Resource, Subresource, Namespace, Name string }
}

func TestTheAuditOfAClusterTellsTheUser(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(manifests.Pinned(manifests.Deployment("web", 1), "east"), manifests.WebService)
	expect.RolledOut(s, "web", 1)
	pod := framework.AwaitList(s.Logical, "app=web", "the pod is ready", expect.ReadyPods(1))[0].Name
	send := tenant(s)
	as := func(args ...string) { s.Logical.Kubectl(append([]string{"--as=tenant"}, args...)...) }
	as("exec", pod, "--", "sh", "-c", "true")
	as("logs", pod)
	as("label", "pod", pod, "color=blue")
	if status, _ := send(http.MethodPost, "/api/v1/namespaces/"+s.Namespace+"/pods/"+pod+"/portforward", upgrades); status != http.StatusSwitchingProtocols && status != http.StatusForbidden {
		t.Errorf("port-forward answers %d", status)
	}
	// Who the user is cannot be said by the request itself.
	forged := http.Header{"X-Remote-User": {"somebody"}, "Authorization": {"Bearer x"}}
	s.Logical.Poll("a request by way of the Service arrives, once its endpoints are known", func() error {
		status, body := send(http.MethodGet, "/api/v1/namespaces/"+s.Namespace+"/services/web:80/proxy/", forged)
		if status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	as("delete", "pod", pod, "--now")
	s.East.Poll("the audit of the cluster has all of it", func() error {
		var errs []error
		for _, want := range []struct{ verb, resource, subresource string }{
			{"", "pods", "exec"}, {"get", "pods", "log"}, {"patch", "pods", ""}, {"", "services", "proxy"}, {"delete", "pods", ""},
		} {
			errs = append(errs, findHeard(s, func(h heard) bool {
				return h.ObjectRef.Resource == want.resource && h.ObjectRef.Subresource == want.subresource && (want.verb == "" || h.Verb == want.verb)
			}, func(h heard) bool {
				return strings.HasPrefix(h.User.Username, "system:serviceaccount:manifold-system:manifold-syncer-") &&
					h.ImpersonatedUser.Username == h.User.Username && slices.Equal(h.ImpersonatedUser.Extra["manifold.dev/user"], []string{"tenant"})
			}))
		}
		return errors.Join(errs...)
	})
	above := framework.AwaitAudited(s, func(e framework.AuditEvent) bool { return e.ObjectRef.Subresource == "exec" })
	if err := findHeard(s, func(h heard) bool { return h.ObjectRef.Subresource == "exec" }, func(h heard) bool { return h.AuditID == above.AuditID }); err != nil {
		t.Errorf("the audits do not have the exec under the same ID, which is %s above: %v", above.AuditID, err)
	}
}

// findHeard returns an error unless one of certain requests in the scenario's namespace, as the audit log of cluster east has them, is right.
func findHeard(s *framework.Scenario, is, right func(heard) bool) error {
	file, err := os.Open(s.Environment.Clusters["east"].AuditLog())
	if err != nil {
		return err
	}
	defer file.Close()
	var near []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var h heard
		if json.Unmarshal(lines.Bytes(), &h) != nil || h.ObjectRef.Namespace != s.Namespace || !is(h) {
			continue // of others, or half written
		}
		if right(h) {
			return nil
		}
		near = append(near, fmt.Sprintf("%+v", h))
	}
	return fmt.Errorf("none of %d requests is it: %s", len(near), strings.Join(near, "\n"))
}
