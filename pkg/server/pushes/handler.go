package pushes

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/server/callers"
)

// prefix is what the paths begin with that are answered: the namespace and the name of an application follow.
const prefix = "/hooks/git/"

// Applications are those that pushes are announced to.
type Applications interface {
	// HasSynced reports whether all of them are known.
	HasSynced() bool
	// Hook returns an application and the secret by which pushes are signed that are for it; nil if there is no such application, or it has none.
	Hook(name cache.ObjectName) (*v1alpha1.Application, []byte)
	// Announce has the repository of an application asked soon.
	Announce(name cache.ObjectName)
}

// Handler answers forges.
type Handler struct {
	apps Applications
	next http.Handler
	// failures are wrong signatures. Who sends none is heard all the same, so that no stranger can keep a forge out.
	failures *callers.Limits
	slots    *work.Slots
	// unknown stands for the secret of an application that there is not, so that looking takes as long.
	unknown []byte
}

// New returns a handler for what forges announce, which passes everything else on.
func New(apps Applications, clock clock.PassiveClock, next http.Handler) *Handler {
	unknown := make([]byte, 32)
	_, _ = rand.Read(unknown) // it never fails
	return &Handler{apps: apps, next: next, failures: callers.NewLimits(clock, wrongEvery, mostWrong), slots: work.NewSlots(mostAtOnce, mostOfOne), unknown: unknown}
}

// ServeHTTP implements http.Handler. It comes before all that asks who somebody is.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ours := strings.CutPrefix(r.URL.Path, prefix)
	if !ours {
		h.next.ServeHTTP(w, r)
		return
	}
	code, says := h.answer(w, r, path)
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "10")
	}
	if code >= http.StatusBadRequest {
		http.Error(w, says, code)
		return
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, says) // who does not listen any more has not been told
}

// answer returns the code and the text of an answer. What is said before the signature is checked is the same whether there is such an application or
// not.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, path string) (code int, says string) {
	address := callers.AddressOf(r)
	switch {
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, "only POST is answered"
	case h.failures.Spent(address):
		return http.StatusTooManyRequests, "too many wrong signatures from this address"
	case !h.apps.HasSynced():
		return http.StatusServiceUnavailable, "the applications are not known yet"
	}
	free, ok := h.slots.Take(address)
	if !ok {
		return http.StatusTooManyRequests, "too many pushes at a time"
	}
	defer free()
	body, code, says := read(w, r)
	if code != 0 {
		return code, says
	}
	name, named := nameOf(path)
	app, secret := h.apps.Hook(name)
	if !named || app == nil || len(secret) == 0 {
		app, secret = nil, h.unknown
	}
	if right := signed(r.Header, body, secret); !right || app == nil {
		h.failures.Take(address)
		klog.FromContext(r.Context()).V(2).Info("Refused a push whose signature is wrong, or that is for no application", "path", path, "address", address)
		return http.StatusUnauthorized, "no application takes a push with this signature"
	}
	refs, err := refsOf(r.Header, body)
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	for _, ref := range refs {
		if follows(app, ref) {
			h.apps.Announce(name)
			return http.StatusAccepted, "the repository is asked\n"
		}
	}
	return http.StatusNoContent, ""
}

// read returns the body, or what is answered if it cannot be had.
func read(w http.ResponseWriter, r *http.Request) (body []byte, code int, says string) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin)) // where that cannot be set, the server's own bounds hold
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, http.StatusRequestEntityTooLarge, "the body is too long"
	case err != nil:
		return nil, http.StatusBadRequest, "the body cannot be read"
	}
	return body, 0, ""
}

// nameOf reads NAMESPACE/NAME.
func nameOf(path string) (cache.ObjectName, bool) {
	namespace, name, cut := strings.Cut(path, "/")
	if !cut || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 {
		return cache.ObjectName{}, false
	}
	return cache.ObjectName{Namespace: namespace, Name: name}, true
}
