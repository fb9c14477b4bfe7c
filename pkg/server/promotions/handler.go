package promotions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/manifold-dev/manifold/internal/work"
	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
	"github.com/manifold-dev/manifold/pkg/server/callers"
)

// What the paths begin with that are answered.
const (
	pathPromotion = "promotion"
	pathApproval  = "approval"
)

const (
	// A promotion that fails is tried so often before the call is answered.
	mostTries = 3
	// tryAgain is how long after the first try the next one is, and answerWithin bounds how long all of them may take.
	tryAgain     = 2 * time.Second
	answerWithin = 60 * time.Second
)

// Pipelines are those that are heard about.
type Pipelines interface {
	// HasSynced reports whether all is known that is needed.
	HasSynced() bool
	// Find returns the pipeline of a name, nil if there is none.
	Find(ctx context.Context, name cache.ObjectName) (*weave.Pipeline, error)
	// SigningKey returns what a Secret of the pipeline's namespace signs calls with, nil if there is nothing.
	SigningKey(p *weave.Pipeline, secret string) []byte
	// Look has what is due of a pipeline done now, and returns how it is then, nil if it is gone.
	Look(ctx context.Context, p *weave.Pipeline) (*weave.Pipeline, error)
	// Ask asks for a version in an environment, as a person would, if it waits there for that.
	Ask(ctx context.Context, p *weave.Pipeline, environment, revision, by string) (waits bool, err error)
}

// Handler answers calls.
type Handler struct {
	pipelines Pipelines
	clock     clock.Clock
	calls     *callers.Limits
	slots     *work.Slots
}

// New returns a Handler.
func New(pipelines Pipelines, clock clock.Clock) *Handler {
	return &Handler{pipelines: pipelines, clock: clock, calls: callers.NewLimits(clock, callsIn/mostCalls, mostCalls), slots: work.NewSlots(mostAtOnce, mostOfOne)}
}

// answer is what a call is answered.
type answer struct {
	code int
	// says is for people, and location leads to a pull request.
	says, location string
}

func refuse(code int, format string, args ...any) answer {
	return answer{code: code, says: fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := h.answer(w, r)
	switch out.code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", strconv.Itoa(int(callsIn/time.Second)))
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusCreated:
		w.Header().Set("Location", out.location)
	}
	if out.code >= http.StatusBadRequest {
		http.Error(w, out.says, out.code)
		return
	}
	w.WriteHeader(out.code)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request) answer {
	of, ours := read(r.URL)
	address := callers.AddressOf(r)
	switch {
	case !ours:
		return refuse(http.StatusNotFound, "POST /promotion/NAMESPACE/PIPELINE/ENVIRONMENT or /approval/NAMESPACE/PIPELINE/ENVIRONMENT/REVISION")
	case r.Method != http.MethodPost:
		return refuse(http.StatusMethodNotAllowed, "only POST is answered")
	case !h.calls.Take(address):
		return refuse(http.StatusTooManyRequests, "at most %d calls in %s from one address", mostCalls, callsIn)
	case !h.pipelines.HasSynced():
		return refuse(http.StatusServiceUnavailable, "the server is starting")
	}
	free, ok := h.slots.Take(address)
	if !ok {
		return refuse(http.StatusTooManyRequests, "too many calls at a time")
	}
	defer free()
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	var body []byte
	if of.kind == pathPromotion {
		var bad *answer
		if body, bad = readBody(w, r); bad != nil {
			return *bad
		}
	}
	p, err := h.pipelines.Find(ctx, of.name)
	switch {
	case err != nil:
		return refuse(http.StatusInternalServerError, "pipeline %s cannot be read", of.name)
	case p == nil:
		return refuse(http.StatusNotFound, "there is no pipeline %s", of.name)
	}
	if of.kind == pathApproval {
		return h.approve(ctx, p, of, r.Header.Get(headerSignature))
	}
	return h.promote(ctx, p, of, r.Header.Get(headerSignature), body)
}

// call is what a path says.
type call struct {
	kind        string
	name        cache.ObjectName
	environment string
	// revision may have slashes, as those of branches do.
	revision string
}

func read(u *url.URL) (call, bool) {
	parts := strings.SplitN(strings.TrimPrefix(u.Path, "/"), "/", 5)
	switch {
	case len(parts) < 4:
		return call{}, false
	case parts[0] == pathPromotion && len(parts) != 4, parts[0] == pathApproval && len(parts) != 5:
		return call{}, false
	case parts[0] != pathPromotion && parts[0] != pathApproval:
		return call{}, false
	}
	out := call{kind: parts[0], name: cache.NewObjectName(parts[1], parts[2]), environment: parts[3]}
	if len(parts) == 5 {
		out.revision = parts[4]
	}
	named := len(validation.IsDNS1123Label(out.name.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(out.name.Name)) == 0
	return out, named && out.environment != "" && (out.kind == pathPromotion || out.revision != "")
}

// readBody returns the body, or what is answered if it cannot be had.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *answer) {
	tooLong := refuse(http.StatusRequestEntityTooLarge, "at most %d bytes", mostBody)
	if r.ContentLength > mostBody {
		return nil, &tooLong
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readWithin)) // where that cannot be set, the server's own bounds hold
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, &tooLong
	}
	if err != nil {
		out := refuse(http.StatusUnprocessableEntity, "the body cannot be read")
		return nil, &out
	}
	return body, nil
}

// unsigned is said of every signature that is wrong, whatever is wrong with it.
var unsigned = refuse(http.StatusUnauthorized, "the signature in %s is missing or wrong", headerSignature)

// indexOf is that of an environment, or -1.
func indexOf(p *weave.Pipeline, environment string) int {
	for i, e := range p.Spec.Environments {
		if e.Name == environment {
			return i
		}
	}
	return -1
}

