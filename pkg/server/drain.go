package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// commandHeader is where kubectl tells which of its commands a request is part of.
const commandHeader = "Kubectl-Command"

// refuseNodeCommands keeps kubectl from working on Nodes as on machines. Admission refuses to change a Node, but that alone is not
// enough: "kubectl drain" prints why the node could not be cordoned, goes on to evict every pod of the cluster, and ends well once the
// cluster has made new ones in their place; a Node that is cordoned already is not even written to. So what drain asks about nodes and
// pods is refused at its first request, which ends it with an error. The same goes for cordon and uncordon, which end well whatever they
// are told.
func refuseNodeCommands(generic *genericapiserver.Config) {
	build := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return build(nodeCommandFilter{next: api, codecs: legacyscheme.Codecs}, c)
	}
}

// nodeCommandFilter stands behind authorization and audit: who may not read nodes is told so first.
type nodeCommandFilter struct {
	next   http.Handler
	codecs runtime.NegotiatedSerializer
}

func (f nodeCommandFilter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if info, ok := request.RequestInfoFrom(r.Context()); ok {
		if err := refuseNodeCommand(r.Header.Get(commandHeader), info); err != nil {
			responsewriters.ErrorNegotiated(err, f.codecs, corev1.SchemeGroupVersion, w, r)
			return
		}
	}
	f.next.ServeHTTP(w, r)
}

// refuseNodeCommand returns why a request of a kubectl command is refused, or nil.
func refuseNodeCommand(header string, info *request.RequestInfo) error {
	command := nodeCommand(header)
	if command == "" || info.APIGroup != corev1.GroupName {
		return nil
	}
	switch {
	case info.Resource == "nodes":
		return apierrors.NewForbidden(corev1.Resource("nodes"), info.Name, errors.New(insteadOf(command, info.Name)))
	case info.Resource == "pods" && command == "drain":
		return apierrors.NewForbidden(corev1.Resource("pods"), info.Name, errors.New(insteadOf(command, "")))
	}
	return nil
}

// nodeCommand returns "cordon", "uncordon" or "drain" if the header is that of such a command for nodes, by whatever program, and ""
// otherwise. "manifold cluster drain" and the like are about clusters.
func nodeCommand(header string) string {
	words := strings.Fields(header)
	if len(words) < 2 || words[len(words)-2] == "cluster" {
		return ""
	}
	switch last := words[len(words)-1]; last {
	case "cordon", "uncordon", "drain":
		return last
	}
	return ""
}

// insteadOf names the command that does what the user meant.
func insteadOf(command, node string) string {
	if node == "" {
		node = "NAME"
	}
	why := "nodes of a logical cluster mirror its clusters and are read-only: "
	if command == "drain" {
		return why + fmt.Sprintf("nothing was evicted; use \"manifold cluster cordon %s\" to keep workloads away, "+
			"or \"manifold cluster drain %s\" to move them off", node, node)
	}
	return why + fmt.Sprintf("use \"manifold cluster %s %s\"", command, node)
}
