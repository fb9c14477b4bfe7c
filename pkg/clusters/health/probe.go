package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/manifold-dev/manifold/internal/text"
)

// longestUID bounds by what a cluster says that it is known. A UID has 36 characters.
const longestUID = 64

// Probe asks the API server at host whether it is well, with the credential that everything else uses too. It makes two small
// requests: the kube-system namespace, which takes the credential, authorization and storage to answer and whose UID is the
// cluster's identity, and /readyz, where the server says whether it wants traffic. want is the UID that the cluster is known by,
// empty if it is not known yet. The caller bounds the time by ctx.
func Probe(ctx context.Context, client kubernetes.Interface, name, host, want string) Report {
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return classify(name, host, "get namespace kube-system", err)
	}
	uid := text.Line(string(namespace.UID), longestUID)
	if want != "" && uid != want {
		return Different(name, host, want, uid)
	}
	if failing := readyz(ctx, client); failing != "" {
		return Report{Reason: ReasonNotReady, UID: uid, Message: fmt.Sprintf("%s says that it is not ready: %s", host, failing)}
	}
	return Report{Reason: ReasonReady, UID: uid, Message: "the cluster answers and is ready"}
}

// readyz returns what keeps the server from being ready, empty if it is. Clusters that hide /readyz from ordinary users count as
// ready, and so does silence after the first request has been answered: the next probe will tell.
func readyz(ctx context.Context, client kubernetes.Interface) string {
	body, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err == nil {
		return ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code < http.StatusInternalServerError {
		return ""
	}
	return failingChecks(string(body), status.Status().Code)
}

// failingChecks reads the names of the checks that fail from the body of /readyz, whose lines look like "[-]etcd failed: ...".
func failingChecks(body string, code int32) string {
	var failing []string
	for line := range strings.Lines(body) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			check, _, _ = strings.Cut(strings.TrimSpace(check), " ")
			failing = append(failing, check)
		}
	}
	if len(failing) == 0 {
		return fmt.Sprintf("/readyz answers with status %d", code)
	}
	slices.Sort(failing)
	return "failing checks: " + firstLine(strings.Join(failing, ", "))
}
