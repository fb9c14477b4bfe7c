package stock

import (
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// asStockProgram has requests come under the name of the stock program: the API server makes field managers of it, and tools know this one.
// That an autoscaler owns the replicas of a Deployment is told to Argo CD by "kube-controller-manager", for one.
//
// It is done on the way out, as the controllers put together a user agent for each of their clients from the name of the running program.
func asStockProgram(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stockProgram{next} })
}

type stockProgram struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t stockProgram) RoundTrip(request *http.Request) (*http.Response, error) {
	_, rest, _ := strings.Cut(request.UserAgent(), "/")
	request = utilnet.CloneRequest(request)
	request.Header.Set("User-Agent", controllerManager+"/"+rest)
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper, by which watches find the connection.
func (t stockProgram) WrappedRoundTripper() http.RoundTripper { return t.next }