// event is what Flux tells of an object, as far as it is read.
type event struct {
	InvolvedObject struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		Namespace  string `json:"namespace"`
	} `json:"involvedObject"`
	Metadata map[string]string `json:"metadata"`
}

// keyRevision is where an event has the revision: alone, or after the group of the controller that tells it.
const keyRevision = "revision"

// promote has the pipeline looked at, and answers what has become of the environment after the one that the call is about.
func (h *Handler) promote(ctx context.Context, p *weave.Pipeline, of call, signature string, body []byte) answer {
	from := indexOf(p, of.environment)
	next := -1
	if from >= 0 && from+1 < len(p.Spec.Environments) {
		next = from + 1
	}
	if secret := p.SigningSecret(next); secret != "" && !signed(signature, body, h.pipelines.SigningKey(p, secret)) {
		return unsigned
	}
	var told event
	if err := json.Unmarshal(body, &told); err != nil {
		return refuse(http.StatusUnprocessableEntity, "the body is no event of Flux as JSON")
	}
	switch {
	case told.Metadata[keyRevision] == "":
		return refuse(http.StatusUnprocessableEntity, "metadata.revision: it is missing")
	case from < 0:
		return refuse(http.StatusUnprocessableEntity, "the pipeline has no environment %q", of.environment)
	case next < 0:
		return refuse(http.StatusUnprocessableEntity, "%q is the last environment", of.environment)
	case !involved(p, from, told):
		return refuse(http.StatusUnprocessableEntity, "involvedObject: it is not the app of the pipeline in a target of %q", of.environment)
	case p.PromotionOf(p.Spec.Environments[next]) == nil:
		return refuse(http.StatusUnprocessableEntity, "the pipeline does not say how versions are promoted to %q", p.Spec.Environments[next].Name)
	}
	return h.await(ctx, p, p.Spec.Environments[next].Name, told.Metadata[keyRevision])
}

// involved reports whether an event is about the app of a pipeline in an environment.
func involved(p *weave.Pipeline, index int, told event) bool {
	object := told.InvolvedObject
	if app := p.Spec.AppRef; app != nil && *app != (weave.AppReference{APIVersion: object.APIVersion, Kind: object.Kind, Name: object.Name}) {
		return false
	}
	for _, target := range p.Spec.Environments[index].Targets {
		if target.Namespace == object.Namespace && (p.Spec.AppRef != nil || listed(p, index, target, told)) {
			return true
		}
	}
	return false
}

// listed reports whether the object of an event is among the workloads of a target, where a label and no reference says what these are.
func listed(p *weave.Pipeline, index int, target weave.Target, told event) bool {
	status := p.Status.Environments[p.Spec.Environments[index].Name]
	if status == nil {
		return false
	}
	of := promotion.StatusOf(target, status.Targets)
	if of == nil {
		return false
	}
	for _, w := range of.Workloads {
		if w.Kind == told.InvolvedObject.Kind && w.Name == told.InvolvedObject.Name {
			return true
		}
	}
	return false
}

// approve asks for the version that waits in an environment.
func (h *Handler) approve(ctx context.Context, p *weave.Pipeline, of call, signature string) answer {
	to := indexOf(p, of.environment)
	secret := p.SigningSecret(to)
	if secret == "" || !signed(signature, nil, h.pipelines.SigningKey(p, secret)) {
		return unsigned
	}
	if to < 0 {
		return refuse(http.StatusUnprocessableEntity, "the pipeline has no environment %q", of.environment)
	}
	if approved(p, of.environment, of.revision) {
		return h.await(ctx, p, of.environment, of.revision)
	}
	waits, err := h.pipelines.Ask(ctx, p, of.environment, of.revision, "the webhook signed by Secret "+secret)
	switch {
	case err != nil:
		return refuse(http.StatusInternalServerError, "the approval cannot be written")
	case !waits:
		return refuse(http.StatusUnprocessableEntity, "%s does not wait for approval in %q", of.revision, of.environment)
	}
	return h.await(ctx, p, of.environment, of.revision)
}

// approved reports whether a version was approved before: the same call may come again, if its answer was lost.
func approved(p *weave.Pipeline, environment, revision string) bool {
	status := p.Status.Environments[environment]
	return status != nil && status.WaitingStatus == nil && status.Promotion != nil && status.Promotion.Revision == revision && status.Promotion.By != ""
}

// await has the pipeline looked at until the promotion of a version has not failed, or has too often, and answers what came of it.
func (h *Handler) await(ctx context.Context, p *weave.Pipeline, environment, revision string) answer {
	pause := tryAgain
	for try := 1; ; try++ {
		looked, err := h.pipelines.Look(ctx, p)
		switch {
		case err != nil:
			return refuse(http.StatusInternalServerError, "the pipeline cannot be looked at")
		case looked == nil:
			return refuse(http.StatusNotFound, "the pipeline is gone")
		}
		status := looked.Status.Environments[environment]
		if status == nil || status.Promotion == nil || status.Promotion.Revision != revision {
			return answer{code: http.StatusNoContent} // it waits, or is not verified yet
		}
		switch is := status.Promotion; {
		case is.Phase != weave.PromotionFailed && is.URL != "":
			return answer{code: http.StatusCreated, location: is.URL}
		case is.Phase != weave.PromotionFailed:
			return answer{code: http.StatusNoContent}
		case try >= mostTries:
			return refuse(http.StatusInternalServerError, "%s cannot be promoted to %q, and is tried again: see the status of the pipeline", revision, environment)
		}
		select {
		case <-h.clock.After(pause):
		case <-ctx.Done():
			return refuse(http.StatusInternalServerError, "%s is not promoted to %q yet: see the status of the pipeline", revision, environment)
		}
		pause *= 2
	}
}
