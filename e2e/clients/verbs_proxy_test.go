package clients

import (
	"io"
	"net/http"
	"strings"

	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
	"github.com/manifold-dev/manifold/e2e/framework/manifests"
)

// proxyVerbs reach HTTP servers in pods through the API.
var proxyVerbs = []verb{
	{"proxy to pods", proxyToPods},
	{"proxy to services", proxyToServices},
	{"port-forward to a service by the name of its port", forwardToService},
	{"proxy to nodes is refused", proxyToNodes},
}

// startProxy starts "kubectl proxy" and returns the URL of the scenario's namespace behind it.
func startProxy(s *framework.Scenario) string {
	s.Helper()
	proxy := s.Logical.Start("proxy", "--port=0")
	proxy.AwaitOutput("Starting to serve on ")
	proxy.AwaitOutput("\n")
	_, address, _ := strings.Cut(strings.TrimSpace(proxy.Output()), "Starting to serve on ")
	return "http://" + address + "/api/v1/namespaces/" + s.Namespace
}

func proxyToPods(s *framework.Scenario) {
	base := ""
	for cluster, pod := range onBoth(s, 2) {
		if base == "" {
			base = startProxy(s)
		}
		for _, id := range []string{pod.Name + ":8080", "http:" + pod.Name + ":8080"} {
			status, body := get(s, base+"/pods/"+id+"/proxy/some/path?a=b")
			if status != http.StatusOK {
				s.Errorf("%s answers %d %s", id, status, body)
			}
			expect.Says(s.T, body, pod.Name, "node: "+cluster, "port: 8080", "path: /some/path")
		}
		// Without a port it is the first that the pod declares.
		if status, body := get(s, base+"/pods/"+pod.Name+"/proxy/"); status != http.StatusOK || !strings.Contains(body, "port: 8080") {
			s.Errorf("without a port: %d %s", status, body)
		}
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, base+"/pods/"+pod.Name+"/proxy/orders", strings.NewReader("an order"))
		if err != nil {
			s.Fatal(err)
		}
		if status, body := do(s, request); status != http.StatusOK {
			s.Errorf("a POST: %d %s", status, body)
		}
		expect.Says(s.T, s.Logical.Kubectl("logs", pod.Name), "GET /some/path on port 8080", "POST /orders on port 8080")
	}
	if status, body := get(s, base+"/pods/nobody/proxy/"); status != http.StatusNotFound {
		s.Errorf("a pod that is not there: %d %s", status, body)
	}
}

// do sends a request and returns status and body.
func do(s *framework.Scenario, request *http.Request) (int, string) {
	s.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func proxyToServices(s *framework.Scenario) {
	s.Logical.Apply(manifests.WebService)
	base := startProxy(s)
	if status, body := get(s, base+"/services/web/proxy/"); status != http.StatusServiceUnavailable {
		s.Errorf("before there are pods: %d %s", status, body)
	} else {
		expect.Says(s.T, body, "no endpoints available for service", "none of its pods runs in a cluster")
	}
	onBoth(s, 4)
	// Each way to name a port, until pods of both clusters have answered.
	for _, id := range []string{"web:80", "web:http", "http:web:http"} {
		seen := map[string]bool{}
		s.Logical.Poll(id+" is answered by both clusters", func() error {
			status, body := get(s, base+"/services/"+id+"/proxy/some/path")
			for _, cluster := range []string{"east", "west"} {
				seen[cluster] = seen[cluster] || status == http.StatusOK && strings.Contains(body, "node: "+cluster) && strings.Contains(body, "path: /some/path")
			}
			if !seen["east"] || !seen["west"] {
				return framework.Contains(body, "the other cluster")
			}
			return nil
		})
	}
	if status, body := get(s, base+"/services/web:99/proxy/"); status != http.StatusServiceUnavailable || !strings.Contains(body, "no service port 99") {
		s.Errorf("a port that it does not have: %d %s", status, body)
	}
	if status, body := get(s, base+"/services/nobody/proxy/"); status != http.StatusNotFound {
		s.Errorf("a Service that is not there: %d %s", status, body)
	}
}

func forwardToService(s *framework.Scenario) {
	s.Logical.Apply(manifests.WebService)
	onBoth(s, 2)
	forward := s.Logical.Start("port-forward", "svc/web", ":http")
	expect.Says(s.T, fetch(s, forwarded(forward)), "pod: "+s.Namespace+"/web-", "port: 8080")
	expect.Refused(s.T, s.Logical.Try("port-forward", "svc/web", ":99"), "does not have a service port 99")
}

func proxyToNodes(s *framework.Scenario) {
	for _, path := range []string{"/api/v1/nodes/east/proxy/metrics", "/api/v1/nodes/https:east:10250/proxy/pods"} {
		expect.Refused(s.T, s.Logical.Try("get", "--raw", path), "Forbidden", `"east" is forbidden`, "mirrors a cluster and has no kubelet")
	}
}
